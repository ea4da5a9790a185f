"""The part of a file that has come in so far, and the note on what it is a part of."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from fieldmark.releases.download.local_copies import new_hash
from fieldmark.releases.download.manifest import Checksum
from fieldmark.storage.files import write_json

BLOCK = 1 << 20


@dataclass(frozen=True)
class Version:
    """Which version of a file a server sends.

    Attributes:
        url: The address asked, before any redirect.
        total: The size of the whole file, where the server says it.
        etag: Its strong version mark.
        last_modified: Its time of change, as the server writes it.
    """

    url: str
    total: int | None = None
    etag: str | None = None
    last_modified: str | None = None

    @property
    def mark(self) -> str | None:
        """What the header `If-Range` takes: the strong mark, else the time of change."""
        return self.etag or self.last_modified

    def same_as(self, other: Version) -> bool:
        """Whether nothing speaks against two answers being about the same version of the same address."""
        pairs = ((self.total, other.total), (self.etag, other.etag), (self.last_modified, other.last_modified))
        return self.url == other.url and all(a == b for a, b in pairs if a is not None and b is not None)


class Partial:
    """A file on its way in.

    Args:
        target: Where the file is to appear.
        checksum: The published checksum, whose hash runs along.
    """

    def __init__(self, target: Path, checksum: Checksum | None) -> None:
        self.target = target
        self.path = target.with_name(f"{target.name}.partial")
        self.checksum = checksum
        self._note = target.with_name(f"{target.name}.partial.json")
        self._hash = new_hash(checksum)
        self._hashed = 0
        self.version = self._read_note()
        if self.version is None and self.path.exists():
            self.discard()  # what it is a part of is not known

    @property
    def size(self) -> int:
        """The bytes that are there."""
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def is_complete(self) -> bool:
        """Whether all the bytes that were announced are there."""
        return self.version is not None and self.version.total == self.size > 0

    def resume_at(self, url: str) -> int:
        """Where to go on if this address is asked; 0 if joining cannot be made sure of.

        The same address with a version mark is safe. Another address, or one without a mark, is tried only where a
        published checksum will judge the result.
        """
        if self.version is None or self.size == 0:
            return 0
        known_version = self.version.url == url and self.version.mark is not None
        return self.size if known_version or self.checksum is not None else 0

    def begin(self, version: Version, start: int) -> None:
        """Makes ready to add bytes from `start` on, which belong to this version."""
        self.version = version
        write_json(self._note, asdict(version))
        with self.path.open("ab") as content:
            content.truncate(start)
        if self._hashed != start:
            self._hash_again(start)

    def add(self, block: bytes) -> None:
        """Adds bytes at the end."""
        with self.path.open("ab", buffering=0) as content:
            content.write(block)
        self._hash.update(block)
        self._hashed += len(block)

    def digest(self) -> str:
        """The digest of what is there, as `md5:...`."""
        if self._hashed != self.size:
            self._hash_again(self.size)
        return f"{self._hash.name}:{self._hash.hexdigest()}"

    def complete(self) -> None:
        """Lets the file appear in its place."""
        with self.path.open("rb") as content:
            os.fsync(content.fileno())
        self.path.replace(self.target)
        self._note.unlink(missing_ok=True)

    def set_aside(self) -> Path:
        """Puts away a file that is wrong, as `NAME.bad`; returns where."""
        bad = self.target.with_name(f"{self.target.name}.bad")
        self.path.replace(bad)
        self.discard()
        return bad

    def discard(self) -> None:
        """Forgets everything that came in."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)
        self.version, self._hash, self._hashed = None, new_hash(self.checksum), 0

    def _hash_again(self, upto: int) -> None:
        self._hash, self._hashed = new_hash(self.checksum), 0
        with self.path.open("rb") as content:
            while block := content.read(min(BLOCK, upto - self._hashed)):
                self._hash.update(block)
                self._hashed += len(block)

    def _read_note(self) -> Version | None:
        try:
            return Version(**json.loads(self._note.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
