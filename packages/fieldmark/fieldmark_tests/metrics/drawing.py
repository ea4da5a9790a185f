"""Small random cases for property tests, and the slow way to leave out a unit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

generators = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def draw_units(rng: np.random.Generator, n: int) -> np.ndarray:
    """A unit for each of n items, numbered from 0 without gaps."""
    return np.unique(rng.integers(0, n, n), return_inverse=True)[1].astype(np.int32)


def recomputed(
    metric: Callable[..., float], arrays: tuple[np.ndarray, ...], unit: np.ndarray, **options
) -> list[float]:
    """The metric on what is left without each unit, computed from scratch."""
    return [metric(*(array[unit != u] for array in arrays), **options) for u in range(unit.max() + 1)]
