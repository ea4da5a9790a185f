"""How commands end: with exit code 0 once their answer is printed, every time.

Arrow's workers can abort a program that is over (`fieldmark.storage.parquet` says how), in a few of a hundred runs.
Each command below reads Parquet where it can and is run five hundred times; `pyarrow alone` reads tables from memory as
we did before, and shows that the fault is there to be seen on this machine. Commands take turns, and counts are kept as
they grow, so that the study goes on where it was stopped.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx

from fieldmark_challenge_tests.own_postgres import free_port
from studies.evidence.results import read_result, write_result
from studies.evidence.stage import MAIN, status_of, until

NAME = "endings"
RUNS, CONTROLS, KEPT_EVERY = 500, 150, 5
COSTLY, COSTLY_EVERY = ("fit", "identify", "serve + SIGTERM"), 5
CONTROL = "pyarrow alone"
FIVE_LINES = """
import io, pyarrow as pa, pyarrow.parquet as pq
sink = io.BytesIO()
pq.write_table(pa.table({"a": list(range(5000)), "b": [str(n) for n in range(5000)]}), sink)
for _ in range(30):
    pq.read_table(io.BytesIO(sink.getvalue()))
"""


def run(runs: int = RUNS) -> None:
    """Every command in turn, the costly ones less often at first, until each has run so often."""
    before = (read_result(NAME) or {}).get("exit_codes", {})
    with tempfile.TemporaryDirectory(prefix="endings-") as folder:
        commands = _commands(Path(folder))
        codes = {name: Counter(before.get(name, {})) for name in commands}
        wanted = {name: min(runs, CONTROLS) if name == CONTROL else runs for name in commands}
        turn = 0
        while missing := [name for name in commands if codes[name].total() < wanted[name]]:
            cheap = [name for name in missing if name not in COSTLY]
            for name in missing if turn % COSTLY_EVERY == 0 else cheap or missing:
                codes[name][str(commands[name]())] += 1
            if turn % KEPT_EVERY == 0 or len(missing) == 1:
                print(turn, {name: dict(one) for name, one in codes.items()}, flush=True)
                write_result(NAME, {"simulated": True, "asked_for": runs, "exit_codes": codes})
            turn += 1


def _commands(root: Path) -> dict[str, Callable[[], int]]:
    """The commands by name, each with what it needs; a call runs one and tells its exit code."""
    world, benchmark, masks = str(root / "world"), "fungitastic-mini/closed", "fungitastic-mini/segmentation"
    prepared: list[list[str]] = [["world", "fungitastic", world], ["truth", masks, "--data", world, "--out", "masks"]]
    for method in ("frequent", "centroid"):
        prepared.append(["fit", benchmark, "--data", world, "--method", method, "--out", method])
    for command in prepared:
        subprocess.run([*MAIN, *command], cwd=root, check=True, capture_output=True)
    photo = str(next((root / "world").rglob("*.JPG")))
    fit = ["fit", benchmark, "--data", world, "--method", "frequent", "--out", "again", "--overwrite"]
    ours = {
        "check": ["check", "fungitastic", world, "--json"],
        "score": ["score", masks, "masks/truth.parquet", "--truth", "masks/truth.parquet", "--json"],
        "fit": fit,
        "identify": ["identify", photo, "--model", "centroid", "--json"],
        "compare": ["compare", "frequent", "centroid", "--json"],
    }
    return {
        CONTROL: lambda: _code([sys.executable, "-c", FIVE_LINES], root),
        **{name: (lambda given=given: _code([*MAIN, *given], root)) for name, given in ours.items()},  # type: ignore[misc]
        "serve + SIGTERM": lambda: _served(root),
    }


def _code(command: list[str], root: Path) -> int:
    return subprocess.run(command, cwd=root, capture_output=True, check=False).returncode


def _served(root: Path) -> int:
    """Serves the demo challenge, asks for its board, and asks the server to end."""
    port = free_port()
    options = ["--port", str(port), "--folder", "platform", "--no-identify"]
    with (root / "log").open("ab") as log:
        server = subprocess.Popen([*MAIN, "serve", *options], cwd=root, stdout=log, stderr=log)
    base = f"http://127.0.0.1:{port}"
    try:
        until(lambda: server.poll() is not None or status_of(f"{base}/healthz") == 200)
        httpx.get(f"{base}/c/demo/board", timeout=60).raise_for_status()
        server.send_signal(signal.SIGTERM)
        return server.wait(timeout=120)
    finally:
        if server.poll() is None:
            server.kill()
