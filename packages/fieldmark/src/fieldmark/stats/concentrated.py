"""Intervals for scores that rest on few of their units: rare costly mistakes, a part that occurs in few images.

The variance of pseudo-values is itself an estimate. Where a handful of units carry most of it, a t quantile with
U - 1 degrees of freedom trusts it too much, and a symmetric interval ignores what has not happened yet.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fieldmark.stats.intervals import Interval
from fieldmark.stats.student import t_quantile

Values = NDArray[np.float64]


def contributing_units(pseudo: Values, center: float | None = None) -> float:
    """How many units carry the variance: (sum d^2)^2 / sum d^4 of the deviations d from the mean.

    It is m where m of many units deviate alike and the others not at all, and about a third of the number of units for
    a normal spread. 0 where nothing varies.

    Args:
        pseudo: One pseudo-value per unit.
        center: What they deviate from, if not from their mean.

    >>> round(contributing_units(np.append(np.ones(4), np.zeros(996))), 1)
    4.0
    """
    squares = (pseudo - (pseudo.mean() if center is None else center)) ** 2
    fourth = float((squares**2).sum())
    return float(squares.sum()) ** 2 / fourth if fourth > 0 else 0.0


def concentrated_interval(
    value: float, pseudo: Values, *, level: float = 0.95, bounds: tuple[float, float] = (0.0, 1.0)
) -> Interval:
    """The jackknife interval with the degrees of freedom that its units really give.

    With m contributing units among U the t quantile has 1 / (1/m - 1/U) degrees of freedom, at least 2 and at most
    U - 1. That is half of what Satterthwaite's formula gives: the fourth moment comes from the same few units. Covers
    about 93 to 96 % (nominal 95) for pooled mIoU with a part in a handful of images, where U - 1 covers 85 to 91 %, at
    up to 1.7 times the width; with fewer than four such images it still falls short (90 %), and the caller should say
    so.

    Args:
        value: The score on all units; the center.
        pseudo: One pseudo-value per unit.
        level: The nominal coverage.
        bounds: Where the score must lie; the interval is cut there.
    """
    n_units = len(pseudo)
    if n_units < 3:
        return Interval(None, None, "none", f"{n_units} unit(s): too few to tell how much they differ")
    if not np.isfinite(pseudo).all():
        return Interval(None, None, "none", "the score is undefined when one of the units is left out")
    contributing = contributing_units(pseudo)
    if contributing == 0:
        return Interval(None, None, "none", "every unit gives the same value")
    spare = 1 / contributing - 1 / n_units
    freedom = min(max(1 / spare, 2.0), n_units - 1) if spare > 0 else n_units - 1
    half_width = t_quantile(freedom, 0.5 + level / 2) * float(pseudo.std(ddof=1)) / n_units**0.5
    return Interval(max(value - half_width, bounds[0]), min(value + half_width, bounds[1]), "jackknife-t, few units")


def cost_interval(value: float, pseudo: Values, *, largest: float, level: float = 0.95) -> Interval:
    """The interval of a mean cost in which single mistakes may be rare and expensive.

    Fay and Feuer's gamma interval (1997) for a sum of rare events of unequal weight: with variance v of the value, the
    lower end is the quantile of a gamma distribution with mean `value` and variance v; for the upper end one more
    mistake of the largest cost is supposed, w = largest / U, which makes mean and variance value + w and v + w^2. With
    no mistake at all this is the exact interval of a Poisson count of 0.

    Args:
        value: The mean cost over all units.
        pseudo: One pseudo-value per unit.
        largest: The cost of the costliest mistake. For a sum of costs instead of a mean, U times that.
        level: The nominal coverage.

    >>> cost_interval(0.0, np.zeros(100), largest=1.0).high
    0.03688879454113936
    """
    n_units = len(pseudo)
    if n_units < 2:
        return Interval(None, None, "none", "one unit only: nothing to compare it with")
    if not np.isfinite(pseudo).all():
        return Interval(None, None, "none", "the score is undefined when one of the units is left out")
    variance, step = float(pseudo.var(ddof=1)) / n_units, largest / n_units
    tail = (1 - level) / 2
    low = _gamma_quantile(value, variance, tail)
    high = _gamma_quantile(value + step, variance + step**2, 1 - tail)
    return Interval(min(low, value), max(high, value), "fay-feuer")


def _gamma_quantile(mean: float, variance: float, share: float) -> float:
    if mean <= 0 or variance <= 0:
        return max(mean, 0.0)
    from scipy.special import gammaincinv  # takes long to import

    return float(gammaincinv(mean**2 / variance, share)) * variance / mean
