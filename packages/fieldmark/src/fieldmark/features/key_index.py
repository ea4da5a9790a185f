"""Where the keys of a store lie: sorted numbers of 24 bytes for each key, on disk and in memory.

`ROOT/<extractor digest>/index.npz` holds the keys of many blocks, so that opening a store does not open a file for each
of them. It is only ever a copy: blocks that it does not list are read themselves, blocks that are gone are left out,
and an index that cannot be read is skipped. It is replaced as a whole, by rename, when many blocks are new.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import FieldmarkError
from fieldmark.storage.files import appearing_file

Key = bytes
KEY_BYTES = 16
INDEX_FILE, KEYS_ENDING = "index.npz", ".keys.npy"
# An index is written anew when this many blocks are not in it, and at least this share of those that are.
MANY_NEW, NEW_SHARE = 16, 0.25
Numbers = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class KeyIndex:
    """Keys, and the block and row of each.

    Args:
        first: The first 8 bytes of each key as a number, in rising order.
        last: Its last 8 bytes.
        block: The number of its block.
        row: Its row there.
    """

    first: Numbers
    last: Numbers
    block: NDArray[np.uint32]
    row: NDArray[np.uint32]

    @classmethod
    def of(cls, keys: NDArray[np.uint8], block: NDArray[np.uint32], row: NDArray[np.uint32]) -> KeyIndex:
        """Keys as rows of bytes; of one that stands twice, either place is kept.

        >>> index = KeyIndex.of(as_bytes([b"b" * 16, b"a" * 16]), *np.array([[0, 0], [0, 1]], dtype=np.uint32))
        >>> index.find(as_bytes([b"a" * 16, b"c" * 16])), b"b" * 16 in index
        (array([ 0, -1]), True)
        """
        return cls(*_halves(keys), block, row).sorted()

    def sorted(self) -> KeyIndex:
        """The same keys in rising order, each once."""
        order = np.argsort(self.first, kind="stable")
        alike = self.first[order[1:]] == self.first[order[:-1]]
        if alike.any():
            order = np.lexsort((self.last, self.first))
            alike = (self.first[order[1:]] == self.first[order[:-1]]) & (self.last[order[1:]] == self.last[order[:-1]])
            order = order[np.append(True, ~alike)]
        return self.take(order)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> KeyIndex:
        """Some of the keys."""
        return KeyIndex(self.first[rows], self.last[rows], self.block[rows], self.row[rows])

    def joined(self, other: KeyIndex) -> KeyIndex:
        """The keys of both, each once."""
        pairs = zip(self.arrays, other.arrays, strict=True)
        return KeyIndex(*(np.concatenate(pair) for pair in pairs)).sorted()

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return self.first, self.last, self.block, self.row

    def __len__(self) -> int:
        return len(self.first)

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            return False
        first, last = struct.unpack(">QQ", key)
        place = int(np.searchsorted(self.first, np.uint64(first)))
        while place < len(self) and self.first[place] == first:
            if self.last[place] == last:
                return True
            place += 1
        return False

    def find(self, keys: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The place of each key, -1 where it is not there."""
        first, last = _halves(keys)
        place, found = np.searchsorted(self.first, first), np.full(len(keys), -1, dtype=np.int64)
        sought = np.arange(len(keys))
        while len(sought := sought[place[sought] < len(self)]):
            sought = sought[self.first[place[sought]] == first[sought]]
            hit = self.last[place[sought]] == last[sought]
            found[sought[hit]] = place[sought[hit]]
            sought = sought[~hit]
            place[sought] += 1
        return found


class IndexedBlocks(NamedTuple):
    """The blocks of a store and where each of their keys lies."""

    blocks: list[str]
    keys: KeyIndex


def as_bytes(keys: Sequence[Key]) -> NDArray[np.uint8]:
    """Keys as rows of bytes."""
    return np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), KEY_BYTES)


def open_index(folder: Path) -> IndexedBlocks:
    """All that a store holds: from the index, and from the blocks that it does not list.

    The index is read before the folder is listed. Blocks are never removed by us, so that the listing holds every block
    of an index that was read earlier. The other way round, an index may name blocks that came after the listing; they
    would pass for gone, and an index written then would list them without their keys.
    """
    known, index = read_index(folder / INDEX_FILE)
    there = blocks_in(folder)
    known, index = _still_there(known, index, there)
    keys_of = _keys_of(folder, sorted(there.difference(known)))
    blocks = [*known, *keys_of]
    if keys_of:
        index = _with_blocks(index, list(keys_of.values()), len(known))
    if len(keys_of) >= max(MANY_NEW, NEW_SHARE * len(known)):
        with contextlib.suppress(OSError, FieldmarkError):  # a store that cannot be written to can be read
            write_index(folder / INDEX_FILE, blocks, index)
    return IndexedBlocks(blocks, index)


def _still_there(known: list[str], index: KeyIndex, there: set[str]) -> tuple[list[str], KeyIndex]:
    """Leaves out blocks that somebody has removed: an index never lists a block without its keys."""
    kept = np.array([block in there for block in known], dtype=bool)
    if kept.all():
        return known, index
    index = index.take(kept[index.block])
    number = (np.cumsum(kept) - 1).astype(np.uint32)
    return [block for block in known if block in there], replace(index, block=number[index.block])


def _halves(keys: NDArray[np.uint8]) -> tuple[Numbers, Numbers]:
    halves = np.ascontiguousarray(keys).view(">u8").astype(np.uint64)
    return np.ascontiguousarray(halves[:, 0]), np.ascontiguousarray(halves[:, 1])


def blocks_in(folder: Path) -> set[str]:
    """The blocks whose keys lie in a folder."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name.removesuffix(KEYS_ENDING) for entry in entries if entry.name.endswith(KEYS_ENDING)}
    except FileNotFoundError:
        return set()


def _keys_of(folder: Path, blocks: Sequence[str]) -> dict[str, NDArray[np.uint8]]:
    """The keys of some blocks; one that was removed meanwhile, or that a crash of the machine has cut off, is none."""
    keys: dict[str, NDArray[np.uint8]] = {}
    for block in blocks:
        with contextlib.suppress(FileNotFoundError, ValueError, EOFError):
            keys[block] = np.load(folder / f"{block}{KEYS_ENDING}").reshape(-1, KEY_BYTES)
    return keys


def _with_blocks(index: KeyIndex, keys: Sequence[NDArray[np.uint8]], first_number: int) -> KeyIndex:
    sizes = np.array([len(one) for one in keys])
    block = np.repeat(np.arange(first_number, first_number + len(keys), dtype=np.uint32), sizes)
    row = (np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)).astype(np.uint32)
    return index.joined(KeyIndex(*_halves(np.concatenate(keys)), block, row))


def read_index(path: Path) -> tuple[list[str], KeyIndex]:
    """The blocks and keys of an index; none where there is no index, or something is wrong with it."""
    numbers = np.empty(0, np.uint64)
    nothing: tuple[list[str], KeyIndex] = [], KeyIndex(numbers, numbers, *np.empty((2, 0), np.uint32))
    try:
        with np.load(path, allow_pickle=False) as file:
            index = KeyIndex(file["first"], file["last"], file["block"], file["row"])
            blocks = [str(name) for name in file["blocks"]]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return nothing
    if len({len(array) for array in index.arrays}) > 1 or (len(index) and int(index.block.max()) >= len(blocks)):
        return nothing
    return blocks, index


def write_index(path: Path, blocks: Sequence[str], index: KeyIndex) -> None:
    """Replaces the index by one of some blocks."""
    with appearing_file(path) as partial, partial.open("wb") as file:
        names = np.array(blocks, dtype=np.str_)
        np.savez(file, blocks=names, first=index.first, last=index.last, block=index.block, row=index.row)
