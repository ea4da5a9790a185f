"""The nearest rows of an array that may lie in a file, found as its blocks pass by."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fieldmark.foundation.large_arrays import matrix_blocks


class Nearest:
    """The nearest stored items of some that are asked about, as blocks of stored items pass by.

    Args:
        asked: How many items are asked about.
        k: How many of the stored ones are kept for each; all of them while there are fewer.

    Attributes:
        items: The numbers of the stored items, in their order; among equally near ones the first are kept.
        values: How near they are.
    """

    def __init__(self, asked: int, k: int) -> None:
        self.k = k
        self.items = np.zeros((asked, 0), dtype=np.int64)
        self.values = np.zeros((asked, 0), dtype=np.float32)

    def see(self, similarity: NDArray[np.float32], first: int) -> None:
        """Takes in the next block of stored items, one column each, of which the first has this number."""
        near = nearest_of(similarity, min(self.k, similarity.shape[1]))
        # What was kept before stands before the block, so that it stays where both are equally near.
        items = np.concatenate([self.items, near + first], axis=1)
        values = np.concatenate([self.values, np.take_along_axis(similarity, near, axis=1)], axis=1)
        kept = nearest_of(values, min(self.k, values.shape[1]))
        self.items, self.values = np.take_along_axis(items, kept, axis=1), np.take_along_axis(values, kept, axis=1)


def products_with(
    stored: NDArray[np.floating], asked: NDArray[np.float32]
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """The inner products of some rows with all stored ones, a block of these at a time."""
    for block in matrix_blocks(len(stored), max(stored.shape[1], len(asked))):
        yield block, asked @ stored[block].astype(np.float32, copy=False).T


def nearest_of(similarity: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The columns of the k highest values of each row; among equals the first, whatever the sort does.

    >>> nearest_of(np.array([[0.5, 0.9, 0.9, 0.5]], dtype=np.float32), 3)
    array([[0, 1, 2]])
    """
    if k == 1:
        return np.asarray(similarity.argmax(axis=1)[:, None])
    lowest = np.partition(similarity, -k, axis=1)[:, -k, None]
    above, equal = similarity > lowest, similarity == lowest
    room = k - above.sum(axis=1, keepdims=True)
    chosen = above | (equal & (np.cumsum(equal, axis=1) <= room))
    return np.nonzero(chosen)[1].reshape(len(similarity), k)
