"""Runs the program of a folder, in a process of the account (see `fieldmark_challenge_tests.unprivileged`)."""

from __future__ import annotations

import json
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from fieldmark_challenge.programs.runners import BubblewrapRunner, CodeJob, CodeLimits


def main(folder: Path) -> None:
    """Runs the program of a folder."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    limits = CodeLimits(**json.loads((folder / "limits.json").read_text()))
    job = CodeJob(folder / "code", folder / "inputs", folder / "predictions")
    outcome = BubblewrapRunner().run(job, limits, stop)
    (folder / "outcome.json").write_text(json.dumps(asdict(outcome)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
