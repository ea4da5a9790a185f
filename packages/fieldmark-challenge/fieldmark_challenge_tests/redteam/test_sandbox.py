"""Attacks of programs on the machine that runs them, on real bubblewrap, as an unprivileged account runs it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fieldmark.errors import MisuseError
from fieldmark.sandbox import bubblewrap
from fieldmark.web.refusals import ConflictError
from fieldmark_challenge.operations.shutdown import Stopping
from fieldmark_challenge.programs import cgroups, tasks
from fieldmark_challenge.programs.program_worker import start_program_workers
from fieldmark_challenge.programs.runners import BubblewrapRunner, CodeJob, CodeLimits, CodeOutcome, PodmanRunner
from fieldmark_challenge_tests.platform import Platform
from fieldmark_challenge_tests.programs.hosted import RULES
from fieldmark_challenge_tests.unprivileged import (
    AS_NOBODY,
    AccountRunner,
    account_runner,
    delegated_groups,
    is_root,
    require_sandbox,
)

LIMITS = CodeLimits(seconds=60, memory_mb=128, processes=24, disk_mb=64, output_mb=1)
# Writes what stands there, which changes nothing where it is possible.
WRITE_BACK = """
import os
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory"):
    try:
        with open(path, "rb+") as setting:
            setting.write(setting.read())
        print("wrote", path)
    except OSError as error:
        print("refused", path, error.errno)
for place in ("/proc/sys", "/proc/irq", "/proc/bus", "/sys", "/proc/sysrq-trigger"):
    for path in [place, *(os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names)]:
        try:
            os.close(os.open(path, os.O_WRONLY))
            print("wrote", path)
        except OSError:
            pass
"""


@pytest.fixture(scope="module", autouse=True)
def _sandbox() -> None:
    require_sandbox()


def job_in(folder: Path, program: str) -> CodeJob:
    (folder / "code").mkdir()
    (folder / "code" / "run.sh").write_text('exec "$PYTHON" run.py')
    (folder / "code" / "run.py").write_text(program)
    (folder / "inputs" / "images").mkdir(parents=True)
    (folder / "inputs" / "metadata.csv").write_text("hashed_id\n")
    return CodeJob(folder / "code", folder / "inputs", folder / "predictions")


def test_root_runs_no_program_and_no_phase_asks_for_one(small_platform: Platform, tmp_path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    job = job_in(tmp_path, "print('ran')")
    for runner in (BubblewrapRunner(), PodmanRunner("python:3.11", program="/bin/true")):
        outcome = runner.run(job, LIMITS, threading.Event())
        assert outcome.fault and "useradd --system fieldmark" in outcome.log and "ran" not in outcome.log.split()
    with pytest.raises(MisuseError, match="root runs no programs"):
        start_program_workers(small_platform.database, small_platform.storage, Stopping())
    where = (small_platform.database, small_platform.storage, small_platform.admin, small_platform.challenge)
    with pytest.raises(ConflictError, match="root runs no programs of participants: make an account"):
        tasks.set_code(*where, RULES, [small_platform.phase().id], most_archive_mb=64)


@pytest.mark.skipif(not is_root(), reason="shows what root could do, had it not been refused")
def test_even_root_finds_the_machine_read_only(tmp_path, monkeypatch):
    """The user of a sandbox that root starts is root to the kernel: its settings were writable from inside."""
    command = [*bubblewrap.wall(str(bubblewrap.bubblewrap()), None), sys.executable, "-c", WRITE_BACK]
    around = bubblewrap.environment(Path("/"))
    said = subprocess.run(command, env=around, capture_output=True, text=True, check=True).stdout
    assert said.count("refused") == 2 and "wrote" not in said, said[:500]
    monkeypatch.setattr("os.geteuid", lambda: 1000)  # past the refusal, as root still
    outcome = BubblewrapRunner().run(job_in(tmp_path, WRITE_BACK), LIMITS, threading.Event())
    assert outcome.log.count("refused") == 2 and "wrote" not in outcome.log, outcome.log[:500]


@contextmanager
def crowd(processes: int) -> Iterator[None]:
    """So many other processes of the account that runs programs."""
    alone = AS_NOBODY if is_root() else []
    script = f"for _ in $(seq {processes}); do sleep 300 & done; echo up; wait"
    shell = subprocess.Popen([*alone, "bash", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert shell.stdout is not None and shell.stdout.readline() == b"up\n"
        yield
    finally:
        os.killpg(shell.pid, 9)
        shell.wait()


def test_other_processes_of_the_account_do_not_count_and_its_own_do(tmp_path):
    count = """
import os, time
started = 0
try:
    while started < 100:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        started += 1
except OSError:
    pass
print("started", started, flush=True)
os._exit(3)
"""
    with crowd(2 * LIMITS.processes):
        outcome = account_runner().run(job_in(tmp_path, count), LIMITS, threading.Event())
    started = int(outcome.log.split()[-1])
    assert LIMITS.processes // 2 < started < LIMITS.processes, outcome.log


# Each would hold about a gigabyte, where a program may hold 128 MiB.
MEMORY_ATTACKS = {
    "processes": """
import os, time
for _ in range(16):
    if os.fork() == 0:
        held = [bytearray(b"1" * (1 << 20)) for _ in range(64)]
        time.sleep(60)
os._exit(4 if os.wait()[1] else 0)
""",
    "files in memory and processes": """
import os, time
for place in ("/tmp", "/submission/out"):
    open(f"{place}/held", "wb").write(b"0" * (50 << 20))
if os.fork() == 0:
    held = [bytearray(b"1" * (1 << 20)) for _ in range(60)]
    time.sleep(60)
time.sleep(60)
""",
    "sockets": """
import os, socket, time
for _ in range(20):
    if os.fork() == 0:
        kept = []
        for _ in range(100):
            pair = socket.socketpair()
            for one in pair:
                one.setblocking(False)
                try:
                    while True:
                        one.send(b"0" * 60_000)
                except BlockingIOError:
                    kept.append(one)
        time.sleep(60)
time.sleep(60)
""",
    "empty files": """
import os
for number in range(10_000_000):
    os.close(os.open(f"/tmp/{number}", os.O_CREAT))
""",
    "memfd": """
import os
kept = [os.memfd_create("x") for _ in range(100)]
for one in kept:
    for _ in range(10):
        os.write(one, b"0" * (1 << 20))
""",
    "memory of System V": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
numbers = [libc.shmget(0, 10 << 20, 0o1600) for _ in range(100)]
assert min(numbers) >= 0, "refused"
""",
}


@contextmanager
def meter() -> Iterator[Path | None]:
    """A group that measures and bounds nothing, in which the account may make no others; None where there are none."""
    group = cgroups.own_group(cgroups.ROOT / "memory", "memory") / f"fieldmark-meter-{os.getpid()}"
    if not is_root() or not (group.parent / "memory.max_usage_in_bytes").exists():
        yield None
        return
    group.mkdir()
    try:
        yield group
    finally:
        cgroups.remove_group(group)


def peak_mb(group: Path) -> int:
    return int((group / "memory.max_usage_in_bytes").read_text()) >> 20


@pytest.mark.parametrize("name", MEMORY_ATTACKS)
def test_memory_is_bounded_without_groups(name, tmp_path):
    limits = replace(LIMITS, memory_mb=64) if name == "empty files" else LIMITS  # one needs a while
    job = job_in(tmp_path, MEMORY_ATTACKS[name])
    with meter() as group:
        outcome = AccountRunner([group] if group else []).run(job, limits, threading.Event())
        peak = peak_mb(group) if group else 0
    assert ended(outcome) and peak < 4 * LIMITS.memory_mb, (outcome, peak)


def test_memory_is_bounded_by_a_delegated_group(tmp_path):
    with delegated_groups() as groups:
        if not groups:
            pytest.skip("no groups can be delegated here")
        outcome = AccountRunner(groups).run(job_in(tmp_path, MEMORY_ATTACKS["processes"]), LIMITS, threading.Event())
        peak = peak_mb(groups[-1]) if (groups[-1] / "memory.max_usage_in_bytes").exists() else 0
    assert ended(outcome) and "took more than" not in outcome.problem, outcome  # by the kernel, not by the watch
    assert peak < 2 * LIMITS.memory_mb


def ended(outcome: CodeOutcome) -> bool:
    """Whether a program was run, and did not come to its end."""
    return not outcome.fault and bool(outcome.problem) and "wrote no predictions" not in outcome.problem
