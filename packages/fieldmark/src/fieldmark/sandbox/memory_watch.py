"""How much memory a program holds, all its processes together: counted from outside where there are no groups.

The kernel bounds the address space of each process, the number of processes and the size of each file system in memory;
the sum is what is watched. Counted are the memory of processes (shared pages once), the file systems in memory with one
KiB for each file, and what sockets can hold. `seccomp` leaves no other way to hold memory in quantity.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
FILE_BYTES = 1024  # what a file system in memory holds for a file, however empty
SOCKET_BYTES = 2 * 212_992  # where the system does not say


class MemoryWatch:
    """Counts what one program holds.

    Args:
        most: Bytes that it may hold.
        file_systems: Paths of its file systems in memory, and how large each is made.
    """

    def __init__(self, most: int, file_systems: Sequence[tuple[str, int]]) -> None:
        self.most, self.file_systems = most, file_systems
        self._socket = _socket_bytes()

    def exceeded(self, process: int) -> bool:
        """Whether a process and all that descend from it hold more than they may.

        Estimates that are quick and too high come first; what is exact takes a while for large processes.
        """
        members = descendants(process)
        files = self._files(members)
        channels = [channel for number in members for channel in _channels(number)]
        if sum(map(_resident, members)) + files + len(channels) * self._socket <= self.most:
            return False
        return sum(map(_proportional, members)) + files + len(_sockets(channels)) * self._socket > self.most

    def _files(self, members: Iterable[int]) -> int:
        """What lies in the file systems; nothing while they are being made."""
        for number in members:
            held = 0
            for path, size in self.file_systems:
                try:
                    seen = os.statvfs(f"/proc/{number}/root{path}")
                except OSError:
                    break
                if seen.f_blocks * seen.f_frsize != size:  # still that of the host
                    break
                held += (seen.f_blocks - seen.f_bfree) * seen.f_frsize + (seen.f_files - seen.f_ffree) * FILE_BYTES
            else:
                return held
        return 0


def descendants(process: int) -> list[int]:
    """A process and all that descend from it."""
    found, waiting = [], [process]
    while waiting:
        number = waiting.pop()
        found.append(number)
        with suppress(OSError):
            for task in Path(f"/proc/{number}/task").iterdir():
                with suppress(OSError):
                    waiting += map(int, _read(task / "children").split())
    return found


def _resident(process: int) -> int:
    """Bytes in memory, shared ones in full; 0 for a process that is no more."""
    try:
        return int(_read(Path(f"/proc/{process}/statm")).split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def _proportional(process: int) -> int:
    """Bytes in memory, shared ones by how many share them."""
    with suppress(OSError):
        for line in _read(Path(f"/proc/{process}/smaps_rollup")).splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return _resident(process)


def _channels(process: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return []


def _sockets(channels: Iterable[Path]) -> set[str]:
    found = set()
    for channel in channels:
        with suppress(OSError):
            if (link := str(channel.readlink())).startswith("socket:"):
                found.add(link)
    return found


def _socket_bytes() -> int:
    """What one socket can hold at most."""
    try:
        return 2 * int(_read(Path("/proc/sys/net/core/wmem_max")))
    except (OSError, ValueError):
        return SOCKET_BYTES


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
