"""Files of a release, and some that lie elsewhere: each by its own path or address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, TypeVar

from fieldmark.storage.addresses import file_system, is_address, place_text
from fieldmark.storage.file_cache import default_file_cache
from fieldmark.storage.remote_files import RemoteFiles
from fieldmark.tables.inputs import Files
from fieldmark.views.parts import LooseFiles

R = TypeVar("R")

# Before the path of a file that does not belong to the release.
ELSEWHERE = "\N{BULLET}"
_HERE = "file://"


def place_of(file: str, table: Path) -> str:
    """Where a file lies that a table names: an address, an absolute path, or a path beside the table.

    >>> place_of("new/a.jpg", Path("s3://bucket/checked.csv")), place_of("s3://b/a.jpg", Path("checked.csv"))
    ('s3://bucket/new/a.jpg', 's3://b/a.jpg')
    """
    if is_address(file):
        return file.removeprefix(_HERE)
    if is_address(table) and not Path(file).is_absolute():
        return f"{place_text(table).rpartition('/')[0]}/{file}"
    return str((table.parent / file).absolute())


def true_place(place: str) -> str:
    """The same for every way of naming a file: its address, or its path without links.

    >>> true_place("s3://bucket/a.jpg"), true_place("/a/../b.jpg")
    ('s3://bucket/a.jpg', '/b.jpg')
    """
    place = place.removeprefix(_HERE)
    return place if is_address(place) else str(Path(place).resolve())


@dataclass(frozen=True)
class PlacedFiles:
    """Files that belong to no release, each by its path or its address."""

    local: LooseFiles = field(default_factory=LooseFiles)

    def open(self, path: str) -> IO[bytes]:
        files, name = _store_of(path)
        return self.local.open(path) if files is None else files.open(name)

    def read(self, path: str) -> bytes:
        files, name = _store_of(path)
        return self.local.read(path) if files is None else files.read(name)

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        return _by_folder(paths, self.local.read, lambda files, names: files.read_many(names))

    def open_many(self, paths: Iterable[str], ahead: int) -> Iterator[IO[bytes]]:
        return _by_folder(paths, self.local.open, lambda files, names: files.open_many(names, ahead))

    def where(self, path: str) -> str:
        return path

    def sizes(self, paths: Iterable[str]) -> dict[str, int]:
        names_in: dict[str, set[str]] = {}
        here = []
        for path in paths:
            if is_address(path):
                folder, _, name = path.rpartition("/")
                names_in.setdefault(folder, set()).add(name)
            else:
                here.append(path)
        found = self.local.sizes(here)
        for folder, names in names_in.items():
            found |= {f"{folder}/{name}": size for name, size in _folder_at(folder).sizes("", names).items()}
        return found


@dataclass(frozen=True)
class WithOthers:
    """The files of a release, and some that lie elsewhere, whose paths begin with `ELSEWHERE`."""

    release: Files
    others: PlacedFiles = field(default_factory=PlacedFiles)

    def open(self, path: str) -> IO[bytes]:
        store, own = self._of(path)
        return store.open(own)

    def read(self, path: str) -> bytes:
        store, own = self._of(path)
        return store.read(own)

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        wanted = list(paths)
        return _merged(wanted, self.release.read_many(_own(wanted)), self.others.read_many(_other(wanted)))

    def open_many(self, paths: Iterable[str], ahead: int) -> Iterator[IO[bytes]]:
        wanted = list(paths)
        own, others = self.release.open_many(_own(wanted), ahead), self.others.open_many(_other(wanted), ahead)
        return _merged(wanted, own, others)

    def where(self, path: str) -> str:
        store, own = self._of(path)
        return store.where(own)

    def sizes(self, paths: Iterable[str]) -> dict[str, int]:
        wanted = list(paths)
        others = self.others.sizes(_other(wanted))
        return {**self.release.sizes(_own(wanted)), **{f"{ELSEWHERE}{path}": size for path, size in others.items()}}

    def _of(self, path: str) -> tuple[Files, str]:
        return (self.others, path.removeprefix(ELSEWHERE)) if path.startswith(ELSEWHERE) else (self.release, path)


def _own(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if not path.startswith(ELSEWHERE)]


def _other(paths: Iterable[str]) -> list[str]:
    return [path.removeprefix(ELSEWHERE) for path in paths if path.startswith(ELSEWHERE)]


def _merged(paths: Iterable[str], own: Iterator[R], others: Iterator[R]) -> Iterator[R]:
    return (next(others) if path.startswith(ELSEWHERE) else next(own) for path in paths)


def _by_folder(
    paths: Iterable[str], here: Callable[[str], R], there: Callable[[RemoteFiles, list[str]], Iterator[R]]
) -> Iterator[R]:
    """What is got for each path in order; files of one folder at an address are asked for beside each other."""
    wanted = list(paths)
    names_in: dict[str, list[str]] = {}
    for path in wanted:
        if is_address(path):
            folder, _, name = path.rpartition("/")
            names_in.setdefault(folder, []).append(name)
    fetched = {folder: there(_folder_at(folder), names) for folder, names in names_in.items()}
    return (next(fetched[path.rpartition("/")[0]]) if is_address(path) else here(path) for path in wanted)


def _store_of(path: str) -> tuple[RemoteFiles | None, str]:
    if not is_address(path):
        return None, path
    folder, _, name = path.rpartition("/")
    return _folder_at(folder), name


@cache
def _folder_at(address: str) -> RemoteFiles:
    system, base = file_system(address)
    return RemoteFiles(system, base, address, cache=default_file_cache())
