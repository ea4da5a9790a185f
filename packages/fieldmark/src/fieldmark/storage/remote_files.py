"""Files below an address, in as few requests as will do.

A server takes tens of milliseconds for whatever it is asked, and is paid by the request. So

- a file is fetched by one request, many files beside each other by `FETCHES` threads;
- what lies in a folder is asked once, a thousand names at a time, and remembered; where many folders beside each
  other are asked for, their whole tree is listed at once, in the same number of pages;
- of single files the size is asked one by one, until `ASKED_SINGLY` of a folder, or of the folders beside it, were:
  then folders are listed;
- what was fetched is kept on the local disk (`file_cache`), by its address, size and version.

Releases do not change while they are read: what was remembered is not asked again.
"""

from __future__ import annotations

import io
import lzma
import threading
import zipfile
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from fieldmark.errors import InputError
from fieldmark.storage.addresses import patiently
from fieldmark.storage.disk_files import AHEAD
from fieldmark.storage.file_cache import FileCache, default_file_cache

R = TypeVar("R")

# How many files are fetched at a time.
FETCHES = 32
# How many files of a folder, or folders of a folder, are asked for one by one before all are listed.
ASKED_SINGLY = 16
LISTED_SINGLY = 8
# Files up to this size are fetched whole when they are opened; of larger ones pieces of this size are.
PIECE_BYTES = 8 << 20
# What tells one version of a file from the next, by file system.
_VERSIONS = ("ETag", "etag", "md5Hash", "content_md5", "mtime", "LastModified", "last_modified", "updated", "created")


class FileFacts(NamedTuple):
    """What a server says of a file."""

    size: int
    version: str


class _Known:
    """What has been learned about the files of an address."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.folders: dict[str, dict[str, FileFacts | None]] = {}
        self.single: dict[str, FileFacts] = {}
        self.asked: Counter[str] = Counter()
        self.asked_below: Counter[str] = Counter()
        self.listed: Counter[str] = Counter()


class RemoteFiles:
    """The files below an address; `disk_files.StoredFiles` says what each method promises.

    Args:
        system: The file system, of fsspec.
        base: The path of the root in it.
        root: The root as a person writes it, for messages.
        cache: Where copies are kept, if they are to be kept.
        archive: Whether it is an archive, whose files are read from their beginning on and never in pieces.
    """

    def __init__(
        self, system: Any, base: str, root: str, *, cache: FileCache | None = None, archive: bool = False
    ) -> None:
        self._system, self._base, self._root, self._cache, self._archive = system, base, root, cache, archive
        self._known = _Known()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_cache", "_known")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The file system opens itself anew in another process; what is learned there serves all blocks of its work.
        self.__dict__.update(state)
        self._cache = None if self._archive else default_file_cache()
        self._known = _known_of(self._root)

    def open(self, path: str) -> IO[bytes]:
        facts = self._facts(path)
        copy = self._kept(path, facts)
        if copy is not None:
            return copy
        if facts.size <= PIECE_BYTES:
            return io.BytesIO(self._fetch(path, facts))
        if self._archive:
            packed = self._ask(path, lambda: self._system.open(self._inside(path), "rb"))
            return io.BufferedReader(_Packed(packed, self._where(path), self._system), PIECE_BYTES)
        return io.BufferedReader(_Pieces(self, path, facts.size), PIECE_BYTES)

    def read(self, path: str) -> bytes:
        facts = self._facts(path)
        copy = self._kept(path, facts)
        if copy is None:
            return self._fetch(path, facts)
        with copy:
            return copy.read()

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        return self._beside_each_other(self.read, paths)

    def open_many(self, paths: Iterable[str], ahead: int = AHEAD) -> Iterator[IO[bytes]]:
        return self._beside_each_other(self.open, paths, ahead)

    def _beside_each_other(self, get: Callable[[str], R], paths: Iterable[str], ahead: int = AHEAD) -> Iterator[R]:
        """What is got for each path, in order; a few dozen are under way at any time."""
        wanted = list(paths)
        if self._archive or len(wanted) < 2:
            yield from map(get, wanted)
            return
        self._list_what_is_needed(wanted)
        waiting: deque[Future[R]] = deque()
        try:
            for path in wanted:
                waiting.append(_threads().submit(get, path))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def exists(self, path: str) -> bool:
        try:
            self._facts(path)
        except FileNotFoundError:
            return False
        except IsADirectoryError:
            return True
        return True

    def is_folder(self, path: str) -> bool:
        return self._folder(path) is not None

    def names(self, folder: str) -> Iterator[tuple[str, bool]]:
        for name, facts in (self._folder(folder) or {}).items():
            yield name, facts is None

    def sizes(self, folder: str, names: set[str]) -> dict[str, int]:
        there = self._folder(folder) or {}
        return {name: facts.size for name in names if (facts := there.get(name)) is not None}

    def size(self, path: str) -> int:
        return self._facts(path).size

    def local(self, path: str) -> Path | None:
        facts = self._facts(path)
        copy = self._kept(path, facts)
        if copy is None:
            return None
        with copy:
            return Path(copy.name)

    def below(self, folder: str) -> RemoteFiles:
        inside, where = self._inside(folder), self._where(folder)
        return RemoteFiles(self._system, inside, where, cache=self._cache, archive=self._archive)

    def read_piece(self, path: str, start: int, end: int) -> bytes:
        """Some bytes of a file, by one request."""
        where = self._inside(path)
        data = self._ask(path, lambda: self._system.cat_file(where, start=start, end=end))
        if len(data) != end - start:
            found = f"{len(data)} bytes, where {end - start} were announced"
            hint = "Was the file replaced meanwhile? Run the same command again."
            raise InputError(self._where(path), found=found, expected="a file that stays as it is", hint=hint)
        return bytes(data)

    def _fetch(self, path: str, facts: FileFacts) -> bytes:
        if self._archive:
            return bytes(self._ask(path, lambda: self._system.cat_file(self._inside(path))))
        return self.read_piece(path, 0, facts.size) if facts.size else b""

    def _kept(self, path: str, facts: FileFacts) -> io.BufferedReader | None:
        """The copy on the local disk, opened and made where there is none; None where none is to be kept."""
        if self._cache is None or not facts.version or not self._cache.takes(facts.size):
            return None
        address = self._where(path)
        for _ in range(2):
            copy = self._cache.find(address, *facts)
            if copy is None:
                copy = self._cache.add(address, *facts, lambda partial: self._download(path, facts, partial))
            try:
                return copy.open("rb")
            except FileNotFoundError:  # another process needed the room
                continue
        return None

    def _download(self, path: str, facts: FileFacts, target: Path) -> None:
        with target.open("wb") as file:
            for start in range(0, facts.size, PIECE_BYTES):
                file.write(self.read_piece(path, start, min(start + PIECE_BYTES, facts.size)))

    def _facts(self, path: str) -> FileFacts:
        """What is known of a file.

        Raises:
            FileNotFoundError: When there is nothing.
            IsADirectoryError: When it is a folder.
        """
        folder, _, name = path.rpartition("/")
        if not path:
            raise IsADirectoryError(self._root)
        with self._known.lock:
            known = self._known.folders.get(folder)
            if known is None and path in self._known.single:
                return self._known.single[path]
            above = folder.rpartition("/")[0]
            often = max(self._known.asked[folder], self._known.asked_below[above]) >= ASKED_SINGLY
            if known is None and (not folder or often):
                known = self._folder(folder) or {}
            self._known.asked[folder] += 1
            self._known.asked_below[above] += 1
        if known is not None:
            return _file_in(known, name, self._where(path))
        about = self._ask(path, lambda: self._system.info(self._inside(path)))
        facts = _facts_of(about)
        if facts is None:
            raise IsADirectoryError(self._where(path))
        with self._known.lock:
            self._known.single[path] = facts
        return facts

    def _list_what_is_needed(self, paths: list[str]) -> None:
        """Lists the folders of which many files are asked for at once, rather than asking for each."""
        for folder, number in Counter(path.rpartition("/")[0] for path in paths).items():
            with self._known.lock:
                if folder not in self._known.folders and self._known.asked[folder] + number > ASKED_SINGLY:
                    self._folder(folder)

    def _folder(self, folder: str) -> dict[str, FileFacts | None] | None:
        """What lies in a folder, by name, None for what is a folder itself; None where there is no such folder."""
        with self._known.lock:
            if folder not in self._known.folders and not self._is_absent(folder):
                top = self._top_to_list(folder)
                if top is None:
                    self._list(folder)
                else:
                    self._list_tree(top)
            return self._known.folders.get(folder)

    def _is_absent(self, folder: str) -> bool:
        """Whether a listing that is already known says that there is no such folder."""
        parent, _, name = folder.rpartition("/")
        known = self._known.folders.get(parent) if folder else None
        return known is not None and (name not in known or known[name] is not None)

    def _top_to_list(self, folder: str) -> str | None:
        """The folder whose whole tree is to be listed, where enough of those in it were by themselves."""
        top = None
        while folder:
            folder = folder.rpartition("/")[0]
            self._known.listed[folder] += 1
            if self._known.listed[folder] <= LISTED_SINGLY:
                return top
            top = folder
        return top

    def _list(self, folder: str) -> None:
        where = self._inside(folder)
        try:
            entries = self._ask(folder, lambda: self._system.ls(where, detail=True))
        except (FileNotFoundError, NotADirectoryError):
            return
        own = where.strip("/")
        others = [entry for entry in entries if entry["name"].strip("/") != own]
        # A file is listed as itself; some stores keep an empty file under the name of a folder, with a slash.
        if entries and not others and entries[0]["type"] != "directory" and not entries[0]["name"].endswith("/"):
            return
        names = {entry["name"].strip("/").rpartition("/")[2]: entry for entry in others}
        self._known.folders[folder] = {name: _facts_of(entry) for name, entry in names.items()}

    def _list_tree(self, top: str) -> None:
        where = self._inside(top)
        found = self._ask(top, lambda: self._system.find(where, detail=True))
        self._known.folders.setdefault(top, {})
        skipped = len(where.strip("/")) + 1 if where.strip("/") else 0
        for name, entry in found.items():
            below = name.strip("/")[skipped:]
            path = f"{top}/{below}" if top else below
            if not below or name.endswith("/"):
                continue
            folder, _, own = path.rpartition("/")
            self._known.folders.setdefault(folder, {})[own] = _facts_of(entry)
            while folder and folder != top:
                parent, _, own = folder.rpartition("/")
                inner = self._known.folders.setdefault(parent, {})
                if own in inner:
                    break
                inner[own], folder = None, parent

    def _ask(self, path: str, call: Any) -> Any:
        if not self._archive:
            return patiently(self._system, self._where(path), call)
        with unpacking(self._where(path)):
            return patiently(self._system, self._where(path), call)

    def _inside(self, path: str) -> str:
        """The path as the file system knows it; the names in an archive begin with no slash."""
        return f"{self._base}/{path}".rstrip("/") if self._base else path

    def _where(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}".rstrip("/")


@contextmanager
def unpacking(where: str) -> Iterator[None]:
    """Says of a file in an archive that it cannot be unpacked.

    Raises:
        InputError: For whatever a damaged archive brings about. What is not there stays a FileNotFoundError.
    """
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        OSError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        found, hint = (
            f"something that cannot be unpacked ({error})",
            "Was the download cut short? Get the archive again.",
        )
        raise InputError(where, found=found, expected="a file of the archive", hint=hint) from error


class _Packed(io.RawIOBase):
    """A long file of an archive, which may turn out to be damaged at any place."""

    def __init__(self, packed: IO[bytes], where: str, archive: Any) -> None:
        self._packed, self._where = packed, where
        self._archive = archive  # closes itself when nobody holds it

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._packed.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with unpacking(self._where):
            return self._packed.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        with unpacking(self._where):
            data = self._packed.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._packed.close()
        super().close()


class _Pieces(io.RawIOBase):
    """A long file, a piece at a time, each by a request of its own."""

    def __init__(self, files: RemoteFiles, path: str, size: int) -> None:
        self._files, self._path, self._size, self._at = files, path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        data = self._files.read_piece(self._path, self._at, end)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _facts_of(entry: dict[str, Any]) -> FileFacts | None:
    if entry["type"] == "directory":
        return None
    version = next((str(entry[name]) for name in _VERSIONS if entry.get(name)), "")
    return FileFacts(int(entry.get("size") or 0), version)


def _file_in(folder: dict[str, FileFacts | None], name: str, where: str) -> FileFacts:
    if name not in folder:
        raise FileNotFoundError(where)
    facts = folder[name]
    if facts is None:
        raise IsADirectoryError(where)
    return facts


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(FETCHES, thread_name_prefix="fieldmark-fetching")


@cache
def _known_of(root: str) -> _Known:
    return _Known()
