"""An unprivileged account for tests that root starts: programs of participants are never run by root.

A command is run as `nobody`, in mounts of its own where the folders that only root may enter (a Python below /root)
show what is needed of them and nothing else, and, where asked for, in groups that are delegated to the account.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

from fieldmark_challenge.programs import cgroups
from fieldmark_challenge.programs.runners import BubblewrapRunner, CodeJob, CodeLimits, CodeOutcome, CodeRunner
from fieldmark_challenge.programs.self_test import failure_of
from fieldmark_tests.places import IMPORTED_FROM, ROOT
from fieldmark_tests.system_programs import absent

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]


def is_root() -> bool:
    return os.geteuid() == 0


def as_account(command: Sequence[str], groups: Sequence[Path] = (), places: Sequence[Path] = ()) -> list[str]:
    """A command as an unprivileged account runs it: unchanged where we are one.

    Args:
        command: The command.
        groups: Groups that it joins first (see `delegated_groups`).
        places: Folders that it finds, besides this Python and this checkout, whatever lies above them.
    """
    if not is_root():
        return list(command)
    joined = [f"echo $$ > {shlex.quote(str(group))}/cgroup.procs" for group in groups]
    script = ["set -e", *_opened_folders(places), *joined, shlex.join(["exec", *AS_NOBODY, *command])]
    return ["unshare", "--mount", "--propagation", "private", "bash", "-c", "\n".join(script)]


def environment(**more: str) -> dict[str, str]:
    """What such a command finds around it: this checkout, and a home that it may write to."""
    paths = os.pathsep.join(map(str, IMPORTED_FROM))
    known = {name: os.environ[name] for name in ("PATH", "LANG", "OMP_NUM_THREADS") if name in os.environ}
    return {**known, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "HOME": tempfile.gettempdir(), **more}


def hand_over(folder: Path) -> Path:
    """Gives a folder and everything in it to the account; those above let it pass."""
    if is_root():
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return folder


@contextmanager
def account_folder() -> Iterator[Path]:
    """A folder of the account, where no other folder is in its way."""
    folder = Path(tempfile.mkdtemp(prefix="fieldmark-account-")).resolve()
    try:
        yield hand_over(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def delegated_groups() -> Iterator[list[Path]]:
    """Groups that belong to the account, of memory and of processes; none where we cannot make them."""
    made: list[Path] = []
    controllers = ("pids", "memory") if (cgroups.ROOT / "memory").is_dir() else ("",)
    try:
        if is_root():
            with suppress(OSError):
                for controller in controllers:
                    home = cgroups.own_group(cgroups.ROOT / controller, controller) if controller else cgroups.ROOT
                    group = home / f"fieldmark-tests-{os.getpid()}"
                    group.mkdir()
                    made.append(group)
                    for path in (group, *group.glob("cgroup.*")):
                        os.chown(path, NOBODY, NOBODY)
        yield made if len(made) == len(controllers) else []
    finally:
        for group in made:
            cgroups.remove_group(group)


def _opened_folders(places: Sequence[Path]) -> list[str]:
    """Shell commands after which the account sees this Python, this checkout and some places, wherever they lie."""
    needed = {one.resolve() for one in (Path(sys.prefix), Path(sys.base_prefix), ROOT, *places)}
    closed: dict[Path, list[Path]] = {}
    for place in sorted(needed):
        above = [path for path in reversed(place.parents) if not path.stat().st_mode & 0o001]
        if above:
            closed.setdefault(above[0], []).append(place)
    lines = ["keep=$(mktemp -d)", "mount -t tmpfs none $keep"] if closed else []
    for folder, places in closed.items():
        for number, place in enumerate(places):
            lines += [f"mkdir $keep/{number}", f"mount --bind {shlex.quote(str(place))} $keep/{number}"]
        lines.append(f"mount -t tmpfs -o mode=755 none {shlex.quote(str(folder))}")
        for number, place in enumerate(places):
            quoted = shlex.quote(str(place))
            lines += [f"mkdir -p {quoted}", f"mount --move $keep/{number} {quoted}", f"rmdir $keep/{number}"]
    return [*lines, "umount $keep", "rmdir $keep"] if closed else []


class AccountRunner:
    """Runs programs as `BubblewrapRunner` does, in a process of the account."""

    name = BubblewrapRunner.name

    def __init__(self, groups: Sequence[Path] = ()) -> None:
        self.groups = groups

    def run(self, job: CodeJob, limits: CodeLimits, stop: threading.Event) -> CodeOutcome:
        with account_folder() as folder:
            shutil.copytree(job.code, folder / "code", symlinks=True)
            shutil.copytree(job.inputs, folder / "inputs")
            (folder / "limits.json").write_text(json.dumps(asdict(limits)))
            hand_over(folder)
            command = as_account(
                [sys.executable, "-m", "fieldmark_challenge_tests.programs.account_job", str(folder)], self.groups
            )
            process = subprocess.Popen(command, env=environment(), cwd="/", start_new_session=True)
            while process.poll() is None:
                time.sleep(0.02)
                if stop.is_set():
                    process.send_signal(signal.SIGTERM)
                    process.wait()
            if not (folder / "outcome.json").exists():
                return CodeOutcome("", f"the process of the account ended with {process.returncode}", fault=True)
            if (folder / "predictions").exists():
                shutil.copyfile(folder / "predictions", job.predictions)
            return CodeOutcome(**json.loads((folder / "outcome.json").read_text()))


def account_runner() -> CodeRunner:
    """What runs programs in tests: by ourselves, or by another account where we are root."""
    return AccountRunner() if is_root() else BubblewrapRunner()


@cache
def require_sandbox() -> None:
    """Leaves a test out where programs cannot be walled in; where everything must be there, fails it."""
    if said := failure_of(account_runner()):
        absent(f"programs cannot be walled in here: {said}")
