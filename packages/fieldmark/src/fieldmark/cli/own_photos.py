"""`fieldmark fit FOLDER`: somebody's own photos, from the folder to a page that names the next one."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import NamedTuple

from fieldmark.errors import MisuseError, did_you_mean


class OwnPhotosCall(NamedTuple):
    """The benchmark and the data that are meant, and whether a folder alone was given."""

    benchmark: str
    data: Path
    folder_alone: bool


def asked_benchmark(benchmark: str, data: Path | None) -> OwnPhotosCall:
    """What `fit` was asked for: a benchmark with its data, or a folder of one's own photos or recordings.

    Raises:
        MisuseError: When it is neither.
    """
    from fieldmark.benchmarks import BENCHMARKS

    if data is not None:
        return OwnPhotosCall(benchmark, data, False)
    if Path(benchmark).is_dir():
        return OwnPhotosCall("folder", Path(benchmark), True)
    if benchmark.partition("@")[0] in BENCHMARKS:
        raise MisuseError(f"Missing option '--data': where the release of {benchmark} lies.")
    hint = did_you_mean(benchmark, list(BENCHMARKS))
    raise MisuseError(f"{benchmark!r} is neither a folder nor a benchmark. {hint}")


def show_own(folder: Path, *, browser: bool) -> None:
    """Writes the report of a run; with a browser, opens it beside a page that names the next photo, and serves that."""
    from fieldmark.registry import require

    reports = require("fieldmark.reports", "A report")
    page: Path = reports.report([folder], folder / "report.html")  # type: ignore[attr-defined]
    print(f"report in {page}")
    if not browser:
        print(f"to name the next photo: fieldmark identify --serve --model {folder}")
        return
    import webbrowser

    for module in ("fastapi", "uvicorn", "jinja2"):
        require(module, "The identify page")
    from fieldmark.web.identify_answers import PageAnswers
    from fieldmark.web.local_app import serve_identify

    namer = PageAnswers(str(folder))
    namer.warm()
    port = free_port()
    address = f"http://127.0.0.1:{port}/identify"
    webbrowser.open(Path(page).absolute().as_uri())
    webbrowser.open(address)
    print(f"Drop the next photo here: {address} (stop with Ctrl-C)", flush=True)
    serve_identify(namer, host="127.0.0.1", port=port)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
