"""Running a program of participants: one interface, and bubblewrap or Podman behind it.

The program is a folder with `run.sh`, which gets three variables, as `fieldmark export snakeclef-2020` writes it:
AICROWD_TEST_IMAGES_PATH, AICROWD_TEST_METADATA_PATH and AICROWD_PREDICTIONS_OUTPUT_PATH. It sees its own folder and the
inputs, read-only, and a sized folder in memory to write to; no network, no labels, no other files or processes. What it
wrote to the third path is copied out when it has ended, together with everything that it started.

Root runs none: the user that a program appears to be is the user that started it, whom the kernel lets write to
/proc/sys. How many processes it has is counted in its own user namespace, where others of the account do not count.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from fieldmark.sandbox import seccomp
from fieldmark.sandbox.bubblewrap import proc_places, python_places, system_places
from fieldmark.sandbox.memory_watch import MemoryWatch
from fieldmark_challenge.programs.cgroups import bounded
from fieldmark_challenge.records.scratch import is_left_over, prefix_of

CODE, INPUTS, OUT = "/submission/code", "/submission/inputs", "/submission/out"
IMAGES, METADATA, PREDICTIONS = f"{INPUTS}/images", f"{INPUTS}/metadata.csv", f"{OUT}/predictions.csv"
LOG_BYTES = 1 << 16
POLL_S, COPYING_S = 0.05, 60.0
MIB = 1 << 20
# Says that the walls stand, and copies what was written out, over two channels that the program itself does not get.
# Both are pipes: it may find them below /proc, and a file that is open there could be filled, and taken from us.
LAUNCH = (
    f"echo up >&4; exec 4>&-; cd {CODE} && bash run.sh 3>&-; ended=$?; "
    f"if [ -f {PREDICTIONS} ]; then cat {PREDICTIONS} >&3; fi; exit $ended"
)
JOIN = 'for group in $GROUPS_TO_JOIN; do echo $$ > "$group" || exit 97; done; unset GROUPS_TO_JOIN; exec "$@"'
CANNOT = "The platform cannot run programs."
ROOT_REFUSED = (
    "root runs no programs of participants: make an account with `useradd --system fieldmark`, and start the worker "
    "as this account, with deploy/fieldmark-programs@.service or `runuser -u fieldmark -- fieldmark worker --lane code`"
)
SMALL_LIMITS = ("--core=0", "--sigpending=1024", "--msgqueue=0", "--memlock=65536")
CHANNELS_FROM = 20  # numbers that no shell uses for itself


@dataclass(frozen=True)
class CodeLimits:
    """What one program may use.

    Args:
        seconds: From its start to its end.
        memory_mb: Of each process, and of all together, with what they write.
        processes: How many at once.
        disk_mb: What it may write, all files together.
        output_mb: How large the predictions may be.
    """

    seconds: float = 3600.0
    memory_mb: int = 8192
    processes: int = 64
    disk_mb: int = 1024
    output_mb: int = 512


@dataclass(frozen=True)
class CodeJob:
    """A program and what it is run on.

    Args:
        code: The folder with `run.sh`.
        inputs: A folder with `images/` and `metadata.csv`; it holds no labels.
        predictions: Where the predictions go.
    """

    code: Path
    inputs: Path
    predictions: Path


@dataclass(frozen=True)
class CodeOutcome:
    """What came of it: a sentence for participants, empty where there are predictions; and the last output.

    Args:
        problem: The sentence.
        log: The last that the program said.
        fault: Whether the program was never started, which is no fault of those who wrote it.
    """

    problem: str
    log: str
    fault: bool = False


class CodeRunner(Protocol):
    """Something that runs programs within walls."""

    name: str

    def run(self, job: CodeJob, limits: CodeLimits, stop: threading.Event) -> CodeOutcome:
        """Runs one program to its end, or ends it."""
        ...


class BubblewrapRunner:
    """Runs programs with bubblewrap, on the system and the Python of this machine."""

    name = "bubblewrap"

    def run(self, job: CodeJob, limits: CodeLimits, stop: threading.Event) -> CodeOutcome:
        program = shutil.which("bwrap")
        if program is None or os.geteuid() == 0:
            return CodeOutcome(CANNOT, ROOT_REFUSED if program else "bubblewrap is not installed", fault=True)
        with (
            bounded(memory_mb=limits.memory_mb, processes=limits.processes) as groups,
            tempfile.TemporaryFile() as filters,
            job.predictions.open("wb") as sink,
        ):
            filters.write(seccomp.program() if seccomp.available() else b"")
            filters.seek(0)
            with _high(filters.fileno()) as number:
                # Where the kernel counts its own memory as the program's, it may open more.
                channels = 1024 if groups.version else 256
                command = self._command(program, job, limits, channels, number if seccomp.available() else None)
                environment = {"PATH": "/usr/bin:/bin", "GROUPS_TO_JOIN": " ".join(map(str, groups.files))}
                watch = None if groups.version else self._watch(limits)
                outcome = _ended(command, JOIN, environment, limits, stop, sink, (number,), watch)
        return _judged(outcome, job, limits)

    def _watch(self, limits: CodeLimits) -> MemoryWatch:
        return MemoryWatch(limits.memory_mb * MIB, [(place, limits.disk_mb * MIB) for place in ("/tmp", OUT)])

    def _command(self, program: str, job: CodeJob, limits: CodeLimits, channels: int, filters: int | None) -> list[str]:
        most = limits.memory_mb * MIB
        # Below the worker: however many processes a program starts, its watch gets to run.
        command = ["nice", "-n", "10", "prlimit", f"--as={most}", f"--fsize={limits.disk_mb * MIB}", *SMALL_LIMITS]
        command += [
            f"--nofile={channels}",
            f"--cpu={int(limits.seconds) + 1}",
            program,
            "--unshare-all",
            "--unshare-user",
            "--disable-userns",
            "--die-with-parent",
            "--new-session",
        ]
        command += ["--clearenv", "--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "submission"]
        size = str(limits.disk_mb * MIB)
        # What comes later covers what came before: Python itself may be installed below /tmp.
        command += ["--proc", "/proc", *proc_places(), "--dev", "/dev", "--size", size, "--tmpfs", "/tmp"]
        command += system_places()
        for path in python_places():
            command += ["--ro-bind", str(path), str(path)]
        command += ["--ro-bind", str(job.code), CODE]
        command += ["--ro-bind", str(job.inputs), INPUTS, "--size", size, "--perms", "0777", "--tmpfs", OUT]
        command += ["--remount-ro", "/", "--remount-ro", "/dev", "--chdir", CODE]
        for name, value in variables().items():
            command += ["--setenv", name, value]
        if filters is not None:
            command += ["--seccomp", str(filters)]
        # Set inside, where the processes of this namespace are counted and no others.
        return [*command, "prlimit", f"--nproc={limits.processes}", "/bin/bash", "-c", LAUNCH]


class PodmanRunner:
    """Runs programs with Podman, in an image that organizers name."""

    name = "podman"

    def __init__(self, image: str, program: str = "podman") -> None:
        self.image, self.program = image, program

    def run(self, job: CodeJob, limits: CodeLimits, stop: threading.Event) -> CodeOutcome:
        if shutil.which(self.program) is None or os.geteuid() == 0:
            said = ROOT_REFUSED if shutil.which(self.program) else "Podman is not installed"
            return CodeOutcome(CANNOT, said, fault=True)
        name = prefix_of("pod") + secrets.token_hex(6)
        known = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_RUNTIME_DIR") if name in os.environ}
        try:
            with job.predictions.open("wb") as sink:
                command = self.command(job, limits, name)
                outcome = _ended(command, 'exec "$@"', known, limits, stop, sink, ())
        finally:  # the one that asked for a container may be ended, and the container live on
            self._remove(name)
        return _judged(outcome, job, limits)

    def collect_leftovers(self) -> int:
        """Ends and removes the containers of processes that are no more; returns how many."""
        listed = [self.program, "ps", "--all", "--format", "{{.Names}}", "--filter", "name=fieldmark-pod-"]
        if shutil.which(self.program) is None:
            return 0
        said = subprocess.run(listed, capture_output=True, text=True, check=False, timeout=60).stdout
        left = [name for name in said.split() if is_left_over(name)]
        for name in left:
            self._remove(name)
        return len(left)

    def _remove(self, name: str) -> None:
        gone = [self.program, "rm", "--force", "--ignore", "--time", "0", name]
        subprocess.run(gone, capture_output=True, check=False, timeout=60)

    def command(self, job: CodeJob, limits: CodeLimits, name: str = "") -> list[str]:
        """The command line: no network, nothing writable but two sized folders in memory, no rights."""
        command = [self.program, "run", "--rm", "--network=none", "--read-only", "--cap-drop=all", "--pull=never"]
        command += [f"--name={name}"] if name else []
        command += ["--security-opt=no-new-privileges", f"--pids-limit={limits.processes}", "--preserve-fds=2"]
        command += [f"--memory={limits.memory_mb}m", f"--memory-swap={limits.memory_mb}m", "--user=65534:65534"]
        command += [f"--timeout={int(limits.seconds) + 1}", "--hostname=submission", "--log-driver=none"]
        for place in ("/tmp", OUT):
            command += [f"--mount=type=tmpfs,destination={place},tmpfs-size={limits.disk_mb}m,tmpfs-mode=1777"]
        for source, target in ((job.code, CODE), (job.inputs, INPUTS)):
            command += [f"--mount=type=bind,source={source},destination={target},ro=true"]
        for name, value in variables().items():
            command += ["--env", f"{name}={value}"]
        return [*command, self.image, "/bin/bash", "-c", LAUNCH]


def make_runner(image: str | None) -> CodeRunner:
    """What runs programs: Podman with an image, bubblewrap where none is named."""
    return PodmanRunner(image) if image else BubblewrapRunner()


def variables() -> Mapping[str, str]:
    """What a program finds in its environment."""
    return {
        "AICROWD_TEST_IMAGES_PATH": IMAGES,
        "AICROWD_TEST_METADATA_PATH": METADATA,
        "AICROWD_PREDICTIONS_OUTPUT_PATH": PREDICTIONS,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PYTHON": sys.executable,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "MALLOC_ARENA_MAX": "1",
    }


@dataclass(frozen=True)
class _Ended:
    status: int | None
    log: str
    started: bool
    too_large: bool


@contextmanager
def _high(number: int) -> Iterator[int]:
    """A channel under another number, which nothing else in a command line stands in the way of."""
    copy = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, CHANNELS_FROM)
    try:
        yield copy
    finally:
        os.close(copy)


def _ended(
    command: list[str],
    script: str,
    environment: Mapping[str, str],
    limits: CodeLimits,
    stop: threading.Event,
    sink: IO[bytes],
    kept: tuple[int, ...],
    watch: MemoryWatch | None = None,
) -> _Ended:
    """Runs a command until it ends or has to; the last that it said, and whether the walls stood."""
    told, tells = os.pipe()
    answers, answering = os.pipe()
    with _high(answering) as out, _high(tells) as mark:
        os.close(tells)
        os.close(answering)
        # The predictions are number 3 for the one that copies them out, and number 4 says that the program is started.
        whole = ["/bin/bash", "-c", f"exec 3>&{out} 4>&{mark} {out}>&- {mark}>&-; {script}", "bash", *command]
        process = subprocess.Popen(
            whole,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd="/",
            pass_fds=(out, mark, *kept),
            start_new_session=True,
        )
    assert process.stdout is not None
    last, copied = bytearray(), threading.Event()
    room = limits.output_mb * MIB + 1  # one more tells that it is too large
    listener = threading.Thread(target=_listen, args=(process.stdout, last), daemon=True)
    copier = threading.Thread(target=_copy, args=(answers, sink, room, copied), daemon=True)
    listener.start()
    copier.start()
    deadline, too_large = time.monotonic() + limits.seconds, False
    try:
        while process.poll() is None and not stop.is_set() and time.monotonic() < deadline and not too_large:
            time.sleep(POLL_S)
            too_large = watch is not None and watch.exceeded(process.pid)
        status = process.poll()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    listener.join(5)
    copier.join(5 if status is None else COPYING_S)
    os.set_blocking(told, False)
    try:
        started = bool(os.read(told, 16))
    except BlockingIOError:
        started = False
    finally:
        os.close(told)
    if status == 0 and not copied.is_set():
        raise OSError("the predictions of a program could not be copied out")
    return _Ended(status, bytes(last).decode("utf-8", "replace"), started, too_large)


def _listen(output: IO[bytes], last: bytearray) -> None:
    """Keeps the last that a program says."""
    while piece := os.read(output.fileno(), 1 << 14):
        last.extend(piece)
        del last[:-LOG_BYTES]


def _copy(answers: int, sink: IO[bytes], room: int, copied: threading.Event) -> None:
    """Writes so many bytes of the answers, reads the others, and tells when all went well."""
    try:
        while piece := os.read(answers, 1 << 16):
            room -= sink.write(piece[: max(room, 0)])
        sink.flush()
        copied.set()
    except (OSError, ValueError):  # no room, or closed because nobody waits for it any more
        pass
    finally:
        os.close(answers)


def _judged(ended: _Ended, job: CodeJob, limits: CodeLimits) -> CodeOutcome:
    size = job.predictions.stat().st_size
    if not ended.started:
        job.predictions.unlink()
        said = f"exit status {ended.status} before the program was started\n{ended.log}"
        return CodeOutcome(CANNOT, said, fault=True)
    if ended.too_large:
        problem = f"The program took more than {limits.memory_mb} MiB of memory."
    elif ended.status is None:
        problem = f"The program did not end within {limits.seconds:g} seconds."
    elif ended.status != 0:
        problem = f"The program ended with exit status {ended.status}."
    elif size == 0:
        problem = "The program wrote no predictions to AICROWD_PREDICTIONS_OUTPUT_PATH."
    elif size > limits.output_mb * MIB:
        problem = f"The predictions are larger than {limits.output_mb} MiB."
    else:
        problem = ""
    if problem:
        job.predictions.unlink()
    return CodeOutcome(problem, ended.log)
