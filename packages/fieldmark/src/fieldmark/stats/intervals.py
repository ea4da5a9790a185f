"""Intervals from leaving out one independent unit at a time.

With U units, value v and value v_u when unit u is left out, the pseudo-value of u is U v - (U - 1) v_u. Their variance
over U estimates the variance of v; the interval is centered on v and uses the t quantile with U - 1 degrees of freedom.
Percentile bootstraps are not used: for long-tailed macro averages they miss the true value far too often.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark.stats.student import t_quantile

Values = NDArray[np.float64]

# Below this many (effective) successes or failures the t interval covers too rarely.
FEW_EVENTS = 10.0


@dataclass(frozen=True)
class Interval:
    """An interval with the method that made it, or none (`low` and `high` are None) with the reason.

    `rests_on` is the number of units that were counted on, None where all were.
    """

    low: float | None
    high: float | None
    method: str
    reason: str | None = None
    rests_on: float | None = None


def pseudo_values(value: float, without_each_unit: Values) -> Values:
    """The pseudo-value of each unit: U v - (U - 1) v_u.

    >>> pseudo_values(0.5, np.array([0.0, 1.0]))
    array([1., 0.])
    """
    n_units = len(without_each_unit)
    return n_units * value - (n_units - 1) * without_each_unit


def interval(
    value: float,
    pseudo: Values,
    *,
    level: float = 0.95,
    proportion: bool = False,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """The interval around a value from the pseudo-values of its units.

    A score between 0 and 1 that rests on few (effective) successes or failures would be covered too rarely by a
    symmetric interval. A share of items then gets the exact binomial interval for its effective number of items (Korn
    and Graubard, 1998), any other score Jeffreys' interval for that number.

    Args:
        value: The score on all units; the center of the t interval.
        pseudo: One pseudo-value per unit.
        level: The nominal coverage.
        proportion: Whether the score is a share of items, so that units which all agree still tell something.
        bounds: Where the score must lie; the interval is cut there.

    Returns:
        The interval, or none with the reason where the units cannot tell.
    """
    n_units = len(pseudo)
    if n_units < 2:
        return Interval(None, None, "none", "one unit only: nothing to compare it with")
    if not np.isfinite(pseudo).all():
        return Interval(None, None, "none", "the score is undefined when one of the units is left out")
    variance = float(pseudo.var(ddof=1)) / n_units
    if variance == 0:
        if proportion:
            return _exact(value, float(n_units), n_units, level)
        return Interval(None, None, "none", "every unit gives the same value")
    if bounds == (0.0, 1.0) and 0 < value < 1:
        effective = value * (1 - value) / variance
        if min(value, 1 - value) * effective < FEW_EVENTS:
            effective = min(effective, float(n_units))
            return _exact(value, effective, n_units, level) if proportion else _jeffreys(value, effective, level)
    half_width = t_quantile(n_units - 1, 0.5 + level / 2) * variance**0.5
    return Interval(max(value - half_width, bounds[0]), min(value + half_width, bounds[1]), "jackknife-t")


def _exact(value: float, effective: float, n_units: int, level: float) -> Interval:
    """Clopper and Pearson's interval for `effective` items, of which there are never more than units.

    Korn and Graubard also shrink the effective number by a ratio of t quantiles, since the variance behind it is itself
    an estimate. That is not done here: the number of units as the upper limit of `effective` stands in for it.
    """
    if n_units > 2 and 0 < value < 1:
        # Units of very different sizes can come out as less than one item.
        effective = max(effective, 1.0)
    from scipy.special import betaincinv  # takes long to import

    hits, tail = value * effective, (1 - level) / 2
    low = float(betaincinv(hits, effective - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, effective - hits, 1 - tail)) if hits < effective else 1.0
    return Interval(low, high, "korn-graubard")


def _jeffreys(value: float, effective: float, level: float) -> Interval:
    """The central posterior interval of a binomial share under Jeffreys' prior, stretched to hold the value."""
    from scipy.special import betaincinv

    hits, tail = value * effective, (1 - level) / 2
    low, high = (float(betaincinv(hits + 0.5, effective - hits + 0.5, share)) for share in (tail, 1 - tail))
    return Interval(min(low, value), max(high, value), "jeffreys")
