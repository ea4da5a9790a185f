"""Arrays with a row for each of very many items: in memory up to a size, beyond it in a file that has no name.

Such a file is gone with the array that reads it, also when the process is killed. The system keeps in memory what fits.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fieldmark.errors import MisuseError
from fieldmark.storage.file_cache import cache_root

MEMORY_SETTING, MEMORY_MIB = "FIELDMARK_FEATURES_MIB", 1024
# What is computed at a time of an array with many rows: as much as stays in the processor's cache.
BYTES_AT_ONCE = 1 << 20
# Items whose logits a descent holds at once, and the most logits.
LOGIT_ITEMS, LOGIT_CELLS = 16_384, 1 << 28
# What matrices are multiplied at a time: large enough that blocks cost no time, and few of them no memory to speak of.
BYTES_MULTIPLIED_AT_ONCE = 1 << 22


def fits_in_memory(number_of_bytes: int) -> bool:
    """Whether an array is held in memory: up to as many MiB as FIELDMARK_FEATURES_MIB says, 1,024 if it is not set.

    Raises:
        MisuseError: When the setting is no number of MiB.
    """
    told = os.environ.get(MEMORY_SETTING, "")
    if told and not told.isdecimal():
        raise MisuseError(f"{MEMORY_SETTING}={told}: expected a number of MiB, such as {MEMORY_MIB}.")
    return number_of_bytes <= int(told or MEMORY_MIB) << 20


def array_in_file(blocks: Iterable[NDArray[Any]], folder: Path | None = None) -> NDArray[Any]:
    """An array made of blocks of rows, which lies in a file; what is changed in the array does not change the file.

    Args:
        blocks: The rows, one block after the other; at least one, and all of one shape and type.
        folder: Where the file lies, if not in the user's cache folder.
    """
    folder = cache_root() if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    rows, block = 0, np.empty(0)
    with tempfile.TemporaryFile(dir=folder) as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block).data)
            rows += len(block)
        file.flush()
        return np.asarray(np.memmap(file, dtype=block.dtype, mode="c", shape=(rows, *block.shape[1:])))


def row_blocks(array: NDArray[Any]) -> Iterator[slice]:
    """The rows of an array in blocks of `BYTES_AT_ONCE`."""
    return _blocks(len(array), array[:1].nbytes, BYTES_AT_ONCE)


def matrix_blocks(rows: int, columns: int) -> Iterator[slice]:
    """The rows of a matrix of single precision in blocks of `BYTES_MULTIPLIED_AT_ONCE`.

    They depend on nothing else, so that what is computed block by block is the same wherever the matrix lies.
    """
    return _blocks(rows, 4 * columns, BYTES_MULTIPLIED_AT_ONCE)


def logit_blocks(items: int, labels: int) -> list[slice]:
    """Items in blocks for a descent that computes all their logits at each step.

    They are larger than those of `matrix_blocks`: sums over them decide where a descent ends, so that results stay as
    they were for all but very many items.
    """
    size = min(LOGIT_ITEMS, max(LOGIT_CELLS // max(labels, 1), 1))
    return [slice(first, min(first + size, items)) for first in range(0, items, size)]


def _blocks(rows: int, bytes_each: int, bytes_at_once: int) -> Iterator[slice]:
    step = max(1, bytes_at_once // max(bytes_each, 1))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def joined_rows(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The rows of several arrays, one after the other, as `np.concatenate` gives them."""
    if fits_in_memory(sum(array.nbytes for array in arrays)) or len({array.dtype for array in arrays}) > 1:
        return np.concatenate(arrays)
    return array_in_file(array[block] for array in arrays for block in row_blocks(array))


def row_by_row(work: Callable[..., NDArray[Any]], *arrays: NDArray[Any]) -> NDArray[Any]:
    """What `work` makes of arrays of as many rows, where each row of it comes from the same rows of them.

    It is computed in the same blocks, wherever the result lies.
    """
    first = arrays[0]
    if not first.size:
        return work(*arrays)

    def made(block: slice) -> NDArray[Any]:
        return work(*(array[block] for array in arrays))

    blocks = row_blocks(first)
    if not fits_in_memory(first.nbytes):
        return array_in_file(map(made, blocks))
    beginning = made(next(blocks))
    if len(beginning) == len(first):
        return beginning
    result = np.empty((len(first), *beginning.shape[1:]), dtype=beginning.dtype)
    result[: len(beginning)] = beginning
    del beginning
    for block in blocks:
        result[block] = made(block)
    return result


def taken_rows(
    array: NDArray[Any], rows: NDArray[np.integer], work: Callable[[NDArray[Any]], NDArray[Any]] | None = None
) -> NDArray[Any]:
    """Some rows of an array in the order asked for, as `array[rows]` gives them; in a file where they do not fit.

    Args:
        array: The array.
        rows: Which rows.
        work: What is made of them, row by row; nothing as a rule.
    """
    made = work or (lambda some: some)
    if not len(rows) or fits_in_memory(len(rows) * array[:1].nbytes):
        return made(array[rows])
    return array_in_file(made(array[rows[block]]) for block in _blocks(len(rows), array[:1].nbytes, BYTES_AT_ONCE))


def kept_rows(array: NDArray[Any], kept: NDArray[np.bool_]) -> NDArray[Any]:
    """The rows that are kept, as `array[kept]` gives them; the array itself where all are."""
    return array if kept.all() else taken_rows(array, np.flatnonzero(kept))


def joined_columns(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The columns of several arrays side by side, as `np.concatenate` gives them; a single one as it is."""
    return arrays[0] if len(arrays) == 1 else row_by_row(lambda *some: np.concatenate(some, axis=1), *arrays)


def scored_rows(score: Callable[[NDArray[Any]], NDArray[Any]], rows: NDArray[Any], columns: int) -> NDArray[np.float32]:
    """What `score` makes of each row, so many numbers in single precision, without a copy of all rows."""
    scores = np.empty((len(rows), columns), dtype=np.float32)
    for block in matrix_blocks(len(rows), max(rows.shape[1], columns)):
        scores[block] = score(rows[block])
    return scores


def mean_and_spread(rows: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The mean and the standard deviation of each column, as numpy computes them, without a copy of all rows.

    numpy adds up rows one after the other, so that adding blocks to what was summed before gives the same numbers to
    the last bit; a single column, and rows that do not lie one after the other, it adds up in another order.
    """
    if rows.ndim != 2 or rows.shape[1] < 2 or not rows.flags.c_contiguous or not len(rows):
        return np.asarray(rows.mean(axis=0), np.float32), np.asarray(rows.std(axis=0), np.float32)
    mean = np.asarray(summed_rows(rows[block] for block in row_blocks(rows)) / len(rows), dtype=np.float32)
    squares = summed_rows(np.square(rows[block] - mean) for block in row_blocks(rows))
    return mean, np.asarray(np.sqrt(squares / len(rows)), dtype=np.float32)


def standardized(
    rows: NDArray[np.float32], mean: NDArray[np.float32], spread: NDArray[np.float32]
) -> NDArray[np.float32]:
    """(rows - mean) / spread, made with one copy; in a file where it does not fit into memory."""

    def with_one_copy(some: NDArray[np.float32]) -> NDArray[np.float32]:
        result = some - mean
        result /= spread
        return result

    return row_by_row(with_one_copy, rows)


def summed_rows(blocks: Iterable[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The sum of rows that come in blocks, of which there is at least one; each is added in its turn."""
    total: NDArray[np.float32] | None = None
    for block in blocks:
        # The sum so far is the first row: every row is added in its turn.
        total = np.add.reduce(block if total is None else np.concatenate([total[None], block]), axis=0)
    assert total is not None  # there is a block
    return total


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


def principal_squares(rows_of: Callable[[slice], Matrix], rows: int, width: int) -> tuple[Matrix, Matrix]:
    """The sum of squares of rows along each of their principal axes (one column each), in rising order.

    With fewer rows than columns, these are the axes along which there is anything.

    Args:
        rows_of: Some of the rows, asked for block by block where there are many.
        rows: How many there are.
        width: How many columns.
    """
    if rows > width:
        squares, axes = np.linalg.eigh(column_products(map(rows_of, matrix_blocks(rows, width)), width))
        return np.maximum(squares, 0), axes
    every = np.asarray(rows_of(slice(0, rows)), dtype=np.float64)
    squares, of_rows = np.linalg.eigh(every @ every.T)  # a third of what a singular value decomposition takes
    there = squares > 1e-10 * max(float(squares[-1]), 0.0)
    return squares[there], every.T @ (of_rows[:, there] / np.sqrt(squares[there]))
