"""The p-values of all pairs of many runs at once, as `comparison.compare` has them, without a loop over pairs.

The spread of a difference follows from the products of centered rows, which one multiplication of matrices gives for a
whole block of pairs. Where two runs are so alike that rounding could show in that, the pair is computed by itself.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from fieldmark.stats.comparison import ROUNDING, freedom_of

Values = NDArray[np.float64]
Codes = NDArray[np.int32]
_ROWS = 64  # of one block: few enough to stay near the processor
_FEW_VALUES = 3  # so many different values of a unit are counted by multiplication
# Below these shares of what the rows hold, rounding might show in what they differ by.
_ALIKE, _SMALL = 1e-3, 1e-4


class PairBlocks:
    """All pairs of some runs.

    Args:
        values: The score of each run.
        pseudo: One row per run, one column per unit.
        rests_on: On how many units the metric rests.
    """

    def __init__(self, values: Values, pseudo: Values, *, rests_on: float = math.inf) -> None:
        self.values, self.pseudo, self.rests_on = values, pseudo, rests_on
        self.finite: NDArray[np.bool_] = np.asarray(np.isfinite(pseudo).all(axis=1))
        rows = np.where(self.finite[:, None], pseudo, 0.0)
        self._centered = rows - rows.mean(axis=1, keepdims=True)
        self._squares = np.einsum("ij,ij->i", self._centered, self._centered)
        spread = np.ptp(rows[self.finite], axis=0).max(initial=0.0) if self.finite.any() else 0.0
        codes = _codes(rows, ROUNDING * spread)
        self._least = len(pseudo[0]) * (_SMALL * spread) ** 2 if len(pseudo) else 0.0
        self._equal = _counter_of_equals(codes)

    def blocks(self, start: int = 0) -> Iterator[tuple[slice, Values]]:
        """The p-values of rows against all rows before the end of their block, block by block.

        Args:
            start: The first row; pairs of rows before it are left out.
        """
        parts = [slice(row, min(row + _ROWS, len(self.values))) for row in range(start, len(self.values), _ROWS)]
        with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as threads:
            yield from zip(parts, threads.map(self._block, parts), strict=True)

    def _block(self, part: slice) -> Values:
        before = slice(0, part.stop)
        units = self.pseudo.shape[1]
        differing = units - self._equal(part, before)
        held = self._squares[part, None] + self._squares[before]
        squares = held - 2 * (self._centered[part] @ self._centered[before].T)
        value = np.abs(self.values[part, None] - self.values[before])
        alike = (squares < _ALIKE * held) | (squares < self._least) | (held == 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.sqrt(np.maximum(squares, 0.0) / (units - 1)) / units**0.5 if units > 1 else 0 * value
            p_values: Values = 2 * stdtr(freedom_of(differing, self.rests_on), -value / error)
        p_values[differing < 2] = 1.0
        self._redo(part, alike, p_values)
        p_values[~self.finite[part]] = 1.0
        p_values[:, ~self.finite[before]] = 1.0
        return p_values

    def _redo(self, part: slice, alike: NDArray[np.bool_], p_values: Values) -> None:
        """Pairs that are nearly alike, one by one."""
        first, second = np.nonzero(alike)
        step = max(1, (1 << 16) // max(self.pseudo.shape[1], 1))
        for at in range(0, len(first), step):
            rows, others = first[at : at + step], second[at : at + step]
            with np.errstate(invalid="ignore"):
                apart = self.pseudo[part.start + rows] - self.pseudo[others]
            value = np.abs(self.values[part.start + rows] - self.values[others])
            p_values[rows, others] = p_values_of(apart, value, rests_on=self.rests_on)


def p_values_of(apart: Values, value: Values, *, rests_on: float = math.inf) -> Values:
    """The p-value of each row of differences, whose scores differ by `value`, as `compare` has it."""
    units = apart.shape[1]
    size = np.abs(apart)
    largest = size.max(axis=1, initial=0.0)
    finite = np.isfinite(largest)
    differing = np.count_nonzero(size > ROUNDING * largest[:, None], axis=1)
    apart -= apart.mean(axis=1, keepdims=True)
    np.multiply(apart, apart, out=apart)  # as `std` does it, to the last digit
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(apart.sum(axis=1) / (units - 1)) / units**0.5 if units > 1 else 0 * value
        usual = 2 * stdtr(freedom_of(differing, rests_on), -value / error)
    same = np.where(value != 0, 2.0 ** np.minimum(1 - differing, 0), 1.0)
    p_values = np.where(error <= ROUNDING * largest, same, usual)
    return np.where(finite & (differing >= 2), p_values, 1.0)


def _codes(rows: Values, tolerance: float) -> Codes:
    """Numbers that are the same where the values of a unit are, up to rounding."""
    codes = np.zeros(rows.shape, dtype=np.int32)
    if not rows.size:
        return codes
    order = np.argsort(rows, axis=0)
    steps = np.diff(np.take_along_axis(rows, order, axis=0), axis=0) > tolerance
    numbers = np.concatenate([np.zeros((1, rows.shape[1]), np.int32), np.cumsum(steps, axis=0, dtype=np.int32)])
    np.put_along_axis(codes, order, numbers, axis=0)
    return codes


def _counter_of_equals(codes: Codes) -> Callable[[slice, slice], NDArray[np.int64]]:
    """A function that counts, for each pair of rows, the units with equal values."""
    if codes.max(initial=0) < _FEW_VALUES:
        shown = [(codes == code).astype(np.float32) for code in range(int(codes.max(initial=0)) + 1)]

        def multiplied(part: slice, before: slice) -> NDArray[np.int64]:
            counts = shown[0][part] @ shown[0][before].T
            for one in shown[1:]:
                counts += one[part] @ one[before].T
            return np.asarray(counts, dtype=np.int64)

        return multiplied
    small = codes.astype(np.int16) if codes.max() < 1 << 15 else codes

    def compared(part: slice, before: slice) -> NDArray[np.int64]:
        counts = [np.count_nonzero(small[before] == row, axis=1) for row in small[part]]
        return np.array(counts, dtype=np.int64).reshape(part.stop - part.start, before.stop)

    return compared
