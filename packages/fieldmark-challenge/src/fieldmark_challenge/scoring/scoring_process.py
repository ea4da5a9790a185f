"""Where a run is scored: in a process of its own, with limits, and walled in by bubblewrap (see `walls`).

Without bubblewrap there are still limits on memory, time and output, an empty environment and a deadline. Both share
the kernel of the host.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fieldmark.sandbox.bubblewrap import bubblewrap, environment, wall, why_no_walls
from fieldmark.scoring import Scorecard
from fieldmark.scoring.scorer_digest import ScorerSources

SCORING_JOB = "fieldmark_challenge.scoring.scoring_job"
SOURCES = ScorerSources()
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
    """What came of a scoring process: scorecards, or the problems of the run, or a fault of the platform.

    `used` says which CPU time (`cpu_s`) and memory (`memory_mb`) the process took, where it came to its end; `weights`
    are the files of weights in the archive of a program.
    """

    cards: dict[str, Scorecard] = field(default_factory=dict)
    problems: list[dict[str, Any]] | None = None
    total: int = 0
    fault: str | None = None
    used: dict[str, float] = field(default_factory=dict)
    weights: tuple[str, ...] = ()


def score_in_sandbox(
    folder: Path, benchmark: str, *, limits: Limits, stop: threading.Event, walled: bool = False
) -> Outcome:
    """Scores the run of a job folder (see `scoring_job`).

    Args:
        folder: The folder, with `run` and `truth/` in it.
        benchmark: The benchmark.
        limits: What the process may use.
        stop: Ends it early.
        walled: Whether nothing may be scored without walls.
    """
    if walled and (why := why_no_walls()):
        return Outcome(fault=f"runs are scored within bubblewrap only, and {why}")
    job = {"benchmark": benchmark, "scorer": SOURCES.names()}
    ended, said = run_walled(folder, SCORING_JOB, job, limits, stop)
    if ended != 0:
        return Outcome(fault=f"{how_it_ended(ended, limits)}\n{said}".strip())
    return written_outcome(folder / "out", said)


def written_outcome(out: Path, said: str = "") -> Outcome:
    """What a scoring process that came to its end has written; `said` is told where that is nothing."""
    used = json.loads((out / "used").read_text(encoding="utf-8")) if (out / "used").exists() else {}
    if (out / "refused.json").exists():
        refused = json.loads((out / "refused.json").read_text(encoding="utf-8"))
        return Outcome(problems=refused["problems"], total=refused["total"], used=used)
    cards = {path.stem: Scorecard.read(path) for path in sorted(out.glob("*.json"), reverse=True)}
    return (
        Outcome(cards=cards, used=used)
        if cards
        else Outcome(fault=f"the scoring process wrote nothing\n{said}".strip())
    )


def run_walled(
    folder: Path, module: str, job: Mapping[str, Any], limits: Limits, stop: threading.Event
) -> tuple[int | None, str]:
    """Runs a module on a job folder; its exit status, None where it was ended, and the last that it said."""
    (folder / "out").mkdir()
    given = {key: value for key, value in asdict(limits).items() if key != "wall_s"}
    (folder / "job.json").write_text(json.dumps({**job, **given}), encoding="utf-8")
    command = [sys.executable, "-m", module, str(folder)]
    program = bubblewrap()
    if program:
        command = [*wall(program, folder), *command]
    with (folder / "log").open("wb") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=environment(folder),
            cwd=folder,
            start_new_session=True,
        )
        ended = _wait(process, limits.wall_s, stop)
    return ended, (folder / "log").read_bytes()[-TAIL:].decode("utf-8", "replace")


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


def how_it_ended(ended: int | None, limits: Limits) -> str:
    """An exit status in words."""
    if ended is None:
        return f"ended after {limits.wall_s:g} seconds"
    return f"ended by signal {-ended}" if ended < 0 else f"ended with exit status {ended}"
