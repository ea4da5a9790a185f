"""Sounds that were detected beside sounds that were annotated: which match, and how right and complete they are.

Of one species there are *answers* (a window, a detection, a recording that was called) with a score and whether they
are right, and *positives* (a window, an annotation, a recording in which it was heard) with the highest score of the
answers that found them, -inf where none did. With t a threshold,

    precision(t) = right answers of score >= t / answers of score >= t
    recall(t)    = positives found at >= t / positives
    AP           = sum over the distinct scores t_1 > t_2 > ... of (recall(t_k) - recall(t_k-1)) precision(t_k)

What was not listed at all is no answer: positives that nothing found lower the recall, and AP ends there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Places = NDArray[np.int64]
# Sums of a number of a group and a time are told apart to about this many seconds; what lies closer is compared itself.
KEY_MARGIN_S = 1e-3


class Matches(NamedTuple):
    """The answers and the positives of one species.

    Args:
        score, right, unit: Of each answer: its score, whether it is right, and its independent unit (from 0).
        best, positive_unit: Of each positive: the highest score that found it (-inf for none), and its unit.
    """

    score: Values
    right: NDArray[np.bool_]
    unit: Places
    best: Values
    positive_unit: Places


def overlapping_pairs(
    start: Values,
    end: Values,
    group: Places,
    other_start: Values,
    other_end: Values,
    other_group: Places,
    *,
    at_least: float = 0.0,
) -> tuple[Places, Places]:
    """Which intervals of two lists overlap, within groups (recordings, or species in recordings).

    Two intervals overlap when they share more than nothing and at least `at_least` seconds, or the whole of the shorter
    one where that is shorter. One without length overlaps what begins at or before it and ends behind it.

    Returns:
        The places of both in their lists, one pair for each overlap, in the order of the first list.

    >>> zero = np.zeros(1, dtype=np.int64)
    >>> overlapping_pairs(np.array([0.0]), np.array([3.0]), zero, np.array([3.0]), np.array([4.0]), zero)[0].tolist()
    []
    """
    if not len(start) or not len(other_start):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    longest = float((other_end - other_start).max())
    width = float(max(end.max(), other_end.max())) + longest + 1.0
    order = np.argsort(other_group * width + other_start, kind="stable")
    key = (other_group * width + other_start)[order]
    first = np.searchsorted(key, group * width + start - longest - KEY_MARGIN_S, side="left")
    last = np.searchsorted(key, group * width + end + KEY_MARGIN_S, side="right")
    counts = np.maximum(last - first, 0)
    one = np.repeat(np.arange(len(start)), counts)
    two = order[np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)]
    shared = np.minimum(end[one], other_end[two]) - np.maximum(start[one], other_start[two])
    shorter = np.minimum(end[one] - start[one], other_end[two] - other_start[two])
    point = (shorter == 0) & (shared == 0) & _holds_point(start[one], end[one], other_start[two], other_end[two])
    kept = (group[one] == other_group[two]) & (((shared > 0) & (shared >= np.minimum(at_least, shorter))) | point)
    return one[kept], two[kept]


def _holds_point(start: Values, end: Values, other_start: Values, other_end: Values) -> NDArray[np.bool_]:
    """Whether the interval that has a length holds the one that has none; its end is outside."""
    at, low, high = (
        np.where(end == start, one, two) for one, two in ((start, other_start), (other_start, start), (other_end, end))
    )
    return np.asarray((low <= at) & ((at < high) | (low == high)))


def precision_at(matches: Matches, threshold: float) -> float:
    """The share of answers at or above a threshold that are right; NaN where there are none.

    >>> one, right = np.array([0, 0, 1]), np.array([True, False, True])
    >>> found = Matches(np.array([0.9, 0.5, 0.2]), right, one, np.array([0.9, -np.inf]), one[:2])
    >>> precision_at(found, 0.5), recall_at(found, 0.5), average_precision(found)
    (0.5, 0.5, 0.5)
    """
    kept = matches.score >= threshold
    return float(matches.right[kept].mean()) if kept.any() else float("nan")


def recall_at(matches: Matches, threshold: float) -> float:
    """The share of positives that were found at or above a threshold; NaN where there are none."""
    return float(_found(matches, threshold).mean()) if len(matches.best) else float("nan")


def average_precision(matches: Matches) -> float:
    """The area under precision over recall, by steps; NaN without positives."""
    if not len(matches.best):
        return float("nan")
    scores, place = np.unique(-matches.score, return_inverse=True)
    if not len(scores):
        return 0.0
    answers = np.bincount(place, minlength=len(scores)).cumsum()
    right = np.bincount(place, weights=matches.right, minlength=len(scores)).cumsum()
    found = np.searchsorted(np.sort(-matches.best), scores, side="right")
    return float((np.diff(found, prepend=0) * (right / answers)).sum() / len(matches.best))


def precision_without_each_unit(matches: Matches, threshold: float, *, units: int) -> Values:
    """Precision with each unit left out in turn."""
    kept = matches.score >= threshold
    answers = np.bincount(matches.unit[kept], minlength=units)
    right = np.bincount(matches.unit[kept], weights=matches.right[kept], minlength=units)
    return _ratio(right.sum() - right, answers.sum() - answers)


def recall_without_each_unit(matches: Matches, threshold: float, *, units: int) -> Values:
    """Recall with each unit left out in turn."""
    positives = np.bincount(matches.positive_unit, minlength=units)
    found = np.bincount(matches.positive_unit, weights=_found(matches, threshold), minlength=units)
    return _ratio(found.sum() - found, positives.sum() - positives)


def average_precision_without_each_unit(matches: Matches, *, units: int) -> Values:
    """Average precision with each unit left out in turn; only units with answers or positives are recomputed."""
    values = np.full(units, average_precision(matches))
    for unit in np.union1d(matches.unit, matches.positive_unit):
        own, others = matches.unit != unit, matches.positive_unit != unit
        left = Matches(
            matches.score[own],
            matches.right[own],
            matches.unit[own],
            matches.best[others],
            matches.positive_unit[others],
        )
        values[unit] = average_precision(left)
    return values


def pooled(of_species: list[Matches]) -> Matches:
    """The answers and positives of several species as those of one."""
    return Matches(*(np.concatenate(columns) for columns in zip(*of_species, strict=True)))


def _found(matches: Matches, threshold: float) -> NDArray[np.bool_]:
    """Which positives were found: at no threshold those that no answer is about."""
    return np.asarray((matches.best >= threshold) & (matches.best > -np.inf))


def _ratio(above: Values, below: NDArray[np.generic]) -> Values:
    return np.asarray(np.divide(above, below, out=np.full(len(above), np.nan), where=np.asarray(below) > 0))
