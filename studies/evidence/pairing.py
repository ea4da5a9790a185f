"""Variants compared with one of them, unit by unit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.stats.comparison import compare


def compared(
    found: dict[str, NDArray[np.float64]], units: NDArray[np.int64], first: str, *, key: str, higher_is_better: bool
) -> dict[str, Any]:
    """The mean of each variant, and its paired difference from one of them with an interval over units.

    Args:
        found: One number per item for each variant.
        units: The independent unit of each item, numbered from 0.
        first: The variant that all others are compared with.
        key: Under which name the difference stands.
        higher_is_better: Which way is up.
    """
    n, size = int(units.max()) + 1, np.bincount(units)
    pseudo = {}
    for name, values in found.items():
        without = (values.sum() - np.bincount(units, weights=values)) / (len(values) - size)
        pseudo[name] = n * values.mean() - (n - 1) * without
    said: dict[str, Any] = {}
    for name, values in found.items():
        said[name] = {"value": round(float(values.mean()), 4)}
        if name != first:
            pair = np.stack([pseudo[name], pseudo[first]])
            means = np.array([values.mean(), found[first].mean()])
            apart = compare(means, pair, higher_is_better=higher_is_better).differences[0]
            bounds = (apart.value, apart.interval.low, apart.interval.high)
            said[name][key] = [None if number is None else round(float(number), 4) for number in bounds]
    return said
