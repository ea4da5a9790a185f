"""Folders that take seconds to make: made once in a run, by whichever process of it comes first, and read by all."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

Files = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class MadeFolder:
    """A folder that no test may write to, and what its maker returned."""

    root: Path
    told: Any


def files_of(root: Path) -> Files:
    """Size and time of change of every file and folder."""
    found = {path: path.stat() for path in (root, *root.rglob("*"))}
    return {
        str(path.relative_to(root)): (about.st_size if path.is_file() else 0, about.st_mtime_ns)
        for path, about in found.items()
    }


@contextmanager
def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Any]) -> Iterator[MadeFolder]:
    """Yields the folder `name`, which `make` fills where no process of this run has done so; then sees it unchanged.

    Args:
        factory: Where the run keeps its temporary folders.
        name: The name of the folder; two makers must not share one.
        make: Writes the folder at the path it is given, which does not exist; what it returns is kept as JSON.
    """
    base = factory.getbasetemp()
    parent = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "made-once" / name
    parent.mkdir(parents=True, exist_ok=True)
    root, told, files = parent / "world", parent / "told.json", parent / "files.json"
    with _alone(parent / "lock"):
        if not files.exists():  # written last: a maker that failed leaves none
            told.write_text(json.dumps(make(root)))
            files.write_text(json.dumps(files_of(root)))
    yield MadeFolder(root, json.loads(told.read_text()))
    before = {path: tuple(about) for path, about in json.loads(files.read_text()).items()}
    changed = sorted(path for path, _ in before.items() ^ files_of(root).items())
    assert not changed, f"a test wrote to the shared folder {name}: {', '.join(changed[:5])}; it should copy it first"


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # let go of when the file is closed, also where the process dies
        yield
