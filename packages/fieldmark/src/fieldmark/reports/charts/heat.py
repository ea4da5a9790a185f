"""Five steps from little to much, for maps, strips and boxes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fieldmark.reports.charts.plots import HEAT
from fieldmark.reports.markup import EN_DASH, count

STEPS = len(HEAT)


def count_starts(most: int) -> tuple[int, ...]:
    """The least count of each step on a log scale from 1 to `most`, in round numbers.

    >>> count_starts(4), count_starts(4000)
    ((1, 2, 3, 4), (1, 5, 30, 100, 800))
    """
    if most <= STEPS:
        return tuple(range(1, most + 1))
    starts = [1]
    for step in range(1, STEPS):
        start = most ** (step / STEPS)
        digit = 10 ** int(np.log10(start))
        starts.append(max(round(start / digit) * digit, starts[-1] + 1))
    return tuple(starts)


def titles(starts: tuple[int, ...]) -> list[str]:
    """The steps in words.

    >>> titles((1, 2, 10))
    ['1', '2–9', '10+']
    """
    last = [count(start) if end == start else f"{count(start)}{EN_DASH}{count(end)}" for start, end in _ends(starts)]
    return [*last, f"{count(starts[-1])}+"]


def steps(counts: NDArray[np.integer], starts: tuple[int, ...]) -> NDArray[np.int64]:
    """The step of each count, from 0; counts below the first start are an error of the caller."""
    return np.asarray(np.searchsorted(starts, counts, side="right") - 1, dtype=np.int64)


def share_step(share: float) -> int:
    """The step of a share: fifths of [0, 1], from 0.

    >>> [share_step(share) for share in (0, 0.19, 0.2, 0.6, 1)]
    [0, 0, 1, 3, 4]
    """
    # A share that is a whole number of fifths may fall just short of it in floats.
    return min(int(share * STEPS + 1e-9), STEPS - 1)


SHARE_TITLES = tuple(f"{100 * step // STEPS}{EN_DASH}{100 * (step + 1) // STEPS}%" for step in range(STEPS))


def _ends(starts: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(start, after - 1) for start, after in pairwise(starts)]
