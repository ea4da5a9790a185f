"""Limits on all processes of a program together, where the system lets us set them (cgroups, version 1 and 2)."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fieldmark.challenge.records.scratch import is_left_over, prefix_of

ROOT = Path("/sys/fs/cgroup")
MIB = 1 << 20


@contextmanager
def bounded(*, memory_mb: int, processes: int) -> Iterator[list[Path]]:
    """Groups with limits; whoever writes its number into these files is in them. None where there are no groups.

    Args:
        memory_mb: What all processes may use together.
        processes: How many there may be.
    """
    made: list[Path] = []
    try:
        made = _version_2(memory_mb, processes) or _version_1(memory_mb, processes)
        yield [group / "cgroup.procs" for group in made]
    finally:
        for group in made:
            _remove(group)


def collect_groups() -> int:
    """Ends what still runs in groups of processes that are no more, and removes the groups; returns how many."""
    removed = 0
    for root in (ROOT, *(ROOT / name for name in ("pids", "memory") if (ROOT / name).is_dir())):
        if root == ROOT and not (ROOT / "cgroup.controllers").exists():
            continue
        for folder, names, _ in os.walk(root):
            for name in [name for name in names if is_left_over(name)]:
                _remove(Path(folder) / name)
                removed += 1
    return removed


def _name() -> str:
    """A name that says which process made the group."""
    return prefix_of("group") + secrets.token_hex(6)


def _version_2(memory_mb: int, processes: int) -> list[Path]:
    controllers = ROOT / "cgroup.controllers"
    if not controllers.exists():
        return []
    group = _own(ROOT, "") / _name()
    try:
        group.mkdir()
        (group / "pids.max").write_text(str(processes))
        (group / "memory.max").write_text(str(memory_mb * MIB))
        with contextlib.suppress(OSError):
            (group / "memory.swap.max").write_text("0")
    except OSError:  # not ours to make, or without these controllers
        with contextlib.suppress(OSError):
            group.rmdir()
        return []
    return [group]


def _version_1(memory_mb: int, processes: int) -> list[Path]:
    limits = {
        "pids": {"pids.max": processes},
        "memory": {"memory.limit_in_bytes": memory_mb * MIB},
    }
    made: list[Path] = []
    for controller, values in limits.items():
        group = _own(ROOT / controller, controller) / _name()
        try:
            group.mkdir()
            made.append(group)
            for name, value in values.items():
                (group / name).write_text(str(value))
        except OSError:
            for one in made:
                _remove(one)
            return []
    return made


def _own(root: Path, controller: str) -> Path:
    """The group that this process is in."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, names, path = line.split(":", 2)
        inside = root / path.lstrip("/")
        if controller in names.split(",") and inside.is_dir():
            return inside
    return root


def _remove(group: Path) -> None:
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
