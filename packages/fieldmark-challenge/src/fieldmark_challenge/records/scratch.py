"""Folders that a process of the platform needs for a moment, and those that a killed one left behind.

The name of a folder says which process made it: where, with which number, and since when. A folder whose process is no
more is left over, whatever ended the process, and the next one that starts removes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

log = logging.getLogger(__name__)

NAME = re.compile(r"fieldmark-[a-z]+-(?P<place>[0-9a-f]{8})-(?P<process>\d+)-(?P<since>\d+)-\w+")
# Whether a process lives is known on its own machine only; elsewhere a folder is left over when it is this old.
OLD_S = 2 * 86_400


@contextmanager
def scratch(kind: str) -> Iterator[Path]:
    """A folder for as long as it is needed.

    Args:
        kind: What for, in small letters.
    """
    with tempfile.TemporaryDirectory(prefix=prefix_of(kind), ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()


def prefix_of(kind: str) -> str:
    """How the name of a folder of this process begins."""
    process = os.getpid()
    return f"fieldmark-{kind}-{_place()}-{process}-{_started(process) or 0}-"


def collect_leftovers(folder: Path | None = None) -> int:
    """Removes the folders of processes that are no more.

    Args:
        folder: Where they lie; the folder for temporary files of the system if not given.

    Returns:
        How many were removed.
    """
    removed = 0
    for path in sorted((folder or Path(tempfile.gettempdir())).glob("fieldmark-*")):
        found = NAME.fullmatch(path.name)
        if found is None or path.is_symlink() or not path.is_dir() or not _left_over(path, found):
            continue
        shutil.rmtree(path, ignore_errors=True)
        removed += 1
    if removed:
        log.info("removed %d folders that ended processes left behind", removed)
    return removed


def is_left_over(name: str) -> bool:
    """Whether what bears this name (see `prefix_of`) belongs to a process of this machine that is no more."""
    found = NAME.fullmatch(name)
    if found is None or found["place"] != _place():
        return False
    started = _started(int(found["process"]))
    return started is None or str(started) != found["since"]


def _left_over(path: Path, found: re.Match[str]) -> bool:
    if found["place"] != _place():
        with contextlib.suppress(OSError):
            return time.time() - path.stat().st_mtime > OLD_S
        return False
    return is_left_over(path.name)


@cache
def _place() -> str:
    """Where numbers of processes mean what they mean here: this machine, and its container if it is in one."""
    space = ""
    with contextlib.suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink())
    return hashlib.sha256(f"{socket.gethostname()} {space}".encode()).hexdigest()[:8]


def _started(process: int) -> int | None:
    """When a process started, in ticks since the machine did; None where there is no such process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _alive(process)
    return int(stat.rpartition(")")[2].split()[19])


def _alive(process: int) -> int | None:
    """The same where there is no /proc: 0 for a process that lives."""
    if Path("/proc/self").exists():
        return None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return 0
    return 0
