"""The lowest threshold at which a share of the answers is right, shown by annotations and with a stated risk.

Answers are ordered by falling score and looked at several times, each time with more units (recordings) than before:
which thresholds are tried depends on the scores alone. At each look the hypothesis "the precision is below the promise"
is tested by the exact binomial tail for the effective number of answers. Answers of a unit are alike, so that this
number comes from the spread between units (Korn and Graubard, 1998). Few wrong answers tell little about that spread;
the design effect is then drawn towards its worst, all answers of a unit alike:

    design = w * (spread between units / binomial spread) + (1 - w) * answers / units,  w = wrong / (wrong + 5)

The lowest threshold that passes is taken. Looking several times raises the risk, so that all looks share one level,
the highest at which a detector whose precision is exactly the promise at every score passes any look with the stated
risk (Pocock, 1977; computed from the binomial distribution, not from the normal one).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]
# Each look has so many times the units of the one before; the last, with all units, at least the second number.
GROWTH, LEAST_GROWTH = 1.6, 1.25
WRONG_TO_TELL = 5.0
# With more units than these the looks are as correlated as with these.
MOST_UNITS = 400


class Promise(NamedTuple):
    """What annotations show about one species.

    Args:
        threshold: The lowest one that keeps the promise; None where it cannot be shown.
        precision: The share of right answers at or above it; of all answers where there is no threshold.
        p_value: Of the hypothesis that the precision there is below the promise.
        answers, units: How many there are at or above it; all of them where there is no threshold.
        level: The level at which each look was taken.
    """

    threshold: float | None
    precision: float
    p_value: float
    answers: int
    units: int
    level: float


def fewest_units(share: float, risk: float) -> int:
    """How many units must be right, with none wrong, before a promise can be shown.

    >>> fewest_units(0.9, 0.05)
    29
    """
    return math.ceil(math.log(risk) / math.log(share) - 1e-9)


def effective_answers(right: Flags, unit: NDArray[np.int64]) -> float:
    """The number of independent answers that would tell as much; `unit` counts from 0 without gaps."""
    answers, units = len(right), int(unit.max()) + 1
    wrong = answers - int(right.sum())
    worst = answers / units
    design = worst
    if 0 < wrong < answers and units > 1:
        value = right.mean()
        spread = np.bincount(unit, weights=right - value, minlength=units)
        # Both spreads are of a sample, so that units of one answer each have a design effect of exactly 1.
        unbiased = units / (units - 1) * (answers - 1) / answers
        measured = float((spread**2).sum()) * unbiased / answers / (value * (1 - value))
        weight = wrong / (wrong + WRONG_TO_TELL)
        design = weight * measured + (1 - weight) * worst
    return answers / max(design, 1.0)


def promise_p_value(right: Flags, unit: NDArray[np.int64], *, share: float) -> float:
    """How likely so many right answers are, at the most, where their share is below the promise.

    >>> round(promise_p_value(np.ones(29, dtype=bool), np.arange(29), share=0.9), 3)
    0.047
    """
    hits = float(right.mean()) if len(right) else 0.0
    if hits == 0:
        return 1.0
    effective = effective_answers(right, unit)
    return float(betainc(hits * effective, effective - hits * effective + 1, share))


def look_sizes(units: int, *, share: float, risk: float) -> tuple[int, ...]:
    """With how many units each look is taken: each with 1.6 times as many, the last with all of them.

    >>> [look_sizes(units, share=0.9, risk=0.05) for units in (28, 40, 150)]
    [(), (40,), (36, 58, 93, 150)]
    """
    if units < fewest_units(share, risk):
        return ()
    sizes = []
    size = fewest_units(share, risk / 2)
    while size * LEAST_GROWTH <= units:
        sizes.append(size)
        size = math.ceil(size * GROWTH)
    return (*(one for one in sizes if one < units), units)


@lru_cache(maxsize=4096)
def look_level(sizes: tuple[int, ...], *, share: float, risk: float) -> float:
    """The level of each look at which all of them together have the risk.

    >>> look_level((60,), share=0.9, risk=0.05)
    0.05
    >>> 0.02 < look_level((36, 58, 93, 150), share=0.9, risk=0.05) < 0.035
    True
    """
    if len(sizes) < 2:
        return risk
    scale = min(1.0, MOST_UNITS / sizes[-1])
    steps = tuple(max(2, round(size * scale)) for size in sizes) if scale < 1 else sizes
    low, high = risk / len(sizes), risk
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if _passing(steps, share, middle) <= risk else (low, middle)
    return low


def _passing(sizes: tuple[int, ...], share: float, level: float) -> float:
    """The chance that any look passes, where every answer is right with probability `share`."""
    chances, before, passed = np.ones(1), 0, 0.0
    for size in sizes:
        chances = np.convolve(chances, _binomial(size - before, share))
        hits = np.arange(size + 1)
        passing = betainc(np.maximum(hits, 1e-9), size - hits + 1, share) <= level
        passed += float(chances[passing].sum())
        chances, before = np.where(passing, 0.0, chances), size
    return passed


def _binomial(size: int, share: float) -> Values:
    """The chance of each number of successes; scipy.stats has the same and takes long to import."""
    hits = np.arange(size + 1)
    ways = gammaln(size + 1) - gammaln(hits + 1) - gammaln(size - hits + 1)
    return np.asarray(np.exp(ways + hits * math.log(share) + (size - hits) * math.log1p(-share)))


def promised_threshold(
    score: Values, right: Flags, unit: NDArray[np.int64], *, share: float = 0.9, risk: float = 0.05
) -> Promise:
    """The lowest threshold at which at least a share of the answers is right.

    Args:
        score: Of each answer, higher is surer.
        right: Whether it is right.
        unit: Its independent unit, such as its recording.
        share: The promise: the least precision.
        risk: The chance that a threshold is given and the promise does not hold there.

    >>> score = np.linspace(1, 0, 300)
    >>> promise = promised_threshold(score, score > 0.3, np.arange(300))
    >>> round(promise.threshold, 2), promise.units
    (0.51, 149)
    """
    if not (0 < share < 1 and 0 < risk < 1):
        raise ValueError("a promise is a share between 0 and 1, with a risk between 0 and 1")
    names, unit = np.unique(unit, return_inverse=True)
    sizes = look_sizes(len(names), share=share, risk=risk)
    level = look_level(sizes, share=share, risk=risk)
    precision = float(right.mean()) if len(right) else float("nan")
    best = Promise(None, precision, 1.0, len(right), len(names), level)
    highest = np.full(len(names), -np.inf)
    np.maximum.at(highest, unit, score)
    highest = -np.sort(-highest)
    for size in sizes:
        threshold = float(score.min()) if size == len(names) else float(highest[size - 1])
        kept = score >= threshold
        _, own = np.unique(unit[kept], return_inverse=True)
        p_value = promise_p_value(right[kept], own, share=share)
        if p_value <= level:
            reached = float(right[kept].mean())
            best = Promise(threshold, reached, p_value, int(kept.sum()), int(own.max()) + 1, level)
        elif best.threshold is None and p_value < best.p_value:
            best = best._replace(p_value=p_value)
    return best


def units_needed(precision: float, *, share: float = 0.9, risk: float = 0.05, power: float = 0.8) -> int | None:
    """How many units, one answer each, show the promise with some probability; None where the precision is too low.

    >>> units_needed(0.97), units_needed(0.99), units_needed(0.9)
    (89, 46, None)
    """
    if precision <= share:
        return None
    low, high = 1, 1
    while _power(high, precision, share, risk) < power:
        low, high = high, high * 2
        if high > 1_000_000:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(middle, precision, share, risk) >= power else (middle + 1, high)
    return high


def _power(units: int, precision: float, share: float, risk: float) -> float:
    """The chance that a single look passes; of a saw with its teeth, the lower end of the next ten sizes."""
    return min(_power_of_size(size, precision, share, risk) for size in range(units, units + 10))


def _power_of_size(size: int, precision: float, share: float, risk: float) -> float:
    low, high = 0, size + 1
    while low < high:  # the fewest right answers that pass
        middle = (low + high) // 2
        passes = middle > 0 and float(betainc(middle, size - middle + 1, share)) <= risk if middle <= size else True
        low, high = (low, middle) if passes else (middle + 1, high)
    return float(betainc(low, size - low + 1, precision)) if low <= size else 0.0
