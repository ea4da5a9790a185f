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
    """The area from the steps of a curve: between two positives recall stands still, so that only steps count."""
    if not positives or not negatives:
        return float("nan")
    return float(_slices(above, reached, false_above, false_reached, positives, negatives).sum())


def _slices(
    first: Values, last: Values, false_first: Values, false_last: Values, positives: int, negatives: int
) -> Values:
    """What each step adds to the area.

    Along a step both gains are linear in 1 / (true positives). The curve begins where the recall gain is 0, at
    p x positives true positives.
    """
    odds = positives / negatives  # p / (1 - p)
    start = positives * positives / (positives + negatives)
    kept = (last > start) & (last > first)
    begin = np.where(kept, np.maximum(first, start), 1.0)
    end = np.where(kept, last, 1.0)
    false_begin = false_first + (begin - first) / np.where(kept, last - first, 1.0) * (false_last - false_first)
    width = odds * positives * (1 / begin - 1 / end)
    height = 1 - odds * (false_begin / begin + false_last / end) / 2
    return np.where(kept, width * height, 0.0)


def _prg_aucs_without(score: Scores, present: Mask, unit: Codes) -> Values:
    """Areas without each unit; those of single pairs all at once, from sums over steps."""
    n_units = int(unit.max()) + 1
    counts = np.bincount(unit, minlength=n_units)
    values = np.full(n_units, np.nan)
    for number in np.flatnonzero(counts > 1):
        kept = unit != number
        values[number] = _prg_auc(score[kept], present[kept])
    single = counts[unit] == 1
    if present.any() and not present.all():
        steps, positives, negatives = _steps(score, present), int(present.sum()), int((~present).sum())
        levels = np.unique(-score[present])
        # 2 k + 1 is at step k, 2 k is above it and below step k - 1.
        place = np.searchsorted(levels, -score, "left") + np.searchsorted(levels, -score, "right")
        for true, areas in (
            (True, _without_a_positive(steps, positives, negatives)),
            (False, _without_a_negative(steps, positives, negatives)),
        ):
            own = single & (present == true)
            values[unit[own]] = areas[place[own] // 2 if true else place[own]]
    return values


def _without_a_positive(steps: tuple[Values, Values, Values, Values], positives: int, negatives: int) -> Values:
    """The area without one positive of each step: its own step loses one, and later ones begin one earlier."""
    above, reached, false_above, false_reached = steps
    left = positives - 1
    if not left:
        return np.full(len(above), np.nan)
    before = _slices(above, reached, false_above, false_reached, left, negatives)
    own = _slices(above, reached - 1, false_above, false_reached, left, negatives)
    after = _slices(above - 1, reached - 1, false_above, false_reached, left, negatives)
    return np.asarray(_up_to(before) + own + after.sum() - _up_to(after) - after)


def _without_a_negative(steps: tuple[Values, Values, Values, Values], positives: int, negatives: int) -> Values:
    """The area without one negative at each place: it goes from the steps below it, and from the end of its own."""
    above, reached, false_above, false_reached = steps
    left = negatives - 1
    if not left:
        return np.full(2 * len(above) + 1, np.nan)
    before = _slices(above, reached, false_above, false_reached, positives, left)
    own = _slices(above, reached, false_above, false_reached - 1, positives, left)
    after = _slices(above, reached, false_above - 1, false_reached - 1, positives, left)
    areas = np.empty(2 * len(above) + 1)
    areas[0::2] = np.append(_up_to(before), before.sum()) + np.append(after.sum() - _up_to(after), 0.0)
    areas[1::2] = _up_to(before) + own + after.sum() - _up_to(after) - after
    return areas


def _up_to(values: Values) -> Values:
    """The sum of all values before each."""
    return np.asarray(np.cumsum(values) - values)
