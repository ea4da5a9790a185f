"""Intervals for scores that compare two groups of units, of which one may be scarce: known and unknown observations.

However many known observations there are, with seven unknown ones the score rests on seven. The variance is an estimate
from those few, and a symmetric interval ignores that the score cannot pass 0 or 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fieldmark.stats.intervals import FEW_EVENTS, Interval
from fieldmark.stats.student import on_log_odds, t_quantile

Mask = NDArray[np.bool_]

# From so many units in the scarcer group on, Jeffreys' interval covers where successes or failures are few.
_ENOUGH_UNITS = 50


def units_of_groups(group: Mask, unit: NDArray[np.int32]) -> tuple[int, int]:
    """How many units have items in the group, and how many have items outside it.

    >>> units_of_groups(np.array([True, True, False, True]), np.array([0, 0, 1, 1]))
    (2, 1)
    """
    return len(np.unique(unit[group])), len(np.unique(unit[~group]))


def two_group_interval(value: float, variance: float, *, scarce: int, n_units: int, level: float = 0.95) -> Interval:
    """The interval of a score from 0 to 1 whose scarcer group has `scarce` units.

    The value on the scale of log odds, plus or minus the t quantile with `scarce` - 1 degrees of freedom times the
    error on that scale. Where the effective successes or failures are few, n = value (1 - value) / variance effective
    items are shrunk to n (z / t)^2 for the uncertain variance, and give a binomial interval: Clopper and Pearson's, or
    from 50 scarce units on Jeffreys'. A score of 0 or 1 gives Clopper and Pearson's for `scarce` items, which holds for
    any mean of numbers from 0 to 1.

    Args:
        value: The score on all units.
        variance: An estimate of its variance (of pseudo-values, or of resampled units).
        scarce: The number of units in the scarcer group.
        n_units: The number of all units; there are no more effective items than that.
        level: The nominal coverage.

    Returns:
        The interval, or none with the reason.
    """
    if not np.isfinite(value):
        return Interval(None, None, "none", "the score is undefined")
    if scarce < 2:
        return Interval(None, None, "none", "one unit only in one of the two groups: nothing to compare it with")
    if value in (0.0, 1.0):
        return _binomial(value, float(scarce), level, exact=True)
    if not np.isfinite(variance):
        return Interval(None, None, "none", "the score is undefined when some of the units are left out")
    if variance <= 0:
        return Interval(None, None, "none", "every unit gives the same value")
    quantile = t_quantile(scarce - 1, 0.5 + level / 2)
    effective = value * (1 - value) / variance
    if min(value, 1 - value) * effective < FEW_EVENTS:
        from scipy.special import ndtri  # takes long to import

        shrunk = min(effective, float(n_units)) * (float(ndtri(0.5 + level / 2)) / quantile) ** 2
        return _binomial(value, max(shrunk, 1.0), level, exact=scarce < _ENOUGH_UNITS)
    half_width = quantile / (effective * value * (1 - value)) ** 0.5
    low, high = on_log_odds(value, half_width)
    return Interval(low, high, "logit-t, two groups")


def _binomial(value: float, items: float, level: float, *, exact: bool) -> Interval:
    from scipy.special import betaincinv

    hits, tail = value * items, (1 - level) / 2
    more = 1.0 if exact else 0.5
    low = float(betaincinv(hits + 1 - more, items - hits + more, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + more, items - hits + 1 - more, 1 - tail)) if hits < items else 1.0
    method = "clopper-pearson, two groups" if exact else "jeffreys, two groups"
    return Interval(min(low, value), max(high, value), method)
