"""Comparing runs on the same units.

The difference of two runs is judged by the differences of their pseudo-values, unit by unit, so that what is hard for
both cancels out. Over all pairs p-values are adjusted by Holm's method; a run's rank interval counts the runs that are
better or worse beyond doubt after that adjustment, and therefore holds for all runs at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.stats.intervals import Interval
from fieldmark.stats.student import t_quantile, t_share

Values = NDArray[np.float64]

# Differences of pseudo-values below this share of the largest one are rounding, not disagreement.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Difference:
    """The difference of two runs.

    Args:
        first: The number of the first run.
        second: The number of the second.
        value: Score of the first minus score of the second.
        interval: Of that difference, for this pair alone; or none with the reason.
        p_value: Two-sided, for no difference in the expected score.
        p_adjusted: After Holm's adjustment over all pairs.
        better: The probability that the first is the better run, from a flat prior.
    """

    first: int
    second: int
    value: float
    interval: Interval
    p_value: float
    p_adjusted: float
    better: float

    def to_json(self) -> dict[str, float | None]:
        """The difference without the names of the runs."""
        return {
            "value": self.value,
            "low": self.interval.low,
            "high": self.interval.high,
            "p_value": self.p_value,
            "p_adjusted": self.p_adjusted,
            "probability_first_is_better": self.better,
        }


@dataclass(frozen=True)
class Standing:
    """Where a run stands among all: its place by score (equal scores share it) and the ranks it may really have."""

    run: int
    place: int
    rank_low: int
    rank_high: int


@dataclass(frozen=True)
class PairedRuns:
    """All pairs and all standings.

    Args:
        differences: One per pair, in the order (0, 1), (0, 2), ..., (1, 2), ...
        standings: One per run.
        level: 1 minus the error rate that holds for all ranks at once.
        higher_is_better: Which way is up.
    """

    differences: tuple[Difference, ...]
    standings: tuple[Standing, ...]
    level: float
    higher_is_better: bool

    @property
    def best_group(self) -> tuple[int, ...]:
        """The runs that no other is significantly better than; with probability `level` the best run is one of them."""
        return tuple(standing.run for standing in self.standings if standing.rank_low == 1)


@dataclass(frozen=True)
class _Uncertainty:
    """How sure a difference is: its standard error and degrees of freedom; or why that cannot be said."""

    error: float
    freedom: float
    reason: str | None = None
    p_least: float = 1.0


def compare(
    values: Values, pseudo: Values, *, level: float = 0.95, higher_is_better: bool = True, rests_on: float = math.inf
) -> PairedRuns:
    """Compares two or more runs by their pseudo-values on the same units.

    The error of a difference is that of a mean over the U units; the t quantile has m - 1 degrees of freedom, where m
    is the number of units on which the two runs differ: where they differ on few, few tell about them. Nor is it more
    than the number of units on which the metric rests: of eight recordings, two may hold most of the segments.

    Args:
        values: The score of each run.
        pseudo: One row per run, one column per unit.
        level: The nominal coverage of the intervals, and of all rank intervals together.
        higher_is_better: Which way is up.
        rests_on: On how many units the metric rests.

    >>> rng = np.random.default_rng(0)
    >>> luck = rng.random(200)
    >>> hits = np.array([luck < 0.8, luck < 0.5, luck < 0.49], dtype=float)
    >>> outcome = compare(hits.mean(axis=1), hits)
    >>> [(standing.rank_low, standing.rank_high) for standing in outcome.standings], outcome.best_group
    ([(1, 1), (2, 3), (2, 3)], (0,))
    """
    return _compared(values, lambda a, b: _from_units(pseudo[a] - pseudo[b], rests_on), level, higher_is_better)


def compare_replicates(
    values: Values, replicates: Values, *, n_units: int, level: float = 0.95, higher_is_better: bool = True
) -> PairedRuns:
    """Compares runs by their values on the same resampled units, for metrics that take a bootstrap standard error.

    Args:
        values: The score of each run.
        replicates: One row per run, one column per sample of the units, the same sample for all runs.
        n_units: The number of units, for the degrees of freedom.
        level: The nominal coverage of the intervals, and of all rank intervals together.
        higher_is_better: Which way is up.
    """

    def uncertainty(a: int, b: int) -> _Uncertainty:
        apart = replicates[a] - replicates[b]
        apart = apart[np.isfinite(apart)]
        if len(apart) < 2 or n_units < 2:
            return _Uncertainty(0.0, 0.0, "too few samples of the units give a value")
        error = float(apart.std(ddof=1))
        return _Uncertainty(error, n_units - 1, None if error > 0 else "every sample gives the same difference")

    return _compared(values, uncertainty, level, higher_is_better)


def holm(p_values: Values) -> Values:
    """Holm's step-down adjustment: the probability of any false rejection among all stays below the level.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def paired_difference(
    pair: tuple[int, int],
    value: float,
    apart: Values,
    p_adjusted: float,
    *,
    level: float,
    higher_is_better: bool,
    rests_on: float = math.inf,
) -> Difference:
    """The difference of two runs by their pseudo-values, whose p-value was adjusted elsewhere.

    Args:
        pair: The numbers of the two.
        value: Score of the first minus score of the second.
        apart: The same, pseudo-value by pseudo-value.
        p_adjusted: After Holm's adjustment over all pairs.
        level: The nominal coverage of the interval.
        higher_is_better: Which way is up.
        rests_on: On how many units the metric rests.
    """
    return _difference(pair, value, _from_units(apart, rests_on), p_adjusted, level, higher_is_better)


def freedom_of(differing: int | NDArray[np.int64], rests_on: float) -> Any:
    """The degrees of freedom where two runs differ on so many units and the metric rests on so many."""
    return np.maximum(np.minimum(differing, rests_on) - 1, 1)


def _from_units(apart: Values, rests_on: float) -> _Uncertainty:
    n_units = len(apart)
    if not np.isfinite(apart).all():
        return _Uncertainty(0.0, 0.0, "a score is undefined when one of the units is left out")
    differing = int((np.abs(apart) > ROUNDING * np.abs(apart).max()).sum())
    if differing < 2:
        return _Uncertainty(0.0, 0.0, f"the runs differ on {('no unit', 'one unit only')[differing]}")
    error = float(apart.std(ddof=1)) / n_units**0.5
    if error <= ROUNDING * float(np.abs(apart).max()):
        # Nothing is known of the spread, but that all units are on one side: the sign test.
        return _Uncertainty(0.0, 0.0, "every unit gives the same difference", 2.0 ** (1 - differing))
    return _Uncertainty(error, float(freedom_of(differing, rests_on)))


def _compared(
    values: Values, uncertainty: Callable[[int, int], _Uncertainty], level: float, higher_is_better: bool
) -> PairedRuns:
    n_runs = len(values)
    if n_runs < 2:
        raise ValueError(f"{n_runs} run(s) given, expected at least two to compare")
    pairs = list(combinations(range(n_runs), 2))
    apart = np.array([float(values[a] - values[b]) for a, b in pairs])
    uncertainties = [uncertainty(a, b) for a, b in pairs]
    p_values = np.array([_p_value(value, sure) for value, sure in zip(apart, uncertainties, strict=True)])
    adjusted = holm(p_values)
    differences = [
        _difference(pair, float(value), sure, float(p_adjusted), level, higher_is_better)
        for pair, value, sure, p_adjusted in zip(pairs, apart, uncertainties, adjusted, strict=True)
    ]
    standings = _standings(values, differences, 1 - level, higher_is_better)
    return PairedRuns(tuple(differences), standings, level, higher_is_better)


def _difference(
    pair: tuple[int, int], value: float, sure: _Uncertainty, p_adjusted: float, level: float, higher_is_better: bool
) -> Difference:
    p_value = _p_value(value, sure)
    upward = value if higher_is_better else -value
    better = 1 - p_value / 2 if upward > 0 else p_value / 2 if upward < 0 else 0.5
    return Difference(*pair, value, _interval(value, sure, level), p_value, p_adjusted, better)


def _p_value(value: float, sure: _Uncertainty) -> float:
    if sure.reason is not None:
        return sure.p_least if value != 0 else 1.0
    return 2 * t_share(sure.freedom, -abs(value) / sure.error)


def _interval(value: float, sure: _Uncertainty, level: float) -> Interval:
    if sure.reason is not None:
        return Interval(None, None, "none", sure.reason)
    half_width = t_quantile(sure.freedom, 0.5 + level / 2) * sure.error
    return Interval(float(value) - half_width, float(value) + half_width, "paired-t")


def _standings(
    values: Values, differences: list[Difference], alpha: float, higher_is_better: bool
) -> tuple[Standing, ...]:
    upward = values if higher_is_better else -values
    surely_better, surely_worse = (np.zeros(len(values), dtype=np.int64) for _ in range(2))
    for apart in differences:
        if apart.p_adjusted >= alpha:
            continue
        winner, loser = (apart.first, apart.second) if apart.better > 0.5 else (apart.second, apart.first)
        surely_better[loser] += 1
        surely_worse[winner] += 1
    return tuple(
        Standing(
            run=run,
            place=1 + int((upward > upward[run]).sum()),
            rank_low=1 + int(surely_better[run]),
            rank_high=len(values) - int(surely_worse[run]),
        )
        for run in range(len(values))
    )
