"""Student's t distribution of one number; scipy.special has it too, and takes half as long to import as scoring takes.

The share below t is the regularized incomplete beta function of freedom / (freedom + t²), computed by its continued
fraction (Press et al., Numerical Recipes, 6.4); the quantile follows from it by Newton's method. Both agree with
`scipy.special.stdtr` and `stdtrit` to twelve digits.
"""

from __future__ import annotations

import math
from functools import reduce

# From here on, the ratio of two gamma functions is more precise by its series.
MANY_HALVES = 200.0
LAST_DIGIT = 1.2e-16
MOST_STEPS = 10_000


def t_share(freedom: float, t: float) -> float:
    """The probability of a value below t.

    >>> round(t_share(1, 1.0), 12), round(t_share(9.5, -2.0), 6)
    (0.75, 0.037443)
    """
    return _beyond(freedom, -t) if t < 0 else 1 - _beyond(freedom, t)


def t_quantile(freedom: float, share: float) -> float:
    """The value below which a share of the distribution lies; NaN where there is no distribution.

    >>> round(t_quantile(1, 0.75), 12), round(t_quantile(59, 0.975), 6)
    (1.0, 2.000995)
    """
    if not (freedom > 0 and 0 < share < 1):
        return math.nan
    if share < 0.5:
        return -t_quantile(freedom, 1 - share)
    # The share is concave: Newton's steps from below end below the quantile, and the last ones are rounding.
    beyond = 1 - share
    t = _below_normal(beyond)
    for _ in range(MOST_STEPS):
        step = (_beyond(freedom, t) - beyond) / _density(freedom, t)
        t += step
        if step <= 4 * LAST_DIGIT * t:
            break
    return t


def _below_normal(beyond: float) -> float:
    """Just below where at most half of the normal distribution lies beyond (Abramowitz and Stegun, 26.2.23)."""
    root = math.sqrt(-2 * math.log(beyond))
    above, below = (0.010328, 0.802853, 2.515517), (0.001308, 0.189269, 1.432788, 1.0)
    ratio = reduce(lambda sum_, one: sum_ * root + one, above) / reduce(lambda sum_, one: sum_ * root + one, below)
    return max(0.0, root - ratio - 5e-4)


def on_log_odds(share: float, half_width: float) -> tuple[float, float]:
    """The ends of an interval of log odds around those of a share, as shares.

    >>> on_log_odds(0.5, math.log(3))
    (0.25, 0.75)
    """
    center = math.log(share) - math.log1p(-share)
    low, high = (center - half_width, center + half_width)
    return _of_log_odds(low), _of_log_odds(high)


def _of_log_odds(x: float) -> float:
    odds = math.exp(-abs(x))
    return 1 / (1 + odds) if x >= 0 else odds / (1 + odds)


def _beyond(freedom: float, t: float) -> float:
    """The probability of a value above t, which is not negative."""
    half, square = freedom / 2, t * t
    inner, outer = freedom / (freedom + square), square / (freedom + square)
    front = _density(freedom, t) * t
    if inner * (half + 2.5) < half + 1:
        return front * _continued(inner, half, 0.5) / freedom
    return 0.5 - front * _continued(outer, 0.5, half)


def _density(freedom: float, t: float) -> float:
    half = freedom / 2
    if half < MANY_HALVES:
        ratio = math.lgamma(half + 0.5) - math.lgamma(half)
    else:
        ratio = math.log(half) / 2 + math.log1p(
            (-1 / 8 + (1 / 128 + (5 / 1024 - 21 / 32768 / half) / half) / half) / half
        )
    return math.exp(ratio - (half + 0.5) * math.log1p(t * t / freedom)) / math.sqrt(math.pi * freedom)


def _continued(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    numerator, denominator = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = denominator
    for m in range(1, MOST_STEPS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            denominator, numerator = 1 / (1 + term * denominator), 1 + term / numerator
            change = numerator * denominator
            value *= change
        if abs(change - 1) <= 4 * LAST_DIGIT:
            break
    return value
