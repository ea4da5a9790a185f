"""Sums over the rows of arrays that may lie in files: by class, and of products of columns.

Each reads the array block by block and holds one block of it at a time. Adding up row by row gives the same numbers
whatever the blocks; products of blocks are added in double precision, so that they differ from the product of all rows
in the last bits of double precision at most, and not at all where there is one block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fieldmark.foundation.large_arrays import matrix_blocks, summed_rows

Matrix = NDArray[np.float64]


def class_sums(
    prepare: Callable[[NDArray[Any]], NDArray[Any]],
    rows: NDArray[Any],
    classes: NDArray[np.integer],
    number: int,
    dtype: DTypeLike = np.float64,
) -> NDArray[Any]:
    """The sum of the rows of each class, one row after the other.

    Args:
        prepare: What is made of rows before they are added up, each for itself.
        rows: The rows.
        classes: The class of each.
        number: How many classes there are.
        dtype: In which precision they are added.
    """
    sums = np.zeros((number, rows.shape[1]), dtype=dtype)
    for block in matrix_blocks(*rows.shape):
        np.add.at(sums, classes[block], prepare(rows[block]).astype(dtype, copy=False))
    return sums


def column_means(prepare: Callable[[NDArray[Any]], NDArray[np.float32]], rows: NDArray[Any]) -> NDArray[np.float32]:
    """The mean of each column of what is made of the rows, as numpy computes it."""
    total = summed_rows(prepare(rows[block]) for block in matrix_blocks(*rows.shape))
    return np.asarray(total / len(rows), dtype=np.float32)


def column_products(blocks: Iterable[Matrix], width: int) -> Matrix:
    """X'X of rows that come in blocks."""
    total = np.zeros((width, width))
    for block in blocks:
        total += block.T @ block
    return total
