"""Limits on all processes of a program together, where a group is delegated to us (cgroups, version 1 and 2).

Version 2 sets limits on groups only whose parent holds no process. The group of a systemd unit with `Delegate=yes` is
ours, and holds the worker itself: it moves into a group below, and the groups of programs stand beside that.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fieldmark_challenge.records.scratch import is_left_over, prefix_of

ROOT = Path("/sys/fs/cgroup")
MIB = 1 << 20
# Where the processes of the platform go in a group that is delegated to them.
WORKER = "fieldmark-worker"
_MOVING = threading.Lock()


@dataclass(frozen=True)
class Groups:
    """The groups of one program.

    Args:
        version: Of cgroups; 0 where there are no groups.
        files: Whoever writes its number into these files is in them.
    """

    version: int = 0
    files: tuple[Path, ...] = ()


@contextmanager
def bounded(*, memory_mb: int, processes: int) -> Iterator[Groups]:
    """Groups with limits, for as long as they are needed.

    Args:
        memory_mb: What all processes may use together.
        processes: How many there may be.
    """
    made: list[Path] = []
    try:
        version = 2
        made = _version_2(memory_mb, processes)
        if not made:
            version = 1
            made = _version_1(memory_mb, processes)
        yield Groups(version, tuple(group / "cgroup.procs" for group in made)) if made else Groups()
    finally:
        for group in made:
            remove_group(group)


def collect_groups() -> int:
    """Ends what still runs in groups of processes that are no more, and removes the groups; returns how many."""
    removed = 0
    for root in (ROOT, *(ROOT / name for name in ("pids", "memory") if (ROOT / name).is_dir())):
        if root == ROOT and not (ROOT / "cgroup.controllers").exists():
            continue
        for folder, names, _ in os.walk(root):
            for name in [name for name in names if is_left_over(name)]:
                remove_group(Path(folder) / name)
                removed += 1
    return removed


def _name() -> str:
    """A name that says which process made the group."""
    return prefix_of("group") + secrets.token_hex(6)


def _version_2(memory_mb: int, processes: int) -> list[Path]:
    home = _delegated()
    if home is None:
        return []
    limits = {"pids.max": str(processes), "memory.max": str(memory_mb * MIB)}
    return _made(home / _name(), limits, {"memory.swap.max": "0", "memory.oom.group": "1"})


def _version_1(memory_mb: int, processes: int) -> list[Path]:
    most = str(memory_mb * MIB)
    homes = [own_group(ROOT / controller, controller) for controller in ("pids", "memory")]
    if not all((home / "cgroup.procs").exists() for home in homes):
        return []
    pids = _made(homes[0] / _name(), {"pids.max": str(processes)}, {})
    memory = _made(homes[1] / _name(), {"memory.limit_in_bytes": most}, {"memory.memsw.limit_in_bytes": most})
    if pids and memory:
        return pids + memory
    for group in pids + memory:
        remove_group(group)
    return []


def _made(group: Path, limits: dict[str, str], further: dict[str, str]) -> list[Path]:
    """A group with limits, and with further ones where the system has them; nothing where it is not ours to make."""
    try:
        group.mkdir()
        for name, value in limits.items():
            (group / name).write_text(value)
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        return []
    for name, value in further.items():
        with contextlib.suppress(OSError):
            (group / name).write_text(value)
    return [group]


def _delegated() -> Path | None:
    """The group of version 2 in which we may make others with limits, or None.

    Only a group that belongs to this account and holds nothing but this process and its children is taken over.
    """
    if not (ROOT / "cgroup.controllers").exists():
        return None
    own = own_group(ROOT, "")
    home = own.parent if own.name == WORKER else own
    try:
        if home == ROOT or home.stat().st_uid != os.geteuid():
            return None
        with _MOVING:
            if own == home and not _moved_below(home):
                return None
            control = home / "cgroup.subtree_control"
            if not {"memory", "pids"} <= set(control.read_text(encoding="utf-8").split()):
                control.write_text("+memory +pids")
    except OSError:
        return None
    return home


def _moved_below(home: Path) -> bool:
    """Moves this process and its children into a group below theirs; False where others are in it too."""
    below = home / WORKER
    for _ in range(50):
        inside = (home / "cgroup.procs").read_text(encoding="utf-8").split()
        if not inside:
            return True
        if not all(_is_ours(int(number)) for number in inside):
            return False
        below.mkdir(exist_ok=True)
        for number in inside:
            with contextlib.suppress(ProcessLookupError):
                (below / "cgroup.procs").write_text(number)
    return False


def _is_ours(process: int) -> bool:
    """Whether a process is this one or descends from it; one that is no more is."""
    while process not in (0, os.getpid()):
        try:
            stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return True
        process = int(stat.rpartition(")")[2].split()[1])
    return process != 0


def own_group(root: Path, controller: str) -> Path:
    """The group that this process is in.

    Args:
        root: Where the groups of a controller are.
        controller: Its name; empty for version 2.
    """
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, names, path = line.split(":", 2)
        inside = root / path.lstrip("/")
        if controller in names.split(",") and inside.is_dir():
            return inside
    return root


def remove_group(group: Path) -> None:
    """Ends what is still in a group, and removes it."""
    for _ in range(50):
        with contextlib.suppress(OSError):
            for number in (group / "cgroup.procs").read_text(encoding="utf-8").split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(number), 9)
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)
        else:
            return
