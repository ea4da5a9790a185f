"""Shares with intervals by unit, and the axis they are drawn on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.classification import mean_without_each_unit
from fieldmark.scoring import LEVEL
from fieldmark.stats.intervals import interval, pseudo_values


class Estimated(Protocol):
    """A value with its interval, or without one."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


@dataclass(frozen=True)
class Share:
    """The share of items for which something holds, how many items and units it is taken from, and its interval."""

    value: float
    low: float | None
    high: float | None
    items: int
    units: int
    reason: str | None = None


def share(holds: NDArray[np.bool_], unit: NDArray[np.int32]) -> Share:
    """The share of items for which something holds, with the interval from leaving out one unit at a time.

    Args:
        holds: One value per item, at least one.
        unit: The independent unit of each item; any numbers will do.

    >>> share(np.array([True, False]), np.array([0, 1])).value
    0.5
    """
    numbered = np.unique(unit, return_inverse=True)[1].astype(np.int32)
    value = float(holds.mean())
    pseudo = pseudo_values(value, mean_without_each_unit(holds.astype(np.float64), numbered))
    bounds = interval(value, pseudo, level=LEVEL, proportion=True)
    return Share(value, bounds.low, bounds.high, len(holds), int(numbered.max()) + 1, bounds.reason)


@dataclass(frozen=True)
class Axis:
    """The stretch that a column of dots and whiskers shows."""

    low: float
    high: float

    @classmethod
    def around(cls, estimates: Iterable[Estimated]) -> Axis:
        """The shortest stretch that holds all values and intervals: for shares in steps of 10 %, for costs from 0.

        >>> class Cost: value, low, high = 4.3, 0.5, 15.96
        >>> Axis.around([Cost()])
        Axis(low=0.0, high=20.0)
        """
        ends = [end for e in estimates for end in (e.value, e.low, e.high) if end is not None and isfinite(end)] or [
            0.0
        ]
        if max(ends) > 1:
            step = 10.0 ** floor(log10(max(ends)))
            return cls(0.0, ceil(max(ends) / step) * step)
        low, high = floor(min(ends) * 10) / 10, ceil(max(ends) * 10) / 10
        low, high = max(low, 0.0), min(high, 1.0)
        return cls(low, high) if high > low else cls(max(low - 0.1, 0.0), min(high + 0.1, 1.0))

    def at(self, value: float) -> float:
        """Where a value stands on the axis, in percent of its length."""
        return round(100 * (value - self.low) / (self.high - self.low), 2)
