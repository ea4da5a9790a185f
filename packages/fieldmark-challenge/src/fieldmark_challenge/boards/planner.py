"""Before a challenge opens: the smallest difference that its test set can separate.

Two runs with scores whose pseudo-values have the standard deviation s and the correlation r differ, unit by unit, with
the standard deviation d = s sqrt(2 (1 - r)). A paired test on U units finds a true difference of

    D = (t(1 - a/2) + t(power)) d / sqrt(U)

with the probability `power`. A better run also disagrees more: where one unit counts 1 at most, runs that share their
luck on a part r of the units disagree on r D more of them, so that d^2 grows by r D, and D solves a quadratic equation.
With k entries the hardest step of Holm's method asks for a / (k (k - 1) / 2). The spread s
comes from a baseline's pseudo-values on a comparable set, which knows about long tails and about several photos in one
observation; or from an assumed score p as sqrt(p (1 - p)), which no score between 0 and 1 with one value per unit can
exceed. How alike the entries of a challenge are is not known before: without two baselines to measure it on, the plan
names what it assumed.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtrit

from fieldmark.benchmarks.declarations import Metric
from fieldmark.errors import MisuseError
from fieldmark.scoring import Scorecard

# Entries of one challenge fail on the same hard units; this is a middling assumption, and the page shows it as such.
USUAL_CORRELATION = 0.5
FEWEST_UNITS = 3
# A baseline that varies less than this share of the other is of another kind, such as one constant answer.
TOO_STEADY = 0.5
# A baseline with a smaller share right tells nothing of the spread of entries.
WEAK_SHARE = 0.1


@dataclass(frozen=True)
class UnitSpread:
    """How much the units differ for one run, how alike two runs are, and where both are known from.

    Args:
        deviation: The standard deviation of one run's values per unit.
        correlation: Of two runs, over units.
        source: In words.
        largest: What one unit can count at most (1 for a share), where the likeness was taken between runs of equal
            score; 0 where it was measured on runs that differ.
        widest: The largest difference that two runs can have at all: 1 for a share, the costliest mistake for a cost.
    """

    deviation: float
    correlation: float
    source: str
    largest: float = 0.0
    widest: float = math.inf

    @property
    def growth(self) -> float:
        """By how much the variance of the difference grows for each point that one run is better."""
        return self.largest * max(self.correlation, 0.0)

    def of_difference(self, difference: float = 0.0) -> float:
        """The standard deviation per unit of the difference of two runs, one of which is better by so much."""
        return math.sqrt(2 * self.deviation**2 * (1 - self.correlation) + self.growth * abs(difference))


@dataclass(frozen=True)
class Plan:
    """What a test set can show.

    Args:
        units: The independent units of the part.
        entries: How many entries are compared with each other.
        level, power: One minus the error rate over all pairs, and the probability to find what is there.
        half_width: Of the interval around one score; at most as wide as scores can differ.
        pair: The smallest difference of two entries that is found when only these two are compared; None where no
            difference that two scores can have is large enough, so that nothing is separable.
        among_all: The same when all entries are compared with each other.
        spread: What it was computed from.
    """

    units: int
    entries: int
    level: float
    power: float
    half_width: float
    pair: float | None
    among_all: float | None
    spread: UnitSpread

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data; null for a limit that is not there."""
        data = asdict(self)
        if math.isinf(self.spread.widest):
            data["spread"]["widest"] = None
        return data


def assumed_spread(score: float, *, correlation: float = USUAL_CORRELATION) -> UnitSpread:
    """The spread from an expected score between 0 and 1, one value per unit.

    >>> round(assumed_spread(0.18).deviation, 3)
    0.384
    """
    if not 0 < score < 1:
        raise MisuseError(f"An expected score lies between 0 and 1, not at {score:g}.")
    if not -1 < correlation < 1:
        raise MisuseError(f"A correlation lies between -1 and 1, not at {correlation:g}.")
    source = f"an assumed score of {score:g} with one value per unit and a correlation of {correlation:g} between runs"
    return UnitSpread(math.sqrt(score * (1 - score)), correlation, source, largest=1.0, widest=1.0)


def measured_spread(card: Scorecard, metric: Metric, other: Scorecard | None = None) -> UnitSpread:
    """The spread of a baseline; with a second baseline on the same units, how alike two runs are is measured too.

    A second one that hardly varies tells nothing of how alike good runs are, and is left out.
    """
    if metric.name not in card.pseudo:
        raise MisuseError(f"{metric.name} has no value per unit, from which a plan could be made.")
    own = card.pseudo[metric.name]
    if len(own) < FEWEST_UNITS or not np.isfinite(own).all() or own.std() == 0:
        raise MisuseError(f"The {len(own)} units of the baseline do not tell how much units differ.")
    widest = metric.bounds[1] - metric.bounds[0] if metric.largest_cost is None else metric.largest_cost
    told = None if other is None or other.unit_ids != card.unit_ids else other.pseudo[metric.name]
    if told is None or told.std() < TOO_STEADY * own.std():
        return UnitSpread(
            float(own.std(ddof=1)),
            USUAL_CORRELATION,
            f"a baseline on {len(own)} units, and an assumed correlation of {USUAL_CORRELATION:g} between runs",
            largest=1.0 if metric.is_share else 0.0,
            widest=widest,
        )
    deviation = math.sqrt((float(own.var(ddof=1)) + float(told.var(ddof=1))) / 2)
    apart = float((own - told).std(ddof=1))
    return UnitSpread(deviation, 1 - apart**2 / (2 * deviation**2), f"two baselines on {len(own)} units", widest=widest)


def tells(card: Scorecard, metric: Metric) -> bool:
    """Whether a baseline is good enough to say how much the units differ for runs that are worth comparing.

    One that is nearly always wrong is so on all units alike, and would promise far too much.
    """
    return not metric.is_share or card.metrics[metric.name].value >= WEAK_SHARE


def plan(units: int, spread: UnitSpread, *, entries: int = 10, level: float = 0.95, power: float = 0.8) -> Plan:
    """What can be told apart with so many units.

    >>> found = plan(638, assumed_spread(0.18), entries=2)
    >>> round(found.half_width, 3), round(found.pair, 3)
    (0.03, 0.046)
    """
    if units < FEWEST_UNITS:
        raise MisuseError(f"{units} independent units are too few to separate anything; at least {FEWEST_UNITS}.")
    if entries < 2:
        raise MisuseError("A plan is about at least two entries.")
    if not (0 < level < 1 and 0 < power < 1):
        raise MisuseError("Level and power lie between 0 and 1.")
    pairs = entries * (entries - 1) // 2
    tail = (1 - level) / 2
    return Plan(
        units=units,
        entries=entries,
        level=level,
        power=power,
        half_width=min(_quantile(units, tail) * spread.deviation / math.sqrt(units), spread.widest),
        pair=_separable(units, spread, _quantile(units, tail) + _quantile(units, 1 - power)),
        among_all=_separable(units, spread, _quantile(units, tail / pairs) + _quantile(units, 1 - power)),
        spread=spread,
    )


def units_for(
    difference: float, spread: UnitSpread, *, entries: int = 2, level: float = 0.95, power: float = 0.8
) -> int:
    """How many units it takes to separate a difference; the smallest number that does.

    >>> units_for(0.046, assumed_spread(0.18))
    635
    """
    if difference <= 0:
        raise MisuseError("The difference to be separated is larger than 0.")
    if difference > spread.widest:
        raise MisuseError(f"No two scores differ by more than {spread.widest:g}; {difference:g} was asked about.")

    def too_few(units: int) -> bool:
        separable = plan(units, spread, entries=entries, level=level, power=power).among_all
        return separable is None or separable > difference

    low, high = FEWEST_UNITS, FEWEST_UNITS + 1
    while too_few(high):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if too_few(middle):
            low = middle + 1
        else:
            high = middle
    return low


def chance_of_swap(difference: float, spread: UnitSpread, *, public: int, private: int) -> float:
    """The probability that two entries change places between the public and the private board.

    Args:
        difference: How much better one of them really is.
        spread: Of the values per unit.
        public: The units of the public part.
        private: The units of the private part.

    >>> round(chance_of_swap(0.0, assumed_spread(0.5), public=100, private=400), 2)
    0.5
    """
    apart = difference / spread.of_difference(difference)
    right = [float(ndtr(apart * math.sqrt(units))) for units in (public, private)]
    return right[0] * (1 - right[1]) + right[1] * (1 - right[0])


def _separable(units: int, spread: UnitSpread, quantiles: float) -> float | None:
    """The difference D with D = quantiles * d(D) / sqrt(units), where d(D)^2 grows with D; None beyond the widest."""
    share = quantiles**2 / units
    difference = (
        share * spread.growth + math.sqrt((share * spread.growth) ** 2 + 4 * share * spread.of_difference() ** 2)
    ) / 2
    return difference if difference <= spread.widest else None


def _quantile(units: int, tail: float) -> float:
    return -float(stdtrit(units - 1, tail))
