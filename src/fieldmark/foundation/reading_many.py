"""Readers of single things that can also fetch many beside each other, for files that a server is slow to send."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol


class ManyReader(Protocol):
    """Reads one thing by its id, or many; `datasets.inputs.MediaFiles.read` is one."""

    def __call__(self, one: str, /) -> bytes: ...

    def many(self, ids: Iterable[str], /) -> Iterator[bytes]: ...


def read_each(read: Callable[[str], bytes] | ManyReader, ids: Iterable[str]) -> Iterator[bytes]:
    """The bytes of many things in order: beside each other where the reader can, else one after the other.

    Hand over a block of some dozens, as `map_blocks` does: what is fetched ahead is in memory.

    >>> list(read_each(str.encode, ["a", "b"]))
    [b'a', b'b']
    """
    many = getattr(read, "many", None)
    return map(read, ids) if many is None else many(ids)
