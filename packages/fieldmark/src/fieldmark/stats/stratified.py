"""What a stratified draw tells about all that it was drawn from.

Stratum h has N_h entries; n_h of them were drawn at random and y_h of those hold. Then sum N_h y_h / n_h is an unbiased
estimate of how many hold in all, whatever the strata are. Shares of some strata (precision above a threshold) are
estimated by the same sums.

Recall divides by such a sum, and 1 / sum is convex: where few of a large stratum hold, dividing by the plain estimate
is too high on average (by a seventh where 1.5 % of it hold and 30 were drawn). For the stratum below the threshold
whose entries weigh most, `kept_share` takes the falling table of values whose mean over all draws comes closest to the
truth, however many hold there.

Intervals are of the entries themselves, drawn and not drawn. Those that were not drawn hold with a probability that has
the posterior Beta(y_h + a_h, n_h - y_h + b_h). The lower end takes a_h = 0 and b_h = s_h for strata that raise the
share, the other way around for those that lower it; the upper end is its mirror image. The s_h of either side add up
to one observation, shared by the weights N_h / n_h, so that one stratum alone gives the interval of Clopper and
Pearson (1934). What was looked at as a whole is certain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Counts = NDArray[np.int64]
Values = NDArray[np.float64]
Flags = NDArray[np.bool_]
DRAWS = 4000
# How many numbers that hold `kept_share` tries, and up to how many drawn ones its table is free.
TRIED, FREE = 150, 60


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
    counted: Flags,
    *,
    of: str,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The precision, recall or prevalence of some strata.

    Args:
        sizes: How many there are in each stratum.
        drawn: How many of them were drawn; at least one.
        hold: How many of those hold.
        counted: Which strata are called positive: those above a threshold.
        of: "precision" (how many of those counted hold), "recall" (how many that hold are counted), or "prevalence"
            (how many of all hold; `counted` does not matter).
        level: The nominal coverage.
        seed: Of the draws from the posterior.

    >>> sizes, drawn, hold = np.array([1000, 100]), np.array([50, 50]), np.array([5, 45])
    >>> made = share_estimate(sizes, drawn, hold, np.array([False, True]), of="recall")
    >>> round(made.value, 2), 0.2 < made.low < 0.4 < made.high < 0.8
    (0.45, True)
    """
    raising = np.ones(len(sizes), dtype=np.bool_) if of == "prevalence" else counted
    estimates = sizes * hold / drawn
    value = _recall(sizes, drawn, hold, counted) if of == "recall" else float(_share(estimates, sizes, counted, of))
    generator, tail = np.random.default_rng(seed), (1 - level) / 2
    ends = []
    for lower in (True, False):
        totals = _posterior_totals(sizes, drawn, hold, raising == lower, generator)
        values = _share(totals, sizes, counted, of)
        values = values[np.isfinite(values)]
        ends.append(float(np.quantile(values, tail if lower else 1 - tail)) if len(values) else float("nan"))
    low, high = ends
    return Estimate(value, min(low, value), max(high, value))


def _share(totals: Values, sizes: Counts, counted: Flags, of: str) -> Values:
    if of == "prevalence":
        return np.asarray(totals.sum(-1) / sizes.sum())
    above = totals[..., counted].sum(-1)
    below = np.asarray(sizes[counted].sum() if of == "precision" else totals.sum(-1))
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0))


def _posterior_totals(
    sizes: Counts, drawn: Counts, hold: Counts, fewer: Flags, generator: np.random.Generator
) -> Values:
    """Draws of how many hold in each stratum: as few as can be where `fewer` says so, as many elsewhere."""
    weight = sizes / drawn
    prior = np.where(fewer, weight / max(weight[fewer].sum(), 1e-300), weight / max(weight[~fewer].sum(), 1e-300))
    yes, no = hold + np.where(fewer, 0.0, prior), drawn - hold + np.where(fewer, prior, 0.0)
    some = (yes > 0) & (no > 0)
    chance = generator.beta(np.where(some, yes, 1.0), np.where(some, no, 1.0), (DRAWS, len(sizes)))
    chance = np.where(some, chance, (yes > 0).astype(np.float64))
    return np.asarray(hold + generator.binomial(np.broadcast_to(sizes - drawn, chance.shape), chance), dtype=np.float64)


def _recall(sizes: Counts, drawn: Counts, hold: Counts, counted: Flags) -> float:
    estimates = sizes * hold / drawn
    if counted.all() or not estimates[counted].sum():
        return float(_share(estimates, sizes, counted, "recall"))
    heaviest = int(np.argmax(np.where(counted, 0.0, sizes / drawn)))
    others = float(estimates.sum() - estimates[heaviest])
    kept = kept_share(int(sizes[heaviest]), int(drawn[heaviest]), int(hold[heaviest]), others)
    return float(estimates[counted].sum() / others * kept)


def kept_share(size: int, drawn: int, hold: int, others: float) -> float:
    """The share others / (others + K), where K of a stratum of `size` hold and `hold` of the `drawn` ones were seen to.

    No table of values for 0, 1, 2, ... seen has exactly this mean for every K; the one that is taken never rises, stays
    within 0 and 1, and has the least squared relative error of its mean over K from 0 to `size`.

    >>> round(kept_share(18_800, 30, 0, 820.0), 2), round(kept_share(18_800, 30, 1, 820.0), 2)
    (0.99, 0.33)
    >>> kept_share(50, 50, 10, 10.0)
    0.5
    """
    if drawn >= size:
        return others / (others + hold)
    from scipy.optimize import lsq_linear

    true = np.unique(np.append(0, np.geomspace(1, size, TRIED).round())).astype(np.int64)
    share = others / (others + true)
    plain = others / (others + size * np.arange(drawn + 1) / drawn)
    last = min(drawn, FREE)
    chances = hypergeometric(size, drawn, true)
    # Beyond `last` the table falls as the plain ratio does.
    tail = chances[:, last:] @ (plain[last:] / plain[last])
    free = np.column_stack([chances[:, :last], tail])
    falls = np.tril(np.ones((last + 1, last + 1)))
    found = lsq_linear(-free @ falls / share[:, None], (share - free.sum(axis=1)) / share, bounds=(0, 1))
    table = np.clip(1 - np.cumsum(found.x), 0, 1)
    return float(table[min(hold, last)] * plain[hold] / plain[min(hold, last)])


def hypergeometric(size: int, drawn: int, true: Counts) -> Values:
    """The chance of each number among the drawn ones, one row for each true number; scipy.stats takes long to load."""
    seen, true = np.arange(drawn + 1), true[:, None]

    def ways(of: Counts, taken: Counts) -> Values:
        possible = (taken >= 0) & (taken <= of)
        inside = np.where(possible, taken, 0)
        logs = gammaln(of + 1) - gammaln(inside + 1) - gammaln(of - inside + 1)
        return np.asarray(np.where(possible, logs, -np.inf))

    whole = ways(np.array(size), np.array(drawn))
    return np.asarray(np.exp(ways(true, seen) + ways(size - true, drawn - seen) - whole))
