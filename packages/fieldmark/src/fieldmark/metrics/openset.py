"""Metrics of open-set recognition: telling known from unknown, and naming the known.

Runs give `unknown_score`, higher for items that look more like none of the classes. The benchmarks count *known* as the
positive class, so the score that ranks positives first is its negative; every function here that takes an
`unknown_score` turns it around itself. Infinite scores are allowed, NaN is refused.

Labels are codes with -1 for unknown, in the truth and in the answers.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.checks import refuse_nan
from fieldmark.metrics.classification import (
    Codes,
    Mask,
    Over,
    Values,
    macro_f1,
    macro_f1_without_each_unit,
    unknown_as_class,
)

Scores = NDArray[Any]
Threshold = Literal["first", "nearest"]
TiedPairs = Literal["half", "zero"]
UnknownClass = Literal["averaged", "left out"]


def roc_auc(score: Scores, positive: Mask, *, ties: TiedPairs = "half") -> float:
    """Area under the ROC curve: the share of (positive, negative) pairs in which the positive has the higher score.

    A = sum over pairs of [s_i > s_j] + [s_i = s_j] / 2, divided by the number of pairs. Without a positive or without a
    negative it is undefined: NaN.

    Args:
        score: One score per item, higher for items that look positive.
        positive: Which items are.
        ties: Whether a pair of equal scores counts one "half", which is the trapezoid under the curve, or "zero", as
            the organizers of FungiTastic count.

    >>> score, positive = np.array([0.9, 0.4, 0.4, 0.1]), np.array([True, True, False, False])
    >>> [roc_auc(score, positive, ties=ties) for ties in ("half", "zero")]
    [0.875, 0.75]
    """
    refuse_nan(score)
    pairs = int(positive.sum()) * int((~positive).sum())
    if pairs == 0:
        return float("nan")
    return float(_beaten(score[positive], np.sort(score[~positive]), ties).sum() / pairs)


def roc_auc_without_each_unit(score: Scores, positive: Mask, unit: Codes, *, ties: TiedPairs = "half") -> Values:
    """Area under the ROC curve with each unit left out in turn, exactly and in O(n log n).

    The pairs that go are those with an item of the unit on either side (DeLong's components of its items, summed),
    where pairs inside the unit must be taken off once, not twice.
    """
    refuse_nan(score)
    n_units = int(unit.max()) + 1
    # Numbers for the scores, so that (unit, score) packs into one integer and pairs inside a unit are found by sorting.
    distinct, rank = np.unique(score, return_inverse=True)
    inside = unit.astype(np.int64) * (len(distinct) + 1) + rank
    first = unit.astype(np.int64) * (len(distinct) + 1)

    negatives, own_negatives = np.sort(rank[~positive]), np.sort(inside[~positive])
    positives = np.sort(rank[positive])
    won = np.zeros(len(score))
    won[positive] = _beaten(rank[positive], negatives, ties)
    won[~positive] = _beaten(-rank[~positive], -positives[::-1], ties)
    own = _beaten(inside[positive], own_negatives, ties) - np.searchsorted(own_negatives, first[positive])

    total = won[positive].sum() - np.bincount(unit, weights=won, minlength=n_units)
    total += np.bincount(unit[positive], weights=own, minlength=n_units)
    left = positive.sum() - np.bincount(unit[positive], minlength=n_units)
    pairs = left * ((~positive).sum() - np.bincount(unit[~positive], minlength=n_units))
    return np.asarray(np.divide(total, pairs, out=np.full(n_units, np.nan), where=pairs > 0))


def known_roc_auc(unknown_score: Scores, is_known: Mask, *, ties: TiedPairs = "half") -> float:
    """Area under the ROC curve with known as the positive class and `-unknown_score` as its score.

    Taking unknown as positive and `unknown_score` as it stands gives the same number: both count the pairs in which
    the unknown item has the higher `unknown_score`.

    >>> known_roc_auc(np.array([0.1, 0.6, 0.6, 0.9]), np.array([True, True, False, False]))
    0.875
    """
    return roc_auc(-unknown_score, is_known, ties=ties)


def known_roc_auc_without_each_unit(
    unknown_score: Scores, is_known: Mask, unit: Codes, *, ties: TiedPairs = "half"
) -> Values:
    """Area under the ROC curve (known is positive) with each unit left out in turn."""
    return roc_auc_without_each_unit(-unknown_score, is_known, unit, ties=ties)


def tnr_at_tpr(unknown_score: Scores, is_known: Mask, *, tpr: float = 0.95, threshold: Threshold = "first") -> float:
    """The share of unknown items that are rejected when (about) the share `tpr` of known items is accepted.

    With s = -unknown_score, known is positive and n the number of known items:

    * "first": the highest threshold t among the scores with at least `tpr` of the known items at or above it; an
      unknown item is rejected when s < t. Items with equal scores stand or fall together (scikit-learn's ROC curve).
    * "nearest": known items are dropped one by one from the lowest score up, d of them so that (n - d) / n comes
      nearest to `tpr` (the smaller d where two are as near); an unknown item is rejected when s lies strictly below
      the last dropped one, so that a tie counts against the run. This is what the organizers' code does.

    NaN without a known or without an unknown item.

    >>> unknown_score, is_known = np.array([0.1, 0.2, 0.8, 0.9]), np.array([True, True, False, False])
    >>> [tnr_at_tpr(unknown_score, is_known, tpr=0.95, threshold=rule) for rule in ("first", "nearest")]
    [1.0, 0.0]
    """
    units = np.arange(len(unknown_score), dtype=np.int32)
    once = np.ones((1, len(units)), dtype=np.int64)
    return float(tnr_at_tpr_resampled(unknown_score, is_known, units, once, tpr=tpr, threshold=threshold)[0])


def tnr_at_tpr_resampled(
    unknown_score: Scores,
    is_known: Mask,
    unit: Codes,
    times: NDArray[np.int64],
    *,
    tpr: float = 0.95,
    threshold: Threshold = "first",
) -> Values:
    """`tnr_at_tpr` of resampled units, as a bootstrap needs it: one sort serves all samples.

    Leaving out single units says little about the error of a quantile, so there is no `..._without_each_unit`.

    Args:
        unknown_score: One score per item, higher for items that look unknown.
        is_known: Which items are known.
        unit: The unit of each item.
        times: How often each unit was drawn, one row per sample and one column per unit.
        tpr: The share of known items that is to be accepted.
        threshold: Which threshold stands for that share, as in `tnr_at_tpr`.

    Returns:
        One value per sample; NaN where a sample has no known or no unknown item.
    """
    refuse_nan(unknown_score)
    if not 0 < tpr <= 1:
        raise ValueError(f"tpr is {tpr}, expected a share above 0 and at most 1")
    score = -unknown_score
    known, unknown = (np.flatnonzero(group)[np.argsort(score[group])] for group in (is_known, ~is_known))
    unknown_below = np.searchsorted(score[unknown], score[known], side="left")
    values = np.full(len(times), np.nan)
    for row, drawn in enumerate(times):
        n_known, n_rejected = np.cumsum(drawn[unit[known]]), np.cumsum(drawn[unit[unknown]])
        if not (len(known) and n_known[-1] and len(unknown) and n_rejected[-1]):
            continue
        place = _threshold_place(n_known, tpr, threshold)
        below = unknown_below[place] if place >= 0 else 0
        accepted = n_rejected[-1] - (n_rejected[below - 1] if below else 0)
        values[row] = 1.0 - accepted / n_rejected[-1]
    return values


def f1_of_class(truth: Codes, predicted: Codes, *, cls: int) -> float:
    """F1 of one class, 2 TP / (2 TP + FP + FN); -1 asks for unknown. 0 where neither truth nor answers name it.

    >>> round(f1_of_class(np.array([-1, -1, 0]), np.array([-1, 0, 0]), cls=-1), 3)
    0.667
    """
    named = int((truth == cls).sum()) + int((predicted == cls).sum())
    return 2.0 * int(((truth == cls) & (predicted == cls)).sum()) / max(named, 1)


def f1_of_class_without_each_unit(truth: Codes, predicted: Codes, unit: Codes, *, cls: int) -> Values:
    """F1 of one class with each unit left out in turn."""
    is_true, answered = truth == cls, predicted == cls
    hits, named = (is_true & answered).astype(np.float64), is_true.astype(np.float64) + answered
    hits_left = hits.sum() - np.bincount(unit, weights=hits)
    named_left = named.sum() - np.bincount(unit, weights=named)
    return np.asarray(2.0 * hits_left / np.maximum(named_left, 1))


def open_macro_f1(truth: Codes, predicted: Codes, *, n_classes: int, over: Over, unknown: UnknownClass) -> float:
    """Macro-averaged F1 in an open set, where unknown (-1) is one more class.

    Args:
        truth: The true class of each item, -1 for unknown.
        predicted: The first answer for each item, -1 for unknown.
        n_classes: The number of known classes.
        over: Which classes are averaged, as in `macro_f1`.
        unknown: Whether the F1 of unknown is "averaged" with the others, or "left out", which gives
            F_K = 1 / |K| sum over known classes: unknown items answered with a known class still count against it.

    >>> truth, predicted = np.array([0, 1, -1]), np.array([0, 1, 1])
    >>> options = {"n_classes": 2, "over": "all"}
    >>> [round(open_macro_f1(truth, predicted, **options, unknown=rule), 3) for rule in ("averaged", "left out")]
    [0.556, 0.833]
    """
    coded, given = (unknown_as_class(labels, n_classes=n_classes) for labels in (truth, predicted))
    among = np.arange(n_classes + 1) < n_classes if unknown == "left out" else None
    return macro_f1(coded, given, n_classes=n_classes + 1, over=over, among=among)


def open_macro_f1_without_each_unit(
    truth: Codes, predicted: Codes, unit: Codes, *, n_classes: int, over: Over, unknown: UnknownClass
) -> Values:
    """Macro-averaged F1 in an open set with each unit left out in turn."""
    coded, given = (unknown_as_class(labels, n_classes=n_classes) for labels in (truth, predicted))
    among = np.arange(n_classes + 1) < n_classes if unknown == "left out" else None
    return macro_f1_without_each_unit(coded, given, unit, n_classes=n_classes + 1, over=over, among=among)


def _beaten(score: Scores, others: Scores, ties: TiedPairs) -> Values:
    """How many of the sorted `others` each score beats, equal ones counting one half or nothing."""
    if ties == "zero":
        return np.searchsorted(others, score, "left").astype(np.float64)
    return np.asarray(0.5 * (np.searchsorted(others, score, "left") + np.searchsorted(others, score, "right")))


def _threshold_place(n_known: NDArray[np.int64], tpr: float, threshold: Threshold) -> int:
    """Below which known item unknown ones are rejected, given the running number of known items from the lowest up.

    -1 stands for a threshold below all of them.
    """
    total = int(n_known[-1])
    # Whole numbers of items around the wanted share; the comparisons are made on the quotients, as others make them.
    around = range(max(int(tpr * total) - 1, 0), min(int(tpr * total) + 2, total) + 1)
    if threshold == "first":
        dropped = total - min(count for count in around if count / total >= tpr)
        return int(np.searchsorted(n_known, dropped, side="right"))
    dropped = total - max(around, key=lambda count: (-abs(count / total - tpr), count))
    return int(np.searchsorted(n_known, dropped, side="left")) if dropped else -1
