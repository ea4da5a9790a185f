"""The difference of two shares of the same units, such as right answers of two models to the same photos.

The score interval of Tango (1998) rests on the units on which the two differ alone, and holds where these are few or
none, where a jackknife has nothing to measure.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

STEPS = 60


def paired_share_interval(
    one: NDArray[np.bool_], other: NDArray[np.bool_], *, level: float = 0.95
) -> tuple[float, float, float]:
    """The share of `one` less that of `other`, with its interval.

    >>> one, other = np.ones(80, dtype=bool), np.ones(80, dtype=bool)
    >>> [round(number, 3) for number in paired_share_interval(one, other)]
    [0.0, -0.046, 0.046]
    """
    units, more, fewer = len(one), int((one & ~other).sum()), int((other & ~one).sum())
    value, quantile = (more - fewer) / units, float(ndtri(0.5 + level / 2))
    low = _crossing(-1.0, value, quantile, units, more, fewer)
    return value, low, -_crossing(-1.0, -value, quantile, units, fewer, more)


def _crossing(low: float, high: float, quantile: float, units: int, more: int, fewer: int) -> float:
    """The lowest difference that is not rejected: the score falls as it rises towards the value."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _score(middle, units, more, fewer) > quantile else (low, middle)
    return (low + high) / 2


def _score(difference: float, units: int, more: int, fewer: int) -> float:
    """How many standard errors the counts lie above a difference, with the likeliest share of `fewer` under it."""
    slope = (2 * units - more + fewer) * difference - more - fewer
    root = math.sqrt(max(slope**2 + 8 * units * fewer * difference * (1 - difference), 0.0))
    likeliest = (root - slope) / (4 * units)
    spread = units * (2 * likeliest + difference * (1 - difference))
    beyond = more - fewer - units * difference
    return math.inf if spread <= 0 and beyond > 0 else 0.0 if spread <= 0 else beyond / math.sqrt(spread)
