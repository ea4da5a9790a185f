"""Which names are the same, among millions: by sorting numbers made of them.

A table of hashes of so many names lies outside the processor's caches, where each look-up waits for memory, and the
time of all of them grows faster than the names do. Numbers are cut by their first bits into blocks that stay in the
caches, which takes one pass through them in order, and each block is sorted by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

Hash = Callable[[pl.Series], pl.Series]

# Blocks of about so many numbers; there are at most as many blocks as numbers of 16 bits, which are sorted in one pass.
BLOCK_BITS, MOST_BITS = 15, 16


def all_different(names: pl.Series, *, hashed: Hash = pl.Series.hash) -> bool:
    """Whether no name stands twice.

    Args:
        names: The names; missing ones count as the same.
        hashed: What makes a number of 64 bits of each; names of one number are compared themselves.

    >>> all_different(pl.Series(["a", "b"])), all_different(pl.Series(["a", "b", "a"]))
    (True, False)
    """
    numbers = _sorted_hashes(hashed(names))[1]
    return bool((numbers[1:] != numbers[:-1]).all()) or names.n_unique() == len(names)


def numbered_names(names: pl.Series, *, hashed: Hash = pl.Series.hash) -> tuple[pl.Series, NDArray[np.int32]]:
    """The distinct names in order, and the number of each name among them.

    Args:
        names: The names, none of them missing.
        hashed: What makes a number of 64 bits of each; where two names share one, names are looked up instead.

    >>> distinct, numbers = numbered_names(pl.Series(["b", "a", "b"]))
    >>> distinct.to_list(), numbers
    (['a', 'b'], array([1, 0, 1], dtype=int32))
    """
    order, hashes = _sorted_hashes(hashed(names))
    new = np.append(True, hashes[1:] != hashes[:-1])[: len(order)]
    ordered = names.gather(order)
    if bool((ordered.eq_missing(ordered.shift()).to_numpy() | new).all()):
        distinct = ordered.filter(pl.Series(new)).sort()
        # The n-th of the sorted hashes belongs to the name whose own hash is the n-th: no name is looked up.
        number = _sorted_hashes(hashed(distinct))[0].astype(np.int32)
        numbers = np.empty(len(order), dtype=np.int32)
        numbers[order] = number[np.cumsum(new, dtype=np.int32) - 1]
        return distinct, numbers
    distinct = names.unique().sort()
    numbers = names.replace_strict(distinct, np.arange(len(distinct), dtype=np.int32), return_dtype=pl.Int32).to_numpy()
    return distinct, numbers


def _sorted_hashes(hashes: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The order in which numbers of 64 bits rise, and the numbers in that order."""
    numbers = hashes.to_numpy()
    bits = min(max(len(numbers).bit_length() - BLOCK_BITS, 0), MOST_BITS)
    block = (numbers >> np.uint64(64 - MOST_BITS)).astype(np.uint16) >> np.uint16(MOST_BITS - bits)
    order, ends = np.argsort(block, kind="stable"), np.cumsum(np.bincount(block, minlength=1 << bits))
    numbers = numbers[order]
    for end, size in zip(ends, np.diff(ends, prepend=0), strict=True):
        here = slice(end - size, end)
        inside = np.argsort(numbers[here])
        order[here], numbers[here] = order[here][inside], numbers[here][inside]
    return order, numbers
