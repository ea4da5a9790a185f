"""What a stratified draw tells about all that it was drawn from.

Stratum h has N_h entries; n_h of them were drawn at random and y_h of those hold. Then sum N_h y_h / n_h is an unbiased
estimate of how many hold in all, whatever the strata are. Shares of some strata (precision above a threshold) and
ratios between them (recall) are estimated by the same sums.

Intervals are of the entries themselves, drawn and not drawn: those that were not drawn hold with a probability that has
Jeffreys' posterior, Beta(y_h + 1/2, n_h - y_h + 1/2), stratum by stratum. What was looked at as a whole is certain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
DRAWS = 4000


class Estimate(NamedTuple):
    """A value with its interval."""

    value: float
    low: float
    high: float


def allocate(sizes: Counts, draws: int, *, first: float = 0.0) -> Counts:
    """How many to draw from each stratum: as evenly as their sizes allow.

    Args:
        sizes: How many there are in each.
        draws: How many to draw in all.
        first: The share of the draws that the first stratum gets, where it is so large that what it holds decides; 0
            for as much as the others.

    >>> sizes = np.array([1000, 3, 50, 40])
    >>> allocate(sizes, 30).tolist(), allocate(sizes, 30, first=0.5).tolist()
    ([9, 3, 9, 9], [15, 3, 6, 6])
    """
    given = np.zeros(len(sizes), dtype=np.int64)
    left = min(draws, int(sizes.sum()))
    if first:
        given[0] = min(round(first * left), sizes[0])
        left -= int(given[0])
    while left:
        open_ = np.flatnonzero((given < sizes) & ((np.arange(len(sizes)) > 0) | (first == 0)))
        open_ = open_ if len(open_) else np.flatnonzero(given < sizes)
        share = max(1, left // len(open_))
        for place in open_[np.argsort(given[open_], kind="stable")]:
            taken = min(share, int(sizes[place] - given[place]), left)
            given[place] += taken
            left -= taken
            if not left:
                break
    return given


def total(sizes: Counts, drawn: Counts, hold: Counts) -> float:
    """The unbiased estimate of how many hold in all strata.

    >>> total(np.array([100, 10]), np.array([10, 10]), np.array([1, 9]))
    19.0
    """
    return float(np.divide(sizes * hold, drawn, out=np.zeros(len(sizes)), where=drawn > 0).sum())


def share_estimate(
    sizes: Counts,
    drawn: Counts,
    hold: Counts,
    counted: NDArray[np.bool_],
    *,
    of: str,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The precision, recall or prevalence of some strata.

    Args:
        sizes: How many there are in each stratum.
        drawn: How many of them were drawn.
        hold: How many of those hold.
        counted: Which strata are called positive: those above a threshold.
        of: "precision" (how many of those counted hold), "recall" (how many that hold are counted), or "prevalence"
            (how many of all hold; `counted` does not matter).
        level: The nominal coverage.
        seed: Of the draws from the posterior.

    >>> sizes, drawn, hold = np.array([1000, 100]), np.array([50, 50]), np.array([5, 45])
    >>> made = share_estimate(sizes, drawn, hold, np.array([False, True]), of="recall")
    >>> round(made.value, 3), 0.2 < made.low < 0.4 < made.high < 0.8
    (0.474, True)
    """
    generator = np.random.default_rng(seed)
    rest = sizes - drawn
    chance = generator.beta(hold + 0.5, drawn - hold + 0.5, (DRAWS, len(sizes)))
    totals = hold + generator.binomial(np.broadcast_to(rest, chance.shape), chance)
    estimates = np.divide(sizes * hold, drawn, out=np.zeros(len(sizes)), where=drawn > 0)

    def share(values: NDArray[np.float64]) -> NDArray[np.float64]:
        if of == "prevalence":
            return np.asarray(values.sum(-1) / sizes.sum())
        above = values[..., counted].sum(-1)
        below = sizes[counted].sum() if of == "precision" else values.sum(-1)
        return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=np.asarray(below) > 0))

    value, drawn_values = float(share(estimates[None])[0]), share(totals.astype(np.float64))
    drawn_values = drawn_values[np.isfinite(drawn_values)]
    if not len(drawn_values):
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.quantile(drawn_values, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, min(float(low), value), max(float(high), value))
