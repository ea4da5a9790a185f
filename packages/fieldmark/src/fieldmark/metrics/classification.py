"""Metrics of single-label classification: macro-averaged F1 in its three conventions, and accuracy within the top k.

Labels are int32 codes from 0 to `n_classes` - 1; -1 stands for "no answer" or "unknown" and is never a class here:
where unknown is to count as a class, `unknown_as_class` gives it a code of its own.
`unit` numbers the independent units (0 to U - 1, each at least once), usually observations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.blocks import in_blocks

Codes = NDArray[np.int32]
Values = NDArray[np.float64]
Mask = NDArray[np.bool_]
Packed = NDArray[np.int32] | NDArray[np.int64]
Over = Literal["all", "present", "union"]

ITEMS_AT_ONCE = 1 << 15
# What averages share takes some fifty bytes for each item.
MOST_SHARED_ITEMS = 1 << 20


class Touched(NamedTuple):
    """Classes that the items of some units have or were given.

    Args:
        units: Which units.
        unit: The number of the unit among them that touches a class, one for each such pair.
        cls: The class.
        hits, true, answered: How many of its items are hits, are of the class, and were given it.
    """

    units: slice
    unit: Packed
    cls: Packed
    hits: NDArray[np.int64]
    true: NDArray[np.int64]
    answered: NDArray[np.int64]


@dataclass
class SharedCounts:
    """What averages over several sets of classes have in common for the same answers; made with the first of them."""

    counts: tuple[NDArray[np.int64], ...] = ()
    unit: Codes | None = None
    touched: list[Touched] = field(default_factory=list)


def macro_f1(
    truth: Codes,
    predicted: Codes,
    *,
    n_classes: int,
    over: Over,
    among: Mask | None = None,
    shared: SharedCounts | None = None,
) -> float:
    """Macro-averaged F1: the mean over classes of F_c = 2 TP_c / (2 TP_c + FP_c + FN_c).

    A class without a true positive has F_c = 0. Which classes are averaged is a convention that papers rarely state:

    Args:
        truth: The true class of each item.
        predicted: The first answer for each item.
        n_classes: The number of classes of the benchmark.
        over: "all" classes of the benchmark (those absent from truth and answers count 0), classes "present" in the
            truth, or the "union" of truth and answers (scikit-learn's default).
        among: One flag per class; only flagged classes are averaged (rare ones, known ones). The others still count
            against them where they are mistaken for each other. None stands for every class.
        shared: What other averages of the same answers have counted already, or can take over from this one.

    >>> truth, predicted = np.array([0, 0, 1]), np.array([0, 2, 1])
    >>> [round(macro_f1(truth, predicted, n_classes=4, over=over), 3) for over in ("all", "present", "union")]
    [0.417, 0.833, 0.556]
    """
    hits, true, answered = _shared_counts(truth, predicted, n_classes, shared)
    averaged = _averaged(true, answered, over, among)
    return float(_f1(hits, true, answered)[averaged].sum() / max(averaged.sum(), 1))


def macro_f1_without_each_unit(
    truth: Codes,
    predicted: Codes,
    unit: Codes,
    *,
    n_classes: int,
    over: Over,
    among: Mask | None = None,
    shared: SharedCounts | None = None,
) -> Values:
    """Macro-averaged F1 with each unit left out in turn, in one pass.

    Leaving out a unit changes F only for the classes that its items have or were given, and for "present" and "union"
    it also takes out of the mean the classes that no other unit mentions.
    """
    hits, true, answered = _shared_counts(truth, predicted, n_classes, shared)
    averaged = _averaged(true, answered, over, among)
    f1 = _f1(hits, true, answered)

    result = np.empty(int(unit.max()) + 1)
    for units, touching, cls, own_hits, own_true, own_answered in _touched(truth, predicted, unit, n_classes, shared):
        if among is not None:
            counted = among[cls]
            touching, cls = touching[counted], cls[counted]
            own_hits, own_true, own_answered = own_hits[counted], own_true[counted], own_answered[counted]
        true_left, answered_left = true[cls] - own_true, answered[cls] - own_answered
        change = _f1(hits[cls] - own_hits, true_left, answered_left) - f1[cls]
        n_units = units.stop - units.start
        total = f1[averaged].sum() + np.bincount(touching, weights=change, minlength=n_units)
        classes = averaged.sum()
        if over != "all":  # of which a unit takes none away
            lost = averaged[cls] & ~_averaged(true_left, answered_left, over)
            classes = classes - np.bincount(touching[lost], minlength=n_units)
        result[units] = total / np.maximum(classes, 1)
    return result


def grouped_macro_f1(truth: Codes, predicted: Codes, group: Codes, *, n_classes: int, over: Over) -> float:
    """The mean over groups of items (countries) of the macro-averaged F1 inside each; arguments as in `macro_f1`.

    >>> truth, predicted, group = np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([0, 0, 1])
    >>> round(grouped_macro_f1(truth, predicted, group, n_classes=2, over="union"), 4)
    0.6667
    """
    values = [
        macro_f1(truth[rows], predicted[rows], n_classes=n_classes, over=over)
        for rows in (group == one for one in np.unique(group))
    ]
    return float(np.mean(values))


def grouped_macro_f1_without_each_unit(
    truth: Codes, predicted: Codes, group: Codes, unit: Codes, *, n_classes: int, over: Over
) -> Values:
    """The same with each unit left out in turn: its items, and the groups that only it has; NaN where none is left."""
    n_units = int(unit.max()) + 1
    total, groups = np.zeros(n_units), np.zeros(n_units, dtype=np.int64)
    for one in np.unique(group):
        rows = group == one
        inside = truth[rows], predicted[rows]
        touching, own = np.unique(unit[rows], return_inverse=True)
        values = np.full(n_units, macro_f1(*inside, n_classes=n_classes, over=over))
        values[touching] = macro_f1_without_each_unit(*inside, own.astype(np.int32), n_classes=n_classes, over=over)
        there = np.ones(n_units, dtype=bool)
        there[touching] = np.bincount(own) < rows.sum()
        total[there] += values[there]
        groups += there
    return np.asarray(np.divide(total, groups, out=np.full(n_units, np.nan), where=groups > 0))


def balanced_accuracy(truth: Codes, predicted: Codes, *, n_classes: int) -> float:
    """Balanced accuracy: the mean over the classes present in the truth of TP_c / (TP_c + FN_c).

    Args:
        truth: The true class of each item.
        predicted: The first answer for each item.
        n_classes: The number of classes of the benchmark.

    >>> balanced_accuracy(np.array([0, 0, 0, 0, 1]), np.array([0, 0, 0, 1, 1]), n_classes=3)
    0.875
    """
    hits, true, _ = _counts(truth, predicted, n_classes)
    present = true > 0
    return float((hits[present] / true[present]).mean())


def balanced_accuracy_without_each_unit(truth: Codes, predicted: Codes, unit: Codes, *, n_classes: int) -> Values:
    """Balanced accuracy with each unit left out in turn; NaN where nothing is left."""
    hits, true, _ = _counts(truth, predicted, n_classes)
    recall = hits / np.maximum(true, 1)
    pair, place = np.unique(unit.astype(np.int64) * n_classes + truth, return_inverse=True)
    touching, cls = np.divmod(pair, n_classes)
    true_left = true[cls] - np.bincount(place)
    hits_left = hits[cls] - np.bincount(place, weights=truth == predicted)
    change = hits_left / np.maximum(true_left, 1) - recall[cls]
    n_units = int(unit.max()) + 1
    total = recall.sum() + np.bincount(touching, weights=change, minlength=n_units)
    classes = (true > 0).sum() - np.bincount(touching[true_left == 0], minlength=n_units)
    return np.asarray(np.divide(total, classes, out=np.full(n_units, np.nan), where=classes > 0))


def unknown_as_class(labels: Codes, *, n_classes: int) -> Codes:
    """Gives unknown (-1) the code `n_classes`, so that it counts as one more class after the known ones.

    >>> unknown_as_class(np.array([0, -1, 2]), n_classes=3)
    array([0, 3, 2])
    """
    return np.asarray(np.where(labels < 0, n_classes, labels))


def top_k(truth: Codes, ranked: Codes, *, k: int) -> float:
    """Accuracy within the top k: the share of items whose true class is among their first k answers.

    Args:
        truth: The true class of each item.
        ranked: The answers of each item, best first, one row each; -1 for unknown, -2 fills rows with fewer answers.
        k: How many answers count.

    >>> round(top_k(np.array([0, 1, 2]), np.array([[0, 1], [0, 1], [0, 1]]), k=2), 3)
    0.667
    """
    return float(_hits(truth, ranked, k).mean())


def top_k_without_each_unit(truth: Codes, ranked: Codes, unit: Codes, *, k: int) -> Values:
    """Accuracy within the top k with each unit left out in turn."""
    return mean_without_each_unit(_hits(truth, ranked, k).astype(np.float64), unit)


def mean_without_each_unit(values: Values, unit: Codes, *, n_units: int = 0) -> Values:
    """The mean of `values` with each unit left out in turn; NaN where nothing is left.

    `n_units` is needed only where the last units have no value at all; leaving those out changes nothing.

    >>> mean_without_each_unit(np.array([1.0, 0.0, 0.0]), np.array([0, 1, 1]))
    array([0., 1.])
    """
    left = len(values) - np.bincount(unit, minlength=n_units)
    total = values.sum() - np.bincount(unit, weights=values, minlength=n_units)
    return np.asarray(np.divide(total, left, out=np.full(len(left), np.nan), where=left > 0))


def mean_of_groups_without_each_unit(values: Values, group: Codes, unit: Codes) -> Values:
    """The mean over groups of the mean of `values` inside each, with each unit left out in turn.

    >>> mean_of_groups_without_each_unit(np.array([1.0, 0.0, 0.5]), np.array([0, 0, 1]), np.array([0, 1, 2]))
    array([0.25, 0.75, 0.5 ])
    """
    n_units, n_groups = int(unit.max()) + 1, int(group.max()) + 1
    size, total = np.bincount(group, minlength=n_groups), np.bincount(group, weights=values, minlength=n_groups)
    mean = total / np.maximum(size, 1)
    pair, place = np.unique(unit.astype(np.int64) * n_groups + group, return_inverse=True)
    touching, touched = np.divmod(pair, n_groups)
    size_left = size[touched] - np.bincount(place)
    total_left = total[touched] - np.bincount(place, weights=values)
    change = np.where(size_left > 0, total_left / np.maximum(size_left, 1), 0.0) - mean[touched]
    sums = mean[size > 0].sum() + np.bincount(touching, weights=change, minlength=n_units)
    groups = (size > 0).sum() - np.bincount(touching[size_left == 0], minlength=n_units)
    return np.asarray(np.divide(sums, groups, out=np.full(n_units, np.nan), where=groups > 0))


def _hits(truth: Codes, ranked: Codes, k: int) -> Mask:
    return np.asarray((ranked[:, :k] == truth[:, None]).any(axis=1))


def _counts(truth: Codes, predicted: Codes, n_classes: int) -> tuple[NDArray[np.int64], ...]:
    hits = np.bincount(truth.compress(truth == predicted), minlength=n_classes)
    true = np.bincount(truth, minlength=n_classes)
    answered = np.bincount(predicted[predicted >= 0], minlength=n_classes)
    return hits, true, answered


def _shared_counts(
    truth: Codes, predicted: Codes, n_classes: int, shared: SharedCounts | None
) -> tuple[NDArray[np.int64], ...]:
    if shared is None:
        return _counts(truth, predicted, n_classes)
    shared.counts = shared.counts or _counts(truth, predicted, n_classes)
    return shared.counts


def _touched(
    truth: Codes, predicted: Codes, unit: Codes, n_classes: int, shared: SharedCounts | None
) -> Iterable[Touched]:
    """The classes that units touch, some units at a time; kept to be shared unless there are very many items."""
    touched = _touched_in_turn(truth, predicted, unit, n_classes)
    if shared is None or len(truth) > MOST_SHARED_ITEMS:
        return touched
    if shared.unit is not unit:
        shared.unit, shared.touched = unit, list(touched)
    return shared.touched


def _touched_in_turn(truth: Codes, predicted: Codes, unit: Codes, n_classes: int) -> Iterator[Touched]:
    for units, packed in _packed_pairs(truth, predicted, unit, n_classes):
        pair, kind = packed >> 2, packed & 3
        starts = np.flatnonzero(np.diff(pair, prepend=-1))
        hits = np.add.reduceat(kind == 2, starts, dtype=np.int64)
        answered = np.add.reduceat(kind == 1, starts, dtype=np.int64) + hits
        true = np.diff(starts, append=len(pair)) - answered + hits
        yield Touched(units, *np.divmod(pair[starts], n_classes), hits, true, answered)


def _packed_pairs(truth: Codes, predicted: Codes, unit: Codes, n_classes: int) -> Iterator[tuple[slice, Packed]]:
    """Some units at a time, and what each of their items does to a (unit, class) pair, in order.

    It is packed so that one sort of plain numbers brings the pairs together: four times the pair, in which the first of
    these units has the number 0, plus 2 for a hit, 1 for a wrong answer, 0 for an item that was given another class.
    """
    n_units = int(unit.max()) + 1
    # Whatever is computed of so many items stays in the processor's cache, however many there are.
    shift = max((n_units * ITEMS_AT_ONCE // len(unit)).bit_length() - 1, n_units.bit_length() - 16, 0)
    ends, truth, predicted, unit = in_blocks(unit >> shift, truth, predicted, unit)
    number_type: Any = np.int32 if n_classes << (shift + 2) <= np.iinfo(np.int32).max else np.int64
    for number, end in enumerate(ends):
        first, start = number << shift, ends[number - 1] if number else 0
        true, answer = truth[start:end], predicted[start:end]
        base = (unit[start:end] - first).astype(number_type) * n_classes
        hit, wrong = true == answer, (true != answer) & (answer >= 0)
        packed: Packed = np.concatenate(
            [(base + true) * 4 + hit.astype(np.int8) * 2, (base[wrong] + answer[wrong]) * 4 + 1], dtype=base.dtype
        )
        packed.sort()
        yield slice(first, min(first + (1 << shift), n_units)), packed


def _f1(hits: NDArray[np.int64], true: NDArray[np.int64], answered: NDArray[np.int64]) -> Values:
    # 2 TP + FP + FN is the number of items of the class plus the number of answers naming it.
    return np.asarray(2.0 * hits / np.maximum(true + answered, 1))


def _averaged(true: NDArray[np.int64], answered: NDArray[np.int64], over: Over, among: Mask | None = None) -> Mask:
    if over == "all":
        averaged = np.ones(len(true), dtype=bool)
    else:
        averaged = np.asarray(true > 0 if over == "present" else (true > 0) | (answered > 0))
    return averaged if among is None else averaged & among
