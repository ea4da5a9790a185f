"""Readers of single things that can also fetch many beside each other, for files that a server is slow to send."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import IO, Protocol


class ManyReader(Protocol):
    """Reads one thing by its id, or many; `datasets.inputs.MediaFiles.read` is one."""

    def __call__(self, one: str, /) -> bytes: ...

    def many(self, ids: Iterable[str], /) -> Iterator[bytes]: ...


class ManyOpener(Protocol):
    """Opens one thing by its id, or many; `datasets.inputs.MediaFiles.open` is one."""

    def __call__(self, one: str, /) -> IO[bytes]: ...

    def many(self, ids: Iterable[str], /) -> Iterator[IO[bytes]]: ...


def read_each(read: Callable[[str], bytes] | ManyReader, ids: Iterable[str]) -> Iterator[bytes]:
    """The bytes of many things in order: beside each other where the reader can, else one after the other.

    Hand over a block of some dozens, as `map_blocks` does: what is fetched ahead is in memory.

    >>> list(read_each(str.encode, ["a", "b"]))
    [b'a', b'b']
    """
    many = getattr(read, "many", None)
    return map(read, ids) if many is None else many(ids)


def open_each(open_one: Callable[[str], IO[bytes]] | ManyOpener, ids: Iterable[str]) -> Iterator[IO[bytes]]:
    """Many things opened in order, for whoever reads one after the other and closes it; the next few are fetched ahead.

    Unlike `read_each` it takes any number of ids: what is fetched ahead are a few.
    """
    many = getattr(open_one, "many", None)
    return map(open_one, ids) if many is None else many(ids)
