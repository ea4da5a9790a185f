"""Intervals that count the units on which a score rests, and no others.

Each unit has a weight: how far the score would move if that unit alone went from right to wrong. Units of a mean weigh
as many items as they hold; of a score of venomous and harmless snakes, eight venomous ones outweigh a hundred others.
From the weights a follow the effective number of items, (sum a)^2 / sum a^2 (Kish), and the number of units that carry
the variance, (sum a^2)^2 / sum a^4 (Satterthwaite), which limits the degrees of freedom.

The variance is that of the pseudo-values. Where the units that weigh most happen to agree, it says too little; it is
then what it would be if they differed as much as all units do. Scores between two bounds get a t interval on the scale
of log odds; where successes or failures are few, the mid-p binomial interval for the effective number of items (Korn
and Graubard, 1998); costs the mid-p gamma interval (Fay and Kim, 2017). Mid-p, because the exact intervals are wider
than they need to be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fieldmark.stats.concentrated import contributing_units
from fieldmark.stats.intervals import FEW_EVENTS, Interval
from fieldmark.stats.student import on_log_odds, t_quantile

Values = NDArray[np.float64]

# Pseudo-values that differ by less than this share of their size differ by rounding.
ROUNDING = 1e-9
# No score from 0 to 1 varies more than a share does. That worst case counts as half an event beside those seen, as an
# event that was not seen does under Jeffreys' prior.
WORST_CASE = 0.5
# An end that is more than e to this power times as far from the bound as the value says nothing.
FARTHEST = 3.0


@dataclass(frozen=True)
class Support:
    """How much of a score rests on each unit.

    Args:
        weight: Of each unit, 0 or more; only their ratios matter.
        most_items: How many items there are with a weight; more independent ones there cannot be.
        borrowing: Whether units that weigh much and happen to agree are taken to differ as much as all units do.

    >>> few = Support(np.append(np.full(8, 5.0), np.full(100, 0.1)), most_items=108)
    >>> round(few.items, 1), round(few.units, 1)
    (12.4, 8.1)
    """

    weight: Values
    most_items: int
    borrowing: bool = False

    @classmethod
    def of_items(cls, weight: Values, unit: NDArray[np.int32], *, borrowing: bool = False) -> Support:
        """The support of units from the weights of their items.

        Items of a unit are alike in part. By Smith's law (1938) the variance of a mean of s neighbors falls as s to the
        power of about -1/2, so that s equal items weigh as s to the power of 3/4.
        """
        n_units = int(unit.max()) + 1
        total = np.bincount(unit, weights=weight, minlength=n_units)
        squares = np.bincount(unit, weights=weight**2, minlength=n_units)
        there = total > 0
        alike = np.ones(n_units)
        alike[there] = total[there] ** 2 / squares[there]
        return cls(total / alike**0.25, int(np.count_nonzero(weight)), borrowing)

    @cached_property
    def share(self) -> Values:
        """The weights, with the sum 1."""
        return np.asarray(self.weight / self.weight.sum())

    @cached_property
    def items(self) -> float:
        """The number of equal units that would be as much evidence."""
        return 1 / float((self.share**2).sum())

    @cached_property
    def units(self) -> float:
        """The number of units that carry the variance, if all are equally uncertain."""
        squares = self.share**2
        return float(squares.sum()) ** 2 / float((squares**2).sum())


def supporting_interval(
    value: float,
    pseudo: Values,
    support: Support,
    *,
    level: float = 0.95,
    proportion: bool = False,
    bounds: tuple[float, float] = (0.0, 1.0),
    largest: float | None = None,
) -> Interval:
    """The interval of a score from the pseudo-values of its units and their weights.

    Args:
        value: The score on all units.
        pseudo: One pseudo-value per unit.
        support: The weight of each unit.
        level: The nominal coverage.
        proportion: Whether the score is a share of items.
        bounds: Where the score must lie.
        largest: For costs, what the costliest mistake costs; for a sum of costs the number of units times that.

    Returns:
        The interval, or none with the reason where the units cannot tell.
    """
    if not np.isfinite(value):
        return Interval(None, None, "none", "the score is undefined")
    if not np.isfinite(pseudo).all():
        return Interval(None, None, "none", "the score is undefined when one of the units is left out")
    if len(pseudo) < 2 or support.units < 1.5:
        return Interval(None, None, "none", "it rests on one unit only: nothing to compare it with")
    only_rounding = float(np.ptp(pseudo)) <= ROUNDING * max(abs(value), float(np.abs(pseudo).max()), 1e-300)
    variance = 0.0 if only_rounding else _variance(pseudo, support)
    if largest is not None:
        return _of_costs(value, variance, largest / len(pseudo), level)
    if not np.isfinite(bounds).all():
        return _on_one_side(value, pseudo, variance, support, bounds, level)
    width = bounds[1] - bounds[0]
    scaled = min(max((value - bounds[0]) / width, 0.0), 1.0)
    inner = _of_shares(scaled, pseudo, variance / width**2, support, level, proportion)
    if inner.low is None or inner.high is None:
        return inner
    low, high = (bounds[0] + width * end for end in (inner.low, inner.high))
    return Interval(min(low, value), max(high, value), inner.method)


def _variance(pseudo: Values, support: Support) -> float:
    """The variance of the score: of its pseudo-values, or what their weights make of it where that is more."""
    n_units = len(pseudo)
    squares = (pseudo - pseudo.mean()) ** 2
    variance = float(squares.sum()) / (n_units * (n_units - 1))
    if support.borrowing:
        there = support.share > 0
        of_an_item = float((squares[there] / (n_units * support.share[there]) ** 2).mean())
        variance = max(variance, of_an_item / support.items)
    return variance


def _of_shares(
    value: float, pseudo: Values, variance: float, support: Support, level: float, proportion: bool
) -> Interval:
    """The interval of a score from 0 to 1."""
    between = value * (1 - value)
    if variance == 0 or between == 0:
        if 0 < value < 1:
            return Interval(None, None, "none", "every unit gives the same value")
        return _mid_p_binomial(value, support.items, level)
    # Successes or failures, whichever are fewer, and how the score varies beside a share of independent items.
    events = min(value, 1 - value) * between / variance
    beside = variance * support.items / between
    if beside < 1 and not proportion:
        beside = (events * beside + WORST_CASE) / (events + WORST_CASE)
        variance = beside * between / support.items
    if events < FEW_EVENTS:
        return _mid_p_binomial(value, max(_effective_items(beside, support, level, proportion), 1.0), level)
    half_width = t_quantile(_freedom(pseudo, support), 0.5 + level / 2) * variance**0.5 / between
    low, high = on_log_odds(value, half_width)
    return Interval(low, high, "logit-t")


def _effective_items(beside: float, support: Support, level: float, proportion: bool) -> float:
    """The number of independent items that would vary as much; what is known only by estimate counts for less."""
    from scipy.special import ndtri  # takes long to import

    wider = (t_quantile(support.units - 1, 0.5 + level / 2) / float(ndtri(0.5 + level / 2))) ** 2
    if beside > 1:
        return support.items / (1 + (beside - 1) * wider)
    items = support.items / min(beside * wider, 1.0)
    return min(items, float(support.most_items)) if proportion else items


def freedom_seen(pseudo: Values) -> float:
    """Satterthwaite's degrees of freedom of the variance of pseudo-values, from their fourth moment; at least 2.

    About the number of units for a normal spread, and twice the number of units that carry the spread where few do.
    """
    contributing = contributing_units(pseudo)
    spare = 1 / contributing - 1 / len(pseudo) if contributing > 0 else 0.0
    return max(2 / spare, 2.0) if spare > 0 else float(len(pseudo))


def _freedom(pseudo: Values, support: Support) -> float:
    return min(max(support.units - 1, 1.0), freedom_seen(pseudo))


def _mid_p_binomial(value: float, items: float, level: float) -> Interval:
    from scipy.special import betainc

    hits = value * items

    def beyond(share: float) -> float:
        """The mid-p probability that so many hits or more come about."""
        more = betainc(hits, items - hits + 1, share) if hits > 0 else 1.0
        most = betainc(hits + 1, items - hits, share) if hits < items else 0.0
        return float(more + most) / 2

    tail = (1 - level) / 2
    low = _solved(beyond, tail, 0.0, value) if hits > 0 else 0.0
    high = _solved(beyond, 1 - tail, value, 1.0) if hits < items else 1.0
    return Interval(low, high, "mid-p binomial")


def _of_costs(value: float, variance: float, step: float, level: float) -> Interval:
    """The mid-p gamma interval: halfway between the costs seen and one more mistake of the largest cost, `step`."""

    def below(cost: float) -> float:
        seen = _gamma(value, variance, cost)
        return (seen + _gamma(value + step, variance + step**2, cost)) / 2

    tail, far = (1 - level) / 2, value + 40 * (step + variance**0.5)
    low = _solved(below, tail, 0.0, value) if value > 0 else 0.0
    return Interval(low, _solved(below, 1 - tail, value, far), "mid-p gamma")


def _gamma(mean: float, variance: float, cost: float) -> float:
    if mean <= 0 or variance <= 0:
        return 1.0 if cost >= mean else 0.0
    from scipy.special import gammainc

    return float(gammainc(mean**2 / variance, cost * mean / variance))


def _solved(rising: Callable[[float], float], level: float, low: float, high: float) -> float:
    """Where a rising function reaches a level; the nearer end where it does not in between."""
    if rising(low) >= level:
        return low
    if rising(high) <= level:
        return high
    # Bisection: importing scipy.optimize takes longer than scoring a run.
    while low < (middle := (low + high) / 2) < high and high - low > 1e-13:
        low, high = (middle, high) if rising(middle) < level else (low, middle)
    return middle


def _on_one_side(
    value: float, pseudo: Values, variance: float, support: Support, bounds: tuple[float, float], level: float
) -> Interval:
    """The interval of a score that has a bound on one side: t on the scale of the logarithm of its distance from it."""
    if variance == 0:
        return Interval(None, None, "none", "every unit gives the same value")
    half_width = t_quantile(_freedom(pseudo, support), 0.5 + level / 2) * variance**0.5
    bound, side = (bounds[0], 1) if np.isfinite(bounds[0]) else (bounds[1], -1)
    distance = side * (value - bound)
    if not np.isfinite(bound) or distance <= 0:
        return Interval(value - half_width, value + half_width, "jackknife-t")
    if half_width > FARTHEST * distance:
        return Interval(None, None, "none", "its units differ too much for so few of them")
    near, far = (bound + side * distance * float(np.exp(way * half_width / distance)) for way in (-1, 1))
    return Interval(min(near, far), max(near, far), "log-t")
