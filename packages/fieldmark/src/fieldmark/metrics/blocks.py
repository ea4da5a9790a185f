"""Rows of long arrays brought together by block, so that what is computed of a block stays in the processor's cache."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Rows that are brought into order at a time: the place that each goes to is then close to that of the one before.
ROWS_AT_ONCE = 1 << 16


def in_blocks(block: NDArray[np.integer[Any]], *columns: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """The columns with the rows of each block together, in the order in which they stood.

    A sort of all rows at once would jump through arrays that are larger than the caches, and take longer for each row
    the more rows there are.

    Args:
        block: The number of the block that each row belongs to, from 0 to less than 65,536.
        columns: Arrays with an entry for each row.

    Returns:
        Where each block ends, and new columns.

    >>> in_blocks(np.array([1, 0, 1]), np.array([7, 8, 9]))
    (array([1, 3]), array([8, 7, 9]))
    """
    sizes = np.bincount(block)
    ends = np.cumsum(sizes)
    if len(sizes) == 1:
        return ends, *(column.copy() for column in columns)
    place = ends - sizes
    ordered = [np.empty_like(column) for column in columns]
    for start in range(0, len(block), ROWS_AT_ONCE):
        here = slice(start, start + ROWS_AT_ONCE)
        own = block[here].astype(np.uint16)  # numbers of 16 bits are sorted by counting
        order, counts = np.argsort(own, kind="stable"), np.bincount(own, minlength=len(sizes))
        target = np.repeat(place - (np.cumsum(counts) - counts), counts) + np.arange(len(own))
        for column, into in zip(columns, ordered, strict=True):
            into[target] = column[here][order]
        place += counts
    return ends, *ordered
