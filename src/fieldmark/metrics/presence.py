"""How well scores tell the places where a species lives from those where somebody looked and did not find it.

All three metrics take the pairs of item and class that somebody asked about, are computed for each class by itself, and
are averaged over the classes that have both a presence and an absence; with none of those they are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.checks import refuse_nan
from fieldmark.metrics.classification import Codes, Mask, Values
from fieldmark.metrics.openset import roc_auc, roc_auc_without_each_unit

Scores = NDArray[Any]
_OfClass = Callable[[Scores, Mask], float]
_WithoutEachUnit = Callable[[Scores, Mask, Codes], Values]


def mean_roc_auc(item: Codes, cls: Codes, score: Scores, present: Mask) -> float:
    """The mean over classes of the area under the ROC curve; a pair of equal scores counts one half.

    Args:
        item: The item of each pair that was asked about, each pair once.
        cls: Its class.
        score: One score per pair, higher where the class is more likely.
        present: Whether the class was found there.

    >>> item, cls = np.array([0, 1, 2, 0, 1]), np.array([0, 0, 0, 1, 1])
    >>> mean_roc_auc(item, cls, np.array([3.0, 1.0, 2.0, 5.0, 4.0]), np.array([1, 0, 1, 0, 1], dtype=bool))
    0.5
    """
    return _mean(roc_auc, cls, score, present)


def mean_roc_auc_without_each_unit(item: Codes, cls: Codes, score: Scores, present: Mask, unit: Codes) -> Values:
    """The same with each unit left out in turn; `unit` is that of each item."""
    return _mean_without_each_unit(roc_auc, roc_auc_without_each_unit, item, cls, score, present, unit)


def mean_correlation(item: Codes, cls: Codes, score: Scores, present: Mask) -> float:
    """COR: the mean over classes of the Pearson correlation of scores with presence (1) and absence (0).

    Elith et al., "Novel methods improve prediction of species' distributions" (2006). A class whose scores are all the
    same has a correlation of 0. Arguments as those of `mean_roc_auc`.

    >>> mean_correlation(np.arange(4), np.zeros(4, int), np.array([0.0, 0, 1, 1]), np.array([0, 1, 0, 1], dtype=bool))
    0.0
    """
    return _mean(_correlation, cls, score, present)


def mean_correlation_without_each_unit(item: Codes, cls: Codes, score: Scores, present: Mask, unit: Codes) -> Values:
    """The same with each unit left out in turn; `unit` is that of each item."""
    return _mean_without_each_unit(_correlation, _correlations_without, item, cls, score, present, unit)


def mean_prg_auc(item: Codes, cls: Codes, score: Scores, present: Mask) -> float:
    """The mean over classes of the area under the precision-recall-gain curve.

    Flach and Kull, "Precision-Recall-Gain Curves: PR Analysis Done Right" (2015). With the share of presences p,

        precision gain = (precision - p) / ((1 - p) precision),    recall gain = (recall - p) / ((1 - p) recall)

    and the area is that over recall gains from 0 to 1. It is 1 for a perfect order, 0 for one that is no better than
    calling everything present, and may be negative. Equal scores stand or fall together. Arguments as those of
    `mean_roc_auc`.

    >>> round(mean_prg_auc(np.arange(3), np.zeros(3, int), np.array([3.0, 2, 1]), np.array([True, True, False])), 6)
    1.0
    """
    return _mean(_prg_auc, cls, score, present)


def mean_prg_auc_without_each_unit(item: Codes, cls: Codes, score: Scores, present: Mask, unit: Codes) -> Values:
    """The same with each unit left out in turn; `unit` is that of each item."""
    return _mean_without_each_unit(_prg_auc, _prg_aucs_without, item, cls, score, present, unit)


def by_class(of_class: _OfClass, cls: Codes, score: Scores, present: Mask, *, n_classes: int) -> Values:
    """The value of each class by itself, NaN for a class without a presence or without an absence."""
    values = np.full(n_classes, np.nan)
    for number, rows in _classes(cls):
        values[number] = of_class(score[rows], present[rows])
    return values


def _mean(of_class: _OfClass, cls: Codes, score: Scores, present: Mask) -> float:
    refuse_nan(score)
    values = by_class(of_class, cls, score, present, n_classes=int(cls.max(initial=-1)) + 1)
    there = ~np.isnan(values)
    return float(values[there].mean()) if there.any() else float("nan")


def _mean_without_each_unit(
    of_class: _OfClass,
    without: _WithoutEachUnit,
    item: Codes,
    cls: Codes,
    score: Scores,
    present: Mask,
    unit: Codes,
) -> Values:
    refuse_nan(score)
    n_units = int(unit.max()) + 1
    total, classes = np.zeros(n_units), np.zeros(n_units)
    for _, rows in _classes(cls):
        # A unit that has nothing of a class leaves its value as it is.
        values = np.full(n_units, of_class(score[rows], present[rows]))
        own, place = np.unique(unit[item[rows]], return_inverse=True)
        values[own] = without(score[rows], present[rows], place.astype(np.int32))
        there = ~np.isnan(values)
        total[there] += values[there]
        classes += there
    return np.asarray(np.divide(total, classes, out=np.full(n_units, np.nan), where=classes > 0))


def _classes(cls: Codes) -> Iterator[tuple[int, NDArray[np.int64]]]:
    order = np.argsort(cls, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(cls[order])) + 1):
        if len(rows):
            yield int(cls[rows[0]]), rows


def _correlation(score: Scores, present: Mask) -> float:
    return float(_correlations(*(np.atleast_1d(one) for one in _moments(score, present)))[0])


def _correlations_without(score: Scores, present: Mask, unit: Codes) -> Values:
    centered = score.astype(np.float64) - score.mean()  # a common shift changes nothing, and small numbers lose less
    n_units = int(unit.max()) + 1
    columns = (np.ones(len(score)), centered, centered**2, present.astype(np.float64), centered * present)
    left = [column.sum() - np.bincount(unit, weights=column, minlength=n_units) for column in columns]
    return _correlations(*left)


def _moments(score: Scores, present: Mask) -> tuple[Any, ...]:
    centered = score.astype(np.float64) - score.mean()
    return (
        len(score),
        centered.sum(),
        (centered**2).sum(),
        present.sum().astype(np.float64),
        (centered * present).sum(),
    )


def _correlations(n: Values, score: Values, squared: Values, present: Values, both: Values) -> Values:
    """Correlations from sums; NaN without a presence or an absence, 0 where scores do not differ."""
    safe = np.maximum(n, 1)
    spread = np.maximum(squared / safe - (score / safe) ** 2, 0)
    share = present / safe
    product = np.sqrt(spread * share * (1 - share))
    covariance = both / safe - score / safe * share
    flat = spread <= 1e-12 * np.maximum(squared / safe, 1e-300)
    values = np.divide(covariance, product, out=np.zeros_like(covariance), where=(product > 0) & ~flat)
    return np.where((present > 0) & (present < n), values, np.nan)


def _prg_auc(score: Scores, present: Mask) -> float:
    return _area(*_steps(score, present), positives=int(present.sum()), negatives=int((~present).sum()))


def _steps(score: Scores, present: Mask) -> tuple[Values, Values, Values, Values]:
    """Positives and negatives above, and at or above, each score that a positive has, from the highest down."""
    negatives, positives = np.sort(-score[~present]), np.sort(-score[present])
    levels = np.unique(positives)
    above, reached = (np.searchsorted(positives, levels, side) for side in ("left", "right"))
    false_above, false_reached = (np.searchsorted(negatives, levels, side) for side in ("left", "right"))
    return tuple(one.astype(np.float64) for one in (above, reached, false_above, false_reached))  # type: ignore[return-value]


def _area(
    above: Values, reached: Values, false_above: Values, false_reached: Values, *, positives: int, negatives: int
) -> float:
    """The area from the steps of a curve: between two positives recall stands still, so that only steps count.

    Along a step both gains are linear in 1 / (true positives). The curve begins where the recall gain is 0, at
    p x positives true positives.
    """
    if not positives or not negatives:
        return float("nan")
    odds = positives / negatives  # p / (1 - p)
    start = positives * positives / (positives + negatives)
    kept = reached > start
    first, last = above[kept], reached[kept]
    false_first, false_last = false_above[kept], false_reached[kept]
    begin = np.maximum(first, start)
    false_begin = false_first + (begin - first) / (last - first) * (false_last - false_first)
    width = odds * (positives - begin) / begin - odds * (positives - last) / last
    height = 1 - odds * (false_begin / begin + false_last / last) / 2
    return float((width * height).sum())


def _prg_aucs_without(score: Scores, present: Mask, unit: Codes) -> Values:
    """Areas without each unit. Units of one pair that lie between the same steps leave the same area behind."""
    n_units = int(unit.max()) + 1
    counts = np.bincount(unit, minlength=n_units)
    values = np.full(n_units, np.nan)
    for number in np.flatnonzero(counts > 1):
        kept = unit != number
        values[number] = _prg_auc(score[kept], present[kept])
    single = np.flatnonzero(counts[unit] == 1)
    levels = np.unique(-score[present])
    # Where a negative lies: at a step, or between two of them.
    place = np.searchsorted(levels, -score, "left") + np.searchsorted(levels, -score, "right")
    kinds, inverse = np.unique(np.column_stack([place[single], present[single]]), axis=0, return_inverse=True)
    steps = _steps(score, present)
    positives, negatives = int(present.sum()), int((~present).sum())
    areas = np.array([_area_without(steps, positives, negatives, int(at), bool(true)) for at, true in kinds])
    if len(single):
        values[unit[single]] = areas[inverse]
    return values


def _area_without(
    steps: tuple[Values, Values, Values, Values], positives: int, negatives: int, place: int, true: bool
) -> float:
    """The area without one pair at a place: 2 k + 1 is at step k, 2 k is above it and below step k - 1."""
    above, reached, false_above, false_reached = (one.copy() for one in steps)
    step, at = divmod(place, 2)
    if true:
        above[step + 1 :] -= 1
        reached[step:] -= 1
        kept = reached > above
        changed = [one[kept] for one in (above, reached, false_above, false_reached)]
        return _area(*changed, positives=positives - 1, negatives=negatives)
    false_above[step + at :] -= 1
    false_reached[step:] -= 1
    return _area(above, reached, false_above, false_reached, positives=positives, negatives=negatives - 1)
