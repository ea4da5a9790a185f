"""A release on disk, or anywhere fsspec reaches; files are opened by their path inside the release."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.zip import ZipFileSystem

from fieldmark.errors import InputError
from fieldmark.foundation.files import check_name

WORLD_FILE = "WORLD.json"
COPY_BYTES = 1 << 20


class Release:
    """The files of one release.

    Args:
        root: A local folder, or any address fsspec understands.
        single_file: Whether the root may also be one file: a local `.zip`, which is read without being unpacked, or a
            table, whose folder is then the release.

    Attributes:
        file: The name of the table that the root named; empty for a folder or a `.zip`.
    """

    def __init__(self, root: str | Path, *, single_file: bool = False) -> None:
        self.root, self.file = str(root), ""
        self._fs, self._base = url_to_fs(self.root)
        self._base = self._base.rstrip("/")
        if single_file and self._fs.isfile(self._base):
            self._open_file()
        elif not self._fs.isdir(self._base):
            kind = "a file" if self._fs.exists(self._base) else "nothing"
            raise InputError(self.root, found=kind, expected="the folder of a release")

    def _open_file(self) -> None:
        if not self._base.lower().endswith(".zip"):
            self.root = self.root.replace("\\", "/").rpartition("/")[0] or "."
            self._base, _, self.file = self._base.rpartition("/")
            return
        try:
            protocols = self._fs.protocol
            protocol = protocols if isinstance(protocols, str) else protocols[0]
            self._fs, self._base = ZipFileSystem(self._base, target_protocol=protocol), ""
        except (zipfile.BadZipFile, OSError) as error:
            hint = "Was the download cut short?"
            raise InputError(self.root, found="a file that is no zip", expected="an archive", hint=hint) from error

    def open(self, path: str) -> IO[bytes]:
        """Opens a file of the release for reading.

        Raises:
            InputError: When there is no such file.
        """
        try:
            return cast(IO[bytes], self._fs.open(self._inside(path), "rb"))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise InputError(self.where(path), found="no such file", expected="a file of the release") from error

    def read(self, path: str) -> bytes:
        """Returns the bytes of a file of the release."""
        with self.open(path) as file:
            return file.read()

    @contextmanager
    def local_copy(self, path: str) -> Iterator[Path]:
        """A file of the release as a local path, for libraries that read nothing else.

        The file itself where the release is a local folder; otherwise a temporary copy, removed at the end.
        """
        if isinstance(self._fs, LocalFileSystem):
            self.open(path).close()
            yield Path(self._inside(path))
            return
        with tempfile.TemporaryDirectory(prefix="fieldmark-") as folder:
            copy = Path(folder) / "table"
            with self.open(path) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target, COPY_BYTES)
            yield copy

    def exists(self, path: str) -> bool:
        return bool(self._fs.exists(self._inside(path)))

    def size(self, path: str) -> int:
        """How many bytes a file of the release has."""
        return int(self._fs.size(self._inside(path)))

    def sizes(self, paths: Iterable[str]) -> dict[str, int]:
        """How many bytes each of many files has; each folder is listed once. Files that are not there are left out."""
        wanted = set(paths)
        size_of: dict[str, int] = {}
        for folder in sorted({path.rpartition("/")[0] for path in wanted}):
            for name, entry in self._entries(folder):
                path = f"{folder}/{name}" if folder else name
                if path in wanted and not self._is_folder(entry):
                    linked = bool(entry.get("islink")) or entry.get("size") is None
                    size_of[path] = self.size(path) if linked else int(entry["size"])
        return size_of

    def folders(self, path: str = "") -> list[str]:
        """Names of the folders directly below `path`, sorted, hidden ones left out."""
        return sorted(self._names(path, "directory"))

    def files(self, path: str = "") -> list[str]:
        """Names of the files directly below `path`, sorted, hidden ones left out."""
        return sorted(self._names(path, "file"))

    def where(self, path: str) -> str:
        """The place of a file as a person would look for it."""
        return f"{self.root.rstrip('/')}/{path}"

    @cached_property
    def world(self) -> dict[str, Any] | None:
        """The mark of a simulated release, or None for a real one."""
        if not self.exists(WORLD_FILE):
            return None
        try:
            return dict(json.loads(self.read(WORLD_FILE)))
        except (ValueError, TypeError) as error:
            found, hint = "no JSON object", "Make the world again, or remove the file if the release is real."
            raise InputError(self.where(WORLD_FILE), found=found, expected="the mark of a world", hint=hint) from error

    def _inside(self, path: str) -> str:
        """The path as the file system knows it; the names in an archive begin with no slash."""
        return f"{self._base}/{path}" if self._base else path

    def _names(self, path: str, kind: str) -> Iterator[str]:
        for name, entry in self._entries(path):
            if self._is_folder(entry) == (kind == "directory") and not name.startswith("."):
                check_name(entry["name"])
                yield name

    def _entries(self, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """What lies directly below a folder: its name, and what the file system says of it."""
        folder = self._inside(path).rstrip("/")
        for entry in self._fs.ls(folder, detail=True) if self._fs.isdir(folder) else ():
            yield entry["name"].rstrip("/").rpartition("/")[2], entry

    def _is_folder(self, entry: dict[str, Any]) -> bool:
        return entry["type"] == "directory" or (bool(entry.get("islink")) and bool(self._fs.isdir(entry["name"])))
