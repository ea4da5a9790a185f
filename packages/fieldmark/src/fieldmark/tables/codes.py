"""Which names are the same, among millions: by sorting numbers made of them.

A table of hashes of so many names lies outside the processor's caches, where each look-up waits for memory, and the
time of all of them grows faster than the names do. Numbers are cut by their first bits into blocks that stay in the
caches, which takes one pass through them in order, and each block is sorted by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.metrics.blocks import in_blocks

Hash = Callable[[pl.Series], pl.Series]
Order = NDArray[np.uint32]

# Blocks of about so many numbers; there are at most as many blocks as digits of 16 bits.
BLOCK_BITS, DIGIT_BITS = 15, 16
# Names that are compared at a time: the next ones take the memory of the last.
NAMES_AT_ONCE = 1 << 16


def all_different(names: pl.Series, *, hashed: Hash = pl.Series.hash) -> bool:
    """Whether no name stands twice.

    Args:
        names: The names; missing ones count as the same.
        hashed: What makes a number of 64 bits of each; names of one number are compared themselves.

    >>> all_different(pl.Series(["a", "b"])), all_different(pl.Series(["a", "b", "a"]))
    (True, False)
    """
    numbers = hashed(names).to_numpy()
    ends, numbers = in_blocks(_block(numbers), numbers)
    for start, end in pairwise((0, *ends.tolist())):
        numbers[start:end].sort()
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
    if _alike_where_not(new, names, order):
        distinct = names.gather(order[new]).sort()
        # The n-th of the sorted hashes belongs to the name whose own hash is the n-th: no name is looked up.
        number = _sorted_hashes(hashed(distinct))[0].astype(np.int32)
        numbers = np.empty(len(order), dtype=np.int32)
        numbers[order] = number[np.cumsum(new, dtype=np.int32) - 1]
        return distinct, numbers
    distinct = names.unique().sort()
    numbers = names.replace_strict(distinct, np.arange(len(distinct), dtype=np.int32), return_dtype=pl.Int32).to_numpy()
    return distinct, numbers


def _alike_where_not(new: NDArray[np.bool_], names: pl.Series, order: Order) -> bool:
    """Whether each name equals the one before it in this order, wherever `new` does not say that another begins."""
    for start in range(1, len(order), NAMES_AT_ONCE):
        here = slice(start, start + NAMES_AT_ONCE)
        ordered = names.gather(order[start - 1 : here.stop])
        alike = ordered.slice(1).eq_missing(ordered.slice(0, len(ordered) - 1)).to_numpy()
        if not bool((alike | new[here]).all()):
            return False
    return True


def _sorted_hashes(hashes: pl.Series) -> tuple[Order, NDArray[np.uint64]]:
    """The order in which numbers of 64 bits rise, and the numbers in that order."""
    numbers = hashes.to_numpy()
    ends, numbers, order = in_blocks(_block(numbers), numbers, np.arange(len(numbers), dtype=np.uint32))
    for start, end in pairwise((0, *ends.tolist())):
        here = slice(start, end)
        inside = np.argsort(_digit(numbers[here], 0), kind="stable")
        for place in (1, 2, 3):
            inside = inside[np.argsort(_digit(numbers[here], place)[inside], kind="stable")]
        order[here], numbers[here] = order[here][inside], numbers[here][inside]
    return order, numbers


def _block(numbers: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """The first bits of each number: as many as make blocks of the right size."""
    bits = min(max(len(numbers).bit_length() - BLOCK_BITS, 0), DIGIT_BITS)
    return _digit(numbers, 3) >> np.uint16(DIGIT_BITS - bits)


def _digit(numbers: NDArray[np.uint64], place: int) -> NDArray[np.uint16]:
    """Sixteen bits of each number, the last for place 0: numpy sorts such digits by counting them."""
    return (numbers >> np.uint64(DIGIT_BITS * place)).astype(np.uint16)
