"""Files of the platform: runs, truths and downloads, in a local folder or anywhere fsspec reaches (S3 and similar).

Names are made by us, never by those who upload. A file appears complete or not at all: locally by rename, and on an
object store because an object is written whole.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from fsspec.core import url_to_fs

from fieldmark.errors import InputError, MisuseError
from fieldmark.storage.files import appearing_file, sha256_of

CHUNK = 1 << 20
SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


class Storage:
    """A place for files.

    Args:
        root: A local folder, or an address such as `s3://bucket/prefix`.
        options: What the file system is made with (endpoint, keys); S3 otherwise reads its usual environment.
    """

    def __init__(self, root: str | Path, **options: Any) -> None:
        self.root = str(root)
        try:
            # Other processes store files as well: what lay in a folder a moment ago is no answer.
            self._fs, base = url_to_fs(self.root, use_listings_cache=False, **options)
        except ImportError as error:
            raise MisuseError(f"--files {self.root}: {error}") from error
        self._base = base.rstrip("/")
        self.is_local = "file" in (self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,))

    def put(self, source: Path, path: str) -> None:
        """Copies a local file in."""
        where = self._where(path)
        if self.is_local:
            with appearing_file(Path(where)) as partial:
                shutil.copyfile(source, partial)
                _sync(partial)
            _sync(Path(where).parent)  # the name as well: a row that names the file may be acknowledged next
        else:
            self._fs.put_file(str(source), where)

    def fetch(self, path: str, target: Path) -> Path:
        """Copies a file out to a local path.

        Raises:
            InputError: When there is no such file.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        with self.open(path) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, CHUNK)
        return target

    def fetch_folder(self, path: str, target: Path) -> Path:
        """Copies all files directly in a folder out."""
        names = self.names(path)
        if not names:
            raise InputError(f"{self.root}/{path}", found="no files", expected="the files of a challenge")
        for name in names:
            self.fetch(f"{path}/{name}", target / name)
        return target

    @contextmanager
    def open(self, path: str) -> Iterator[IO[bytes]]:
        """Opens a file for reading."""
        try:
            opened = self._fs.open(self._where(path), "rb")
        except (FileNotFoundError, IsADirectoryError) as error:
            raise InputError(f"{self.root}/{path}", found="no such file", expected="a file of the platform") from error
        with opened as file:
            yield cast(IO[bytes], file)

    def chunks(self, path: str) -> Iterator[bytes]:
        """The content of a file, piece by piece."""
        with self.open(path) as file:
            while piece := file.read(CHUNK):
                yield piece

    def exists(self, path: str) -> bool:
        return bool(self._fs.exists(self._where(path)))

    def names(self, path: str) -> list[str]:
        """The names of the files directly in a folder."""
        where = self._where(path)
        if not self._fs.isdir(where):
            return []
        entries = self._fs.ls(where, detail=True)
        files = [entry["name"].rpartition("/")[2] for entry in entries if entry["type"] == "file"]
        return sorted(name for name in files if not name.startswith("."))

    def everything(self) -> list[str]:
        """The paths of all files."""
        if not self._fs.exists(self._base):
            return []
        prefix = f"{self._base}/"
        paths = [name.removeprefix(prefix) for name in self._fs.find(self._base)]
        return sorted(name for name in paths if not name.rpartition("/")[2].startswith("."))

    def ages(self, folders: tuple[str, ...]) -> dict[str, dt.datetime]:
        """When each file in some folders was last changed."""
        if not self._fs.exists(self._base):
            return {}
        prefix, changed = f"{self._base}/", {}
        for name, about in self._fs.find(self._base, detail=True).items():
            path = name.removeprefix(prefix)
            if path.startswith(folders) and not path.rpartition("/")[2].startswith("."):
                moment = about.get("LastModified") or dt.datetime.fromtimestamp(about.get("mtime", 0), dt.UTC)
                changed[path] = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        return changed

    def try_out(self) -> None:
        """Writes a few bytes and removes them.

        Raises:
            OSError: When that does not work.
        """
        where = f"{self._base}/.probe-{secrets.token_hex(8)}"
        if self.is_local:
            Path(self._base).mkdir(parents=True, exist_ok=True)
        self._fs.pipe_file(where, b"probe")
        self._fs.rm_file(where)

    def delete(self, path: str) -> None:
        """Removes a file; one that is not there is gone already."""
        with suppress(FileNotFoundError):
            self._fs.rm_file(self._where(path))

    def _where(self, path: str) -> str:
        if not SAFE.fullmatch(path):
            raise ValueError(f"not a path of the store: {path!r}")
        return f"{self._base}/{path}"


def _sync(path: Path) -> None:
    """Waits until a file or a folder is on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def new_name(suffix: str = "") -> str:
    """A name nobody can guess and no one has used."""
    return secrets.token_hex(16) + suffix


def digest_folder(folder: Path) -> str:
    """The SHA-256 of the files of a folder: of a listing of their names and digests."""
    lines = [f"{sha256_of(file)}  {file.name}\n" for file in sorted(folder.iterdir()) if file.is_file()]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
