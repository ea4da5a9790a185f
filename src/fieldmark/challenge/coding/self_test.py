"""Whether programs can be run safely here: the walls are tried before any program of participants is.

A probe looks around as a hostile program would. No program is run where one of its attempts succeeds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from fieldmark.challenge.coding.runners import BubblewrapRunner, CodeJob, CodeLimits, CodeRunner
from fieldmark.challenge.records.scratch import scratch

LIMITS = CodeLimits(seconds=60.0, memory_mb=1024, processes=16, disk_mb=8, output_mb=1)
PROBE = """
import os, socket, time

def possible(act):
    try:
        act()
    except BaseException:
        return False
    return True

def fork_bomb():
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)

def fill():
    for number in range(64):
        with open(f"/tmp/{number}", "wb") as sink:
            sink.write(b"0" * (1 << 20))

found = []
if possible(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("8.8.8.8", 53))):
    found.append("a network")
def seen(path):
    return os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)

if any(possible(lambda: seen(path)) for path in HIDDEN):
    found.append("files of the platform")
if possible(lambda: open("/submission/inputs/metadata.csv", "a")) or possible(lambda: open("/evil", "w")):
    found.append("files that can be written to")
if len([name for name in os.listdir("/proc") if name.isdigit()]) > 6:
    found.append("processes of others")
if os.getuid() == 0 or possible(lambda: os.setuid(0)):
    found.append("the rights of root")
if possible(fill):
    found.append("a disk without end")
if possible(fork_bomb):
    found.append("processes without end")
with open(os.environ["AICROWD_PREDICTIONS_OUTPUT_PATH"], "w") as sink:
    sink.write("|".join(["probed", *found]))
os._exit(0)
"""


def failure_of(runner: CodeRunner, hidden: Iterable[Path] = ()) -> str:
    """What is wrong with the walls of a runner; empty where they hold.

    Args:
        runner: The runner.
        hidden: Files and folders that no program may see, besides one that is made for the purpose.
    """
    with scratch("probe") as folder:
        secret = folder / "truth.csv"
        secret.write_text("secret", encoding="utf-8")
        for name in ("code", "inputs/images"):
            (folder / name).mkdir(parents=True)
        (folder / "inputs" / "metadata.csv").write_text("hashed_id\n", encoding="utf-8")
        (folder / "code" / "run.sh").write_text('exec "$PYTHON" probe.py', encoding="utf-8")
        probe = f"HIDDEN = {[str(path) for path in (secret, *hidden)]!r}\n{PROBE}"
        (folder / "code" / "probe.py").write_text(probe, encoding="utf-8")
        job = CodeJob(folder / "code", folder / "inputs", folder / "found")
        outcome = runner.run(job, LIMITS, threading.Event())
        said = _read(job.predictions)
    if not said.startswith("probed"):
        return f"{outcome.problem} {outcome.log[-300:]}".strip()
    found = said.split("|")[1:]
    return f"a program would find {', '.join(found)}" if found else ""


@lru_cache(maxsize=1)
def failure_here() -> str:
    """The same for bubblewrap on this machine, tried once."""
    return failure_of(BubblewrapRunner())


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
