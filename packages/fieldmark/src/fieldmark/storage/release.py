"""A release on disk, or anywhere fsspec reaches; files are opened by their path inside the release.

Whoever reads a release never asks where it lies: `release.open`, `read`, `read_many`, `local_copy`, `exists`, `files`,
`folders`, `size` and `sizes` are the same for a folder, a zip and an address such as `s3://bucket/fungitastic`. What
makes addresses cheap is in `storage/remote_files.py`; a reader helps by asking for many things at once:
`read_many(paths)` rather than `read` in a loop, `files(folder)` or `sizes(paths)` rather than many `exists`.
A library that wants a path gets one by `local_copy`. `Path(release.root)` is right for messages alone.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TypeVar

from fieldmark.errors import InputError
from fieldmark.storage.addresses import file_system, is_address, missing, patiently, place_text, reaching
from fieldmark.storage.disk_files import AHEAD, DiskFiles, StoredFiles
from fieldmark.storage.file_cache import default_file_cache
from fieldmark.storage.files import check_name
from fieldmark.storage.remote_files import RemoteFiles

R = TypeVar("R")

WORLD_FILE = "WORLD.json"
COPY_BYTES = 1 << 20
LOCAL = "file"


class Release:
    """The files of one release.

    Args:
        root: A local folder, or any address fsspec understands.
        single_file: Whether the root may also be one file: a `.zip`, which is read without being unpacked, or a
            table, whose folder is then the release.

    Attributes:
        root: The root as it was given; an address with both of its slashes.
        file: The name of the table that the root named; empty for a folder or a `.zip`.

    Raises:
        InputError: When there is nothing, or when it may not be read.
    """

    def __init__(self, root: str | Path, *, single_file: bool = False) -> None:
        self.root, self.file = place_text(root), ""
        system, base = file_system(root)
        local = not is_address(root) or _protocol(system) == LOCAL
        if single_file and patiently(system, self.root, lambda: system.isfile(base)):
            if base.lower().endswith(".zip"):
                self._files: StoredFiles = self._opened_zip(system, base)
                return
            self.root = self.root.replace("\\", "/").rpartition("/")[0] or "."
            base, _, self.file = base.rpartition("/")
        if local:
            self._files = DiskFiles(base)
        else:
            self._files = RemoteFiles(system, base, self.root, cache=default_file_cache())
        if not self._files.is_folder(""):
            raise self._no_folder(system, base)

    def _no_folder(self, system: Any, base: str) -> InputError:
        expected = "the folder of a release"
        if patiently(system, self.root, lambda: system.exists(base)):
            return InputError(self.root, found="a file", expected=expected)
        if is_address(self.root):
            return missing(self.root, expected)
        return InputError(self.root, found="no such directory", expected=expected)

    def _opened_zip(self, system: Any, base: str) -> RemoteFiles:
        from fsspec.implementations.zip import ZipFileSystem

        try:
            with reaching(self.root):
                archive = ZipFileSystem(base, target_protocol=_protocol(system))
                return RemoteFiles(archive, "", self.root, archive=True)
        except (zipfile.BadZipFile, OSError) as error:
            hint = "Was the download cut short?"
            raise InputError(self.root, found="a file that is no zip", expected="an archive", hint=hint) from error

    def within(self, folder: str) -> Release:
        """A folder of the release as a release of its own, also inside of a zip."""
        inner = object.__new__(Release)
        inner.root, inner.file = self.where(folder), ""
        inner._files = self._files.below(folder)
        return inner

    def open(self, path: str) -> IO[bytes]:
        """Opens a file of the release for reading; a large one at an address is fetched piece by piece.

        Raises:
            InputError: When there is no such file.
        """
        with self._named(path):
            return self._files.open(path)

    def read(self, path: str) -> bytes:
        """Returns the bytes of a file of the release.

        Raises:
            InputError: When there is no such file.
        """
        with self._named(path):
            return self._files.read(path)

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        """The bytes of many files of the release, in order; at an address they are fetched beside each other.

        Raises:
            InputError: When there is no such file.
        """
        wanted = list(paths)
        return self._each_named(wanted, self._files.read_many(wanted))

    def open_many(self, paths: Iterable[str], ahead: int = AHEAD) -> Iterator[IO[bytes]]:
        """Many files of the release opened for reading, in order, beside each other as by `read_many`.

        Args:
            paths: The files.
            ahead: How many are opened before they are asked for; few where each is long.

        Raises:
            InputError: When there is no such file.
        """
        wanted = list(paths)
        return self._each_named(wanted, self._files.open_many(wanted, ahead))

    def local(self, path: str) -> Path | None:
        """A file of the release as a local path that stays; None where it would have to be copied."""
        with self._named(path):
            return self._files.local(path)

    @contextmanager
    def local_copy(self, path: str) -> Iterator[Path]:
        """A file of the release as a local path, for libraries that read nothing else.

        The file itself where the release is a local folder, the copy in the cache where there is one; otherwise a
        temporary copy, removed at the end.
        """
        kept = self.local(path)
        if kept is not None:
            yield kept
            return
        with tempfile.TemporaryDirectory(prefix="fieldmark-") as folder:
            copy = Path(folder) / "table"
            with self.open(path) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target, COPY_BYTES)
            yield copy

    def exists(self, path: str) -> bool:
        return self._files.exists(path)

    def size(self, path: str) -> int:
        """How many bytes a file of the release has."""
        with self._named(path):
            return self._files.size(path)

    def sizes(self, paths: Iterable[str]) -> dict[str, int]:
        """How many bytes each of many files has; each folder is listed once. Files that are not there are left out."""
        names_in: dict[str, set[str]] = {}
        for path in paths:
            folder, _, name = path.rpartition("/")
            names_in.setdefault(folder, set()).add(name)
        return {
            f"{folder}/{name}" if folder else name: size
            for folder in sorted(names_in)
            for name, size in self._files.sizes(folder, names_in[folder]).items()
        }

    def folders(self, path: str = "") -> list[str]:
        """Names of the folders directly below `path`, sorted, hidden ones left out."""
        return self.entries(path)[0]

    def files(self, path: str = "") -> list[str]:
        """Names of the files directly below `path`, sorted, hidden ones left out."""
        return self.entries(path)[1]

    def entries(self, path: str = "") -> tuple[list[str], list[str]]:
        """Names of the folders and of the files directly below `path`, sorted, hidden ones left out; by one listing."""
        entries = sorted(self._named_entries(path))
        return [name for name, is_folder in entries if is_folder], [name for name, folder in entries if not folder]

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

    def _named_entries(self, path: str) -> Iterator[tuple[str, bool]]:
        for name, is_folder in self._files.names(path.rstrip("/")):
            if not name.startswith("."):
                check_name(f"{self.where(path)}/{name}")
                yield name, is_folder

    def _each_named(self, paths: Iterable[str], fetched: Iterator[R]) -> Iterator[R]:
        for path in paths:
            with self._named(path):
                yield next(fetched)

    @contextmanager
    def _named(self, path: str) -> Iterator[None]:
        """Says which file is missing, as a person would look for it."""
        try:
            yield
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise InputError(self.where(path), found="no such file", expected="a file of the release") from error


def _protocol(system: Any) -> str:
    """What the addresses of a file system begin with."""
    return str(system.protocol if isinstance(system.protocol, str) else system.protocol[0])
