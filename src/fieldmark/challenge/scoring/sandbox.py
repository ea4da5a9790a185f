"""Where a run is scored, and a large one checked: in a process of its own, with limits, and walled in by bubblewrap.

With bubblewrap the process sees the Python installation and its job folder, and nothing else: no network, no other
files, no other processes. Without it there are still limits on memory, time and output, an empty environment and a
deadline. Both share the kernel of the host.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from fieldmark.scoring import Scorecard

log = logging.getLogger(__name__)

SCORING_JOB = "fieldmark.challenge.scoring.scoring_job"
CHECKING_JOB = "fieldmark.challenge.submitting.checking_job"
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/localtime")
TAIL = 4000
POLL_S = 0.05


@dataclass(frozen=True)
class Limits:
    """What one process may use."""

    memory_mb: int = 8192
    cpu_s: int = 900
    output_mb: int = 512
    wall_s: float = 900.0


@dataclass(frozen=True)
class Outcome:
    """What came of a scoring process: scorecards, or the problems of the run, or a fault of the platform."""

    cards: dict[str, Scorecard] = field(default_factory=dict)
    problems: list[dict[str, Any]] | None = None
    total: int = 0
    fault: str | None = None


class ExhaustedError(Exception):
    """A process reached one of its limits."""


def score_in_sandbox(folder: Path, benchmark: str, *, limits: Limits, stop: threading.Event) -> Outcome:
    """Scores the run of a job folder (see `scoring_job`).

    Args:
        folder: The folder, with `run` and `truth/` in it.
        benchmark: The benchmark.
        limits: What the process may use.
        stop: Ends it early.
    """
    ended, said = _run(folder, SCORING_JOB, {"benchmark": benchmark}, limits, stop)
    out = folder / "out"
    if ended != 0:
        return Outcome(fault=f"{_how(ended, limits)}\n{said}".strip())
    if (out / "refused.json").exists():
        refused = json.loads((out / "refused.json").read_text(encoding="utf-8"))
        return Outcome(problems=refused["problems"], total=refused["total"])
    cards = {path.stem: Scorecard.read(path) for path in sorted(out.glob("*.json"), reverse=True)}
    return Outcome(cards=cards) if cards else Outcome(fault=f"the scoring process wrote nothing\n{said}".strip())


def check_in_sandbox(folder: Path, job: Mapping[str, Any], *, limits: Limits) -> Outcome:
    """Checks the run of a job folder (see `checking_job`): it has problems, or none.

    Raises:
        ExhaustedError: When a limit ends it.
    """
    ended, said = _run(folder, CHECKING_JOB, job, limits, threading.Event())
    # A process that is ended by a signal says so as 128 and its number when bubblewrap stands in between.
    if ended is None or ended < 0 or ended > 128 or (folder / "out" / "exhausted").exists():
        raise ExhaustedError(_how(ended, limits))
    if ended != 0:
        return Outcome(fault=f"{_how(ended, limits)}\n{said}".strip())
    if (folder / "out" / "refused.json").exists():
        refused = json.loads((folder / "out" / "refused.json").read_text(encoding="utf-8"))
        return Outcome(problems=refused["problems"], total=refused["total"])
    return Outcome()


def _run(
    folder: Path, module: str, job: Mapping[str, Any], limits: Limits, stop: threading.Event
) -> tuple[int | None, str]:
    """Runs a module on a job folder; its exit status, None where it was ended, and the last that it said."""
    (folder / "out").mkdir()
    given = {key: value for key, value in asdict(limits).items() if key != "wall_s"}
    (folder / "job.json").write_text(json.dumps({**job, **given}), encoding="utf-8")
    command = [sys.executable, "-m", module, str(folder)]
    walled = bubblewrap()
    if walled:
        command = [*_wall(walled, folder), *command]
    with (folder / "log").open("wb") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=_environment(folder),
            cwd=folder,
            start_new_session=True,
        )
        ended = _wait(process, limits.wall_s, stop)
    return ended, (folder / "log").read_bytes()[-TAIL:].decode("utf-8", "replace")


@cache
def bubblewrap() -> str | None:
    """The program that walls processes in, if it is installed and works here."""
    program = shutil.which("bwrap")
    if program is None:
        log.warning("bubblewrap is not installed: scoring runs with limits, but not walled in")
        return None
    try:
        subprocess.run(
            [*_wall(program, None), sys.executable, "-c", "import fieldmark"],
            env=_environment(Path("/")),
            capture_output=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error).encode()
        log.warning(
            "bubblewrap does not work here, scoring is not walled in: %s", said.decode("utf-8", "replace")[-300:]
        )
        return None
    return program


def _wall(program: str, folder: Path | None) -> list[str]:
    """The command line of bubblewrap: the system and Python read-only, the job folder, nothing else."""
    wall = [program, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    wall += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            wall += ["--symlink", str(path.readlink()), name]
        elif path.exists():
            wall += ["--ro-bind", name, name]
    for path in _python_places():
        wall += ["--ro-bind", str(path), str(path)]
    if folder is not None:
        wall += ["--bind", str(folder), str(folder), "--chdir", str(folder)]
    return wall


def _python_places() -> list[Path]:
    """The folders that this Python and this package are imported from, but for those of the system."""
    roots = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).parent, _source()]
    roots += [Path(entry) for entry in sys.path if entry]
    roots += [path.resolve() for path in roots]
    places: list[Path] = []
    for path in sorted({path for path in roots if path.is_dir()}, key=lambda path: len(path.parts)):
        if path != Path("/") and not any(path.is_relative_to(above) for above in (*map(Path, SYSTEM), *places)):
            places.append(path)
    return places


def _source() -> Path:
    return Path(str(resources.files("fieldmark"))).parent


def _environment(folder: Path) -> dict[str, str]:
    """What the process knows of its surroundings: nothing that the server was started with."""
    paths = [str(_source()), *(entry for entry in sys.path if entry and "site-packages" in entry)]
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "POLARS_MAX_THREADS": "1",
    }


def _wait(process: subprocess.Popen[bytes], wall_s: float, stop: threading.Event) -> int | None:
    """The exit status, or None where the process was ended: too late, or because it is no longer wanted."""
    deadline = time.monotonic() + wall_s
    try:
        while process.poll() is None:
            if stop.is_set() or time.monotonic() > deadline:
                return None
            time.sleep(POLL_S)
        return process.returncode
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _how(ended: int | None, limits: Limits) -> str:
    if ended is None:
        return f"ended after {limits.wall_s:g} seconds"
    return f"ended by signal {-ended}" if ended < 0 else f"ended with exit status {ended}"
