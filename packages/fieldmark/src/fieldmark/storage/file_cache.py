"""Local copies of files that lie elsewhere, the least recently used of which make room for new ones.

```
ROOT/<2 letters>/<digest>     the bytes of one file; the digest is of its address, size and version
```

A file that was replaced at its address has another version, and so another name here. Copies appear by rename, so
that several processes may share a folder. How much is kept is said by `FIELDMARK_CACHE_GB`: 10 if it is not set, and
nothing with 0.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

from fieldmark.errors import MisuseError
from fieldmark.storage.addresses import refuse_address
from fieldmark.storage.files import appearing_file

GB = 10**9
DEFAULT_GB = 10.0
# What is larger than this share of the cache would push out everything else.
LARGEST_SHARE = 0.25
# How full the cache is after it was tidied.
TIDIED_SHARE = 0.9


class FileCache:
    """Copies of files by their address, size and version.

    Args:
        root: The folder.
        most_bytes: How much is kept.
    """

    def __init__(self, root: Path, most_bytes: int) -> None:
        self.root, self.most_bytes = root, most_bytes
        self._lock = threading.Lock()
        self._held_bytes: int | None = None

    def takes(self, size: int) -> bool:
        """Whether a file of that size is kept."""
        return size <= LARGEST_SHARE * self.most_bytes

    def find(self, address: str, size: int, version: str) -> Path | None:
        """The copy of a file, if there is one; it counts as used now."""
        path = self._path(address, size, version)
        try:
            os.utime(path)
        except OSError:
            return None
        return path

    def add(self, address: str, size: int, version: str, write: Callable[[Path], None]) -> Path:
        """Keeps a file that `write` puts at the path it is given, and returns the copy."""
        path = self._path(address, size, version)
        with appearing_file(path) as partial:
            write(partial)
        self._make_room(size, path)
        return path

    def _path(self, address: str, size: int, version: str) -> Path:
        name = hashlib.blake2b(f"{address}\0{size}\0{version}".encode(), digest_size=20).hexdigest()
        return self.root / name[:2] / name

    def _make_room(self, added: int, newest: Path) -> None:
        with self._lock:
            if self._held_bytes is None:
                self._held_bytes = sum(size for _, size, _ in self._copies())
            else:
                self._held_bytes += added
            if self._held_bytes <= self.most_bytes:
                return
            # Other processes add as well, so what is there is counted again.
            copies = sorted(self._copies())
            self._held_bytes = sum(size for _, size, _ in copies)
            for _, size, path in copies:
                if self._held_bytes <= TIDIED_SHARE * self.most_bytes:
                    return
                if path != newest:
                    path.unlink(missing_ok=True)
                    self._held_bytes -= size

    def _copies(self) -> list[tuple[int, int, Path]]:
        """When each copy was last used, its size, and where it lies."""
        copies = []
        for path in self.root.glob("??/*"):
            try:
                about = path.stat()
            except OSError:  # another process has removed it
                continue
            copies.append((about.st_mtime_ns, about.st_size, path))
        return copies


def cache_root() -> Path:
    """Where Fieldmark keeps what it can make again: FIELDMARK_CACHE, or the user's cache folder.

    Raises:
        MisuseError: When FIELDMARK_CACHE is an address.
    """
    root = os.environ.get("FIELDMARK_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "fieldmark")
    refuse_address(root, "FIELDMARK_CACHE")
    return Path(root).expanduser()


def default_file_cache() -> FileCache | None:
    """The cache of the settings, shared by all of this process; None where nothing is to be kept.

    Raises:
        MisuseError: When FIELDMARK_CACHE_GB is no size.
    """
    stated = os.environ.get("FIELDMARK_CACHE_GB", "").strip()
    try:
        size_gb = float(stated) if stated else DEFAULT_GB
    except ValueError:
        size_gb = -1.0
    if not 0 <= size_gb < float("inf"):
        raise MisuseError(f"FIELDMARK_CACHE_GB is {stated!r}; it takes a number of gigabytes, and 0 keeps nothing.")
    return _shared(cache_root() / "files", round(size_gb * GB)) if size_gb else None


@cache
def _shared(root: Path, most_bytes: int) -> FileCache:
    return FileCache(root, most_bytes)
