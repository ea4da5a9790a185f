"""Bootstrap standard errors over independent units, for metrics that rest on a quantile.

Leaving out one unit moves a quantile by at most one step, so the pseudo-values of such a metric (the true negative rate
at 95 % true positive rate) do not estimate its error. Drawing the units again with replacement does. Only the standard
error is taken from the draws: percentile intervals cover too rarely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from fieldmark.stats.intervals import Interval
from fieldmark.stats.student import t_quantile

Values = NDArray[np.float64]
Times = NDArray[np.int64]

REPLICATES = 1000
# Cells of a block of draws: large enough to keep NumPy busy, small enough to forget.
BLOCK_CELLS = 4_000_000
# Above this share of draws without a value, what is left no longer stands for the sampling of units.
_UNDEFINED_ALLOWED = 0.05


def draws(n_units: int, *, rng: np.random.Generator, replicates: int = REPLICATES) -> Iterator[Times]:
    """How often each unit is drawn when `n_units` of them are drawn with replacement.

    Yields:
        Blocks with one row per replicate and one column per unit; `replicates` rows in all.
    """
    per_block = max(BLOCK_CELLS // n_units, 1)
    for start in range(0, replicates, per_block):
        rows = min(per_block, replicates - start)
        drawn = rng.integers(0, n_units, (rows, n_units)) + n_units * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n_units).reshape(rows, n_units)


def replicated(
    resampled: Callable[[Times], Values],
    n_units: int,
    *,
    rng: np.random.Generator,
    replicates: int = REPLICATES,
) -> Values:
    """The values of a metric on resampled units.

    To compare runs on the same units, give each a generator with the same seed: they then meet the same draws.

    Args:
        resampled: The metric, given how often each unit was drawn, one row per sample.
        n_units: The number of units.
        rng: Where the draws come from.
        replicates: How many.

    >>> values = np.array([1.0, 2.0, 3.0])
    >>> means = replicated(lambda times: times @ values / 3, 3, rng=np.random.default_rng(0), replicates=500)
    >>> bool(0.4 < means.std() < 0.55)
    True
    """
    return np.concatenate([resampled(times) for times in draws(n_units, rng=rng, replicates=replicates)])


def bootstrap_interval(
    value: float,
    replicates: Values,
    *,
    n_units: int,
    level: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """The interval value +- t * standard deviation of the replicates, with `n_units` - 1 degrees of freedom.

    Args:
        value: The score on all units; the center.
        replicates: The score on resampled units; those without a value (NaN) are left out where they are few.
        n_units: The number of units: where known and unknown items come from different units, the smaller number.
        level: The nominal coverage.
        bounds: Where the score must lie; the interval is cut there.

    Returns:
        The interval, or none with the reason.
    """
    if n_units < 2:
        return Interval(None, None, "none", "one unit only: nothing to compare it with")
    if not np.isfinite(value):
        return Interval(None, None, "none", "the score is undefined")
    variance = bootstrap_variance(replicates)
    if np.isnan(variance):
        return Interval(None, None, "none", "the score is undefined for many samples of the units")
    error = variance**0.5
    if error == 0:
        return Interval(None, None, "none", "every sample of the units gives the same value")
    half_width = t_quantile(n_units - 1, 0.5 + level / 2) * error
    return Interval(max(value - half_width, bounds[0]), min(value + half_width, bounds[1]), "bootstrap-t")


def bootstrap_variance(replicates: Values) -> float:
    """The variance of a score over resampled units; NaN where many of the samples have no value."""
    defined = replicates[np.isfinite(replicates)]
    if len(defined) < 2 or 1 - len(defined) / len(replicates) > _UNDEFINED_ALLOWED:
        return float("nan")
    return float(defined.var(ddof=1))
