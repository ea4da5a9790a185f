"""Whether programs can be run safely here: each wall is tried before any program of participants is run.

A probe (see `probe`) does what a hostile program would. No program is run where one of its attempts succeeds, or where
it is not ended in time.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fieldmark_challenge.programs import probe
from fieldmark_challenge.programs.cgroups import bounded
from fieldmark_challenge.programs.runners import CodeJob, CodeLimits, CodeOutcome, CodeRunner, PodmanRunner
from fieldmark_challenge.records.scratch import scratch

# Raised with what is tried: machines that were tried less thoroughly do not count.
EDITION = 3
LIMITS = CodeLimits(seconds=60.0, memory_mb=1024, processes=16, disk_mb=8, output_mb=1)
# Three processes of 24 MiB and a file of 48 MiB: neither is too much by itself.
MEMORY = replace(LIMITS, memory_mb=128, disk_mb=64)
HELD = {"each_mb": 24, "file_mb": 48}
TIMES_S = (1.0, 10.0, 60.0)  # the first that is enough to start a program at all
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
WALLS = {
    "namespaces": "it sees its own processes alone, in namespaces of its own",
    "seccomp": f"{len(probe.CALLS)} calls of the kernel that no program needs are refused",
    "uid": "it is nobody, has no capabilities and gets none",
    "proc": "/proc/sys, sysrq-trigger, irq, bus and /sys are read-only or absent",
    "network": "there is no network, and no sockets but those between its own processes",
    "files": "it reads neither labels nor accounts, and writes to neither inputs nor system",
    "disk": f"it writes no more than the {LIMITS.disk_mb} MiB it may",
    "processes": f"it stops at {LIMITS.processes} processes, while as many of the account run beside it",
}


@dataclass(frozen=True)
class Protection:
    """One thing that protects the machine from programs, and what came of trying it.

    Args:
        name: What it is called.
        holds: Whether it does.
        found: What was seen, in words.
        needed: Whether no program is run without it.
    """

    name: str
    holds: bool
    found: str
    needed: bool = True


def protections(runner: CodeRunner, hidden: Iterable[Path] = ()) -> list[Protection]:
    """What protects the machine from programs that a runner runs, each tried.

    Args:
        runner: The runner.
        hidden: Files and folders that no program may see, besides one that is made for the purpose.
    """
    with scratch("probe") as folder:
        (folder / "truth.csv").write_text("secret", encoding="utf-8")
        links = {name: str(Path("/proc/self/ns", name).readlink()) for name in NAMESPACES}
        about = {"hidden": [str(path) for path in (folder / "truth.csv", *hidden)], "namespaces": links, **HELD}
        about |= {"disk_mb": LIMITS.disk_mb, "processes": LIMITS.processes}
        (folder / "inputs" / "images").mkdir(parents=True)
        (folder / "inputs" / "metadata.csv").write_text("hashed_id\n", encoding="utf-8")
        with _crowd(LIMITS.processes):
            outcome, said = _tried(runner, folder / "walls", 'exec "$PYTHON" probe.py walls', LIMITS, about)
        found = _read(said)
        if found is None:
            return [Protection("start", False, f"{outcome.problem} {outcome.log[-400:].strip()}".strip().rstrip("."))]
        walls = [_wall(name, possible) for name, possible in found.items()]
        return [*walls, _memory(runner, folder / "memory", about), _time(runner, folder / "time"), _groups(runner)]


def failure_of(runner: CodeRunner, hidden: Iterable[Path] = ()) -> str:
    """What is wrong with the walls of a runner; empty where they hold."""
    return failure_in(protections(runner, hidden))


def failure_in(tried: Iterable[Protection]) -> str:
    """What of all that was tried does not hold and is needed; empty where everything does."""
    return "; ".join(one.found for one in tried if one.needed and not one.holds)


def _wall(name: str, possible: list[str]) -> Protection:
    if possible:
        return Protection(name, False, f"a program would find {', '.join(possible)}")
    return Protection(name, True, WALLS[name])


def _memory(runner: CodeRunner, folder: Path, about: Mapping[str, Any]) -> Protection:
    outcome, said = _tried(runner, folder, 'exec "$PYTHON" probe.py memory', MEMORY, about)
    if outcome.fault or "began" not in outcome.log:
        return Protection("memory", False, f"memory could not be tried: {outcome.problem} {outcome.log[-300:]}".strip())
    if said:
        found = f"a program would find more memory than the {MEMORY.memory_mb} MiB it may take"
        return Protection("memory", False, found)
    found = f"ended when three processes and a file in memory took more than {MEMORY.memory_mb} MiB together"
    return Protection("memory", True, found)


def _time(runner: CodeRunner, folder: Path) -> Protection:
    marker = f"fieldmark-left-behind-{secrets.token_hex(6)}"
    script = f"(setsid bash -c 'exec -a {marker} sleep 600' &)\nexec sleep 600\n"
    for seconds in TIMES_S:
        outcome, _ = _tried(runner, folder.with_name(f"time-{seconds:g}"), script, replace(LIMITS, seconds=seconds), {})
        if not outcome.fault:
            break
    if outcome.fault or "did not end within" not in outcome.problem:
        found = f"a program would find time without end ({outcome.problem} {outcome.log[-200:]})"
        return Protection("time", False, found)
    if _runs(marker):
        return Protection("time", False, "a program would find that what it starts outlives it")
    return Protection("time", True, f"ended after {seconds:g} s with everything that it had started")


def _groups(runner: CodeRunner) -> Protection:
    """Which groups bound the memory that was tried; where there are none, it is watched."""
    if isinstance(runner, PodmanRunner):
        return Protection("cgroups", True, "left to Podman", needed=False)
    with bounded(memory_mb=MEMORY.memory_mb, processes=LIMITS.processes) as groups:
        if groups.version:
            found = f"version {groups.version}: the kernel bounds memory and processes of a program as a whole"
            return Protection("cgroups", True, found, needed=False)
    found = (
        "no group is delegated to this account (a unit with Delegate=yes has one): "
        "memory is counted 20 times a second instead, and processes by the user namespace"
    )
    return Protection("cgroups", False, found, needed=False)


def _tried(
    runner: CodeRunner, folder: Path, script: str, limits: CodeLimits, about: Mapping[str, Any]
) -> tuple[CodeOutcome, str]:
    """Runs a probe; what came of it, and what it wrote."""
    code = folder / "code"
    code.mkdir(parents=True)
    (code / "run.sh").write_text(script, encoding="utf-8")
    (code / "probe.py").write_bytes(Path(probe.__file__).read_bytes())
    (code / "probe.json").write_text(json.dumps(about), encoding="utf-8")
    job = CodeJob(code, folder.parent / "inputs", folder / "found")
    outcome = runner.run(job, limits, threading.Event())
    return outcome, job.predictions.read_text(encoding="utf-8", errors="replace") if job.predictions.exists() else ""


def _read(said: str) -> dict[str, list[str]] | None:
    """What the probe found, by wall; None where it says nothing about one of them."""
    try:
        found = json.loads(said)
    except ValueError:
        return None
    return found if isinstance(found, dict) and set(found) == set(WALLS) else None


@contextmanager
def _crowd(processes: int) -> Iterator[None]:
    """So many other processes of this account, for as long as they are needed."""
    script = f"for _ in $(seq {processes}); do sleep 120 & done; wait"
    crowd = subprocess.Popen(["/bin/bash", "-c", script], start_new_session=True)
    try:
        yield
    finally:
        os.killpg(crowd.pid, signal.SIGKILL)
        crowd.wait()


def _runs(marker: str) -> bool:
    """Whether a process of this name runs on the machine."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() == path.read_bytes().split(b"\0")[0]:
                return True
        except OSError:
            continue
    return False
