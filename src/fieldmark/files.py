"""Outputs that appear complete or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fieldmark.errors import MisuseError


@contextmanager
def appearing_file(path: Path, *, mode: int | None = None) -> Iterator[Path]:
    """Yields a temporary path beside `path`; renames it to `path` when the block ends without an error.

    Args:
        path: The file.
        mode: Who may read and write it, as for `chmod`; as for any new file if not given.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o666 & ~_umask() if mode is None else mode)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def appearing_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yields a temporary folder beside `path`; renames it to `path` when the block ends without an error.

    An existing folder is replaced only with `overwrite`, and only after the new one is complete. An empty folder
    counts as none.
    """
    occupied = path.exists() and (not path.is_dir() or any(path.iterdir()))
    if occupied and not overwrite:
        raise MisuseError(f"{path} already exists. Choose another folder, or pass --overwrite to replace it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
    try:
        yield partial
        partial.chmod(0o777 & ~_umask())
        if path.exists():
            retired = partial.with_suffix(".replaced")
            path.rename(retired)
            partial.rename(path)
            shutil.rmtree(retired) if retired.is_dir() else retired.unlink()
        else:
            partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_json(path: Path, data: object) -> None:
    """Writes JSON for people and programs: indented, in the order given, with a final newline."""
    with appearing_file(path) as partial:
        partial.write_text(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
