"""Files with the same bytes: found by size first, then by their ends, and only then by all of their bytes.

Photos of equal size are many in a large release, those that also end alike are few: compressed pictures differ in
their last bytes. So nearly nothing is read twice, and copies are found for sure. Of each file some numbers are held,
and its name only as long as it is looked at.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import IO, Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.tables.dataset import Dataset
from fieldmark.work.blocks import all_cores, map_blocks

Rows = NDArray[np.int32]

TAIL_BYTES = 4096
# Fingerprints in words of 8 bytes: ends that seem alike are looked at again, whole files are not.
TAIL_WORDS, WHOLE_WORDS = 1, 2
CHUNK_BYTES = 1 << 20
BLOCK_FILES = 64


class Readable(Protocol):
    """Files by their path, or media by their id."""

    @property
    def open(self) -> Callable[[str], IO[bytes]]: ...

    def sizes(self, paths: Iterable[str], /) -> dict[str, int]: ...


def identical_files(release: Readable, paths: Iterable[str] | pl.Series) -> list[list[str]]:
    """Groups of at least two files with the same bytes, in the order of the paths; empty files are no copies.

    Args:
        release: Where they lie.
        paths: The files; those that are not there are skipped.
    """
    column = paths if isinstance(paths, pl.Series) else pl.Series(list(paths), dtype=pl.String)
    sizes = _sizes(release, column)
    rows = np.flatnonzero(sizes).astype(np.int32)
    rows, group = _split(rows, np.zeros_like(rows), sizes[rows])
    for fingerprint, words in ((_tail, TAIL_WORDS), (_whole, WHOLE_WORDS)):

        def of_block(block: Rows, fingerprint: Fingerprint = fingerprint) -> bytes:
            names, bytes_of = column.gather(block).to_list(), sizes[block].tolist()
            return b"".join(fingerprint(release, name, size) for name, size in zip(names, bytes_of, strict=True))

        blocks = (rows[start : start + BLOCK_FILES] for start in range(0, len(rows), BLOCK_FILES))
        prints, start = np.empty((words, len(rows)), dtype=np.uint64), 0
        for block in map_blocks(of_block, blocks, all_cores("thread")):
            some = np.frombuffer(block, dtype=np.uint64).reshape(-1, words)
            prints[:, start : start + len(some)] = some.T
            start += len(some)
        rows, group = _split(rows, group, *prints)
    names, starts = column.gather(rows).to_list(), np.flatnonzero(np.diff(group, prepend=-1)).tolist()
    groups = (list(dict.fromkeys(names[start:end])) for start, end in pairwise((*starts, len(names))))
    return [group for group in groups if len(group) > 1]  # a path that was given twice is no copy of itself


def observations_together(dataset: Dataset, observations: Iterable[str]) -> dict[str, str]:
    """Which observations share identical media, directly or over others.

    Returns:
        For each such observation the first one (by name) of those that belong together.
    """
    wanted = set(observations)
    media = dataset.media.filter(pl.col("observation_id").is_in(list(wanted)))
    owners: dict[str, list[str]] = {}
    for path, owner in media.select("path", "observation_id").iter_rows():
        owners.setdefault(path, []).append(owner)
    first_of: dict[str, str] = {}

    def first(one: str) -> str:
        while first_of.get(one, one) != one:
            one = first_of[one]
        return one

    for group in identical_files(dataset.release, owners):
        names = {first(owner) for path in group for owner in owners[path]}
        if len(names) > 1:
            first_of |= dict.fromkeys(names, min(names))
    return {one: first(one) for one in first_of}


Fingerprint = Callable[[Readable, str, int], bytes]


def _sizes(release: Readable, paths: pl.Series) -> NDArray[np.int64]:
    """How many bytes each file has, 0 for one that is not there; one folder after the other, each listed once."""
    rows_in: dict[str, array[int]] = {}
    for row, path in enumerate(paths):
        rows_in.setdefault(path.rpartition("/")[0], array("i")).append(row)
    sizes = np.zeros(len(paths), dtype=np.int64)
    for rows in rows_in.values():
        names = paths.gather(np.frombuffer(rows, dtype=np.intc)).to_list()
        there = release.sizes(names)
        sizes[rows] = [there.get(name, 0) for name in names]
    return sizes


def _split(rows: Rows, group: Rows, *keys: NDArray[Any]) -> tuple[Rows, Rows]:
    """Each group of rows cut by keys, in the order of what comes first; what stands alone afterwards is left out.

    Args:
        rows: The rows of one group after the other.
        group: Which group each belongs to, in rising order.
        keys: What the rows of a group are told apart by.

    Returns:
        The rows that are left and their groups, as they were given.
    """
    order = np.lexsort((*keys, group)).astype(np.int32)
    new = np.zeros(len(order), dtype=np.bool_)
    new[:1] = True
    for column in (group, *keys):
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    # Equal rows stay in their order: where a part begins, its first row stands.
    part = np.cumsum(new, dtype=np.int32) - 1
    first, several = order[new][part], np.bincount(part)[part] > 1
    order, first = order[several], first[several]
    again = np.lexsort((order, first))
    return rows[order[again]], first[again]


def _tail(release: Readable, path: str, size: int) -> bytes:
    with release.open(path) as file:
        file.seek(max(0, size - TAIL_BYTES), os.SEEK_SET)
        return hashlib.blake2b(file.read(), digest_size=8 * TAIL_WORDS).digest()


def _whole(release: Readable, path: str, size: int) -> bytes:
    hasher = hashlib.blake2b(digest_size=8 * WHOLE_WORDS)
    with release.open(path) as file:
        while chunk := file.read(CHUNK_BYTES):
            hasher.update(chunk)
    return hasher.digest()


def across(groups: Sequence[Sequence[str]], side_of: Mapping[str, object]) -> list[str]:
    """The groups that lie on several sides, as a reader would put them."""
    return [" and ".join(group) for group in groups if len({side_of[path] for path in group}) > 1]
