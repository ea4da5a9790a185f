"""Metrics of lists of labels without an order: which species grow in a quadrat, sing in five seconds, live at a place.

Truth and answers are pairs of item and label, each pair once. For one item with TP labels in both lists, FP in the
answer alone and FN in the truth alone, F1 = 2 TP / (2 TP + FP + FN). What challenges call "micro F1" is often the mean
of that over items; here `mean_f1_of_items` is that mean and `pooled_f1` the F1 of all pairs together.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.classification import Codes, Mask, Over, Values, mean_of_groups_without_each_unit

Counts = NDArray[np.int64]
BothEmpty = Literal["one", "zero"]


def f1_of_items(
    item: Codes, label: Codes, true_item: Codes, true_label: Codes, *, n_items: int, both_empty: BothEmpty = "zero"
) -> Values:
    """The F1 of each item.

    Args:
        item: The item that each answer is about.
        label: The label that it names; each pair once.
        true_item: The item of each true pair, each pair once.
        true_label: Its label.
        n_items: How many items there are, those without any pair included.
        both_empty: What an item without a true and without an answered label counts: "one" or "zero".

    >>> f1_of_items(np.array([0, 0, 1]), np.array([5, 6, 5]), np.array([0]), np.array([5]), n_items=3)
    array([0.66666667, 0.        , 0.        ])
    """
    hit = _hits(item, label, true_item, true_label)
    hits = np.bincount(item[hit], minlength=n_items)
    named = np.bincount(item, minlength=n_items) + np.bincount(true_item, minlength=n_items)
    empty = 1.0 if both_empty == "one" else 0.0
    return np.asarray(np.where(named > 0, 2.0 * hits / np.maximum(named, 1), empty))


def mean_f1_of_items(
    item: Codes,
    label: Codes,
    true_item: Codes,
    true_label: Codes,
    *,
    n_items: int,
    group: Codes | None = None,
    both_empty: BothEmpty = "zero",
) -> float:
    """The mean over items of their F1, or the mean over groups of items (transects) of the mean inside each.

    `group` holds the group of each item, numbered from 0, None where every item has the same weight; the other
    arguments are those of `f1_of_items`.

    >>> pairs = np.array([0, 1]), np.array([5, 5]), np.array([0, 1, 2]), np.array([5, 5, 5])
    >>> mean_f1_of_items(*pairs, n_items=3, group=np.array([0, 0, 1]))
    0.5
    """
    f1 = f1_of_items(item, label, true_item, true_label, n_items=n_items, both_empty=both_empty)
    if group is None:
        return float(f1.mean())
    size = np.bincount(group)
    inside = np.bincount(group, weights=f1)[size > 0] / size[size > 0]
    return float(inside.mean())


def mean_f1_of_items_without_each_unit(
    item: Codes,
    label: Codes,
    true_item: Codes,
    true_label: Codes,
    unit: Codes,
    *,
    n_items: int,
    group: Codes | None = None,
    both_empty: BothEmpty = "zero",
) -> Values:
    """The same with each unit left out in turn: its items, and the groups that only it has. NaN where none is left."""
    f1 = f1_of_items(item, label, true_item, true_label, n_items=n_items, both_empty=both_empty)
    everything = np.zeros(n_items, dtype=np.int32)
    return mean_of_groups_without_each_unit(f1, everything if group is None else group, unit)


def macro_f1_of_lists(
    item: Codes, label: Codes, true_item: Codes, true_label: Codes, *, n_classes: int, over: Over
) -> float:
    """The mean over labels of F1 = 2 TP / (2 TP + FP + FN), counted over items.

    `over` says which labels are averaged: "all" `n_classes` of the benchmark, those "present" in the truth, or the
    "union" of truth and answers. F1 without a true positive is 0. NaN where there is no label.

    >>> pairs = np.array([0, 1]), np.array([0, 2]), np.array([0, 1]), np.array([0, 1])
    >>> [round(macro_f1_of_lists(*pairs, n_classes=4, over=over), 3) for over in ("all", "present", "union")]
    [0.25, 0.5, 0.333]
    """
    counts = _by_label(item, label, true_item, true_label, n_classes)
    averaged = _averaged(*counts, over)
    return float(_f1(*counts)[averaged].mean()) if averaged.any() else float("nan")


def macro_f1_of_lists_without_each_unit(
    item: Codes, label: Codes, true_item: Codes, true_label: Codes, unit: Codes, *, n_classes: int, over: Over
) -> Values:
    """The same with each unit left out in turn; `unit` holds the unit of each *item*."""
    hits, answered, true = _by_label(item, label, true_item, true_label, n_classes)
    f1, averaged = _f1(hits, answered, true), _averaged(hits, answered, true, over)
    hit = _hits(item, label, true_item, true_label)
    n_units = int(unit.max()) + 1
    ours = unit[item].astype(np.int64) * n_classes + label
    theirs = unit[true_item].astype(np.int64) * n_classes + true_label
    pair = np.unique(np.concatenate([ours, theirs]))
    touching, cls = np.divmod(pair, n_classes)
    own_answered = np.bincount(np.searchsorted(pair, ours), minlength=len(pair))
    own_hits = np.bincount(np.searchsorted(pair, ours[hit]), minlength=len(pair))
    own_true = np.bincount(np.searchsorted(pair, theirs), minlength=len(pair))
    left = hits[cls] - own_hits, answered[cls] - own_answered, true[cls] - own_true
    still = _averaged(*left, over)
    change = np.where(still, _f1(*left), 0.0) - np.where(averaged[cls], f1[cls], 0.0)
    sums = f1[averaged].sum() + np.bincount(touching, weights=change, minlength=n_units)
    classes = averaged.sum() - np.bincount(touching[averaged[cls] & ~still], minlength=n_units)
    return np.asarray(np.divide(sums, classes, out=np.full(n_units, np.nan), where=classes > 0))


def pooled_f1(item: Codes, label: Codes, true_item: Codes, true_label: Codes) -> float:
    """The F1 of all pairs together: 2 TP / (2 TP + FP + FN); NaN where there is no pair at all.

    >>> pooled_f1(np.array([0, 1]), np.array([0, 2]), np.array([0, 1]), np.array([0, 1]))
    0.5
    """
    named = len(item) + len(true_item)
    hits = int(_hits(item, label, true_item, true_label).sum())
    return 2.0 * hits / named if named else float("nan")


def pooled_f1_without_each_unit(item: Codes, label: Codes, true_item: Codes, true_label: Codes, unit: Codes) -> Values:
    """The same with each unit left out in turn; `unit` holds the unit of each *item*."""
    n_units = int(unit.max()) + 1
    hit = _hits(item, label, true_item, true_label)
    hits = hit.sum() - np.bincount(unit[item[hit]], minlength=n_units)
    named = len(item) + len(true_item) - np.bincount(unit[item], minlength=n_units)
    named = named - np.bincount(unit[true_item], minlength=n_units)
    return np.asarray(np.divide(2.0 * hits, named, out=np.full(n_units, np.nan), where=named > 0))


def balanced_decisions(item: Codes, cls: Codes, said: Mask, holds: Mask, *, n_classes: int) -> float:
    """The mean over labels of (sensitivity + specificity) / 2 over the pairs that were asked about.

    Every label has the same weight, and within it its present and its absent pairs have half each. A label of which
    only one kind was asked about counts that kind alone; one that nobody asked about is left out. NaN without any.

    Args:
        item: The item of each pair that was asked about.
        cls: Its label.
        said: Whether the run says that it is present.
        holds: Whether it is.
        n_classes: How many labels the benchmark has.

    >>> item, cls, said = np.array([0, 1, 2, 0]), np.array([0, 0, 0, 1]), np.array([True, True, False, True])
    >>> balanced_decisions(item, cls, said, np.array([True, False, False, True]), n_classes=3)
    0.875
    """
    right, asked = _decided(cls, said, holds, n_classes)
    values, there = _balanced(right, asked)
    return float(values[there].mean()) if there.any() else float("nan")


def balanced_decisions_without_each_unit(
    item: Codes, cls: Codes, said: Mask, holds: Mask, unit: Codes, *, n_classes: int
) -> Values:
    """The same with each unit left out in turn; `unit` holds the unit of each *item*."""
    n_units = int(unit.max()) + 1
    right, asked = _decided(cls, said, holds, n_classes)
    values, there = _balanced(right, asked)
    pair, place = np.unique(unit[item].astype(np.int64) * n_classes + cls, return_inverse=True)
    touching, touched = np.divmod(pair, n_classes)
    own_right, own_asked = _decided(place, said, holds, len(pair))
    left, still = _balanced(right[:, touched] - own_right, asked[:, touched] - own_asked)
    change = np.where(still, left, 0.0) - values[touched]
    sums = values[there].sum() + np.bincount(touching, weights=change, minlength=n_units)
    classes = there.sum() - np.bincount(touching[~still], minlength=n_units)
    return np.asarray(np.divide(sums, classes, out=np.full(n_units, np.nan), where=classes > 0))


def _decided(cls: NDArray[np.integer], said: Mask, holds: Mask, n_classes: int) -> tuple[Counts, Counts]:
    """How many pairs of each label are right, and how many were asked about: present ones in the first row."""
    rows = [holds, ~holds]
    asked = np.stack([np.bincount(cls[row], minlength=n_classes) for row in rows])
    right = np.stack([np.bincount(cls[row & (said == holds)], minlength=n_classes) for row in rows])
    return right, asked


def _balanced(right: Counts, asked: Counts) -> tuple[Values, Mask]:
    """The mean of the two shares of each label (of the one that there is), and which labels have any."""
    kinds = (asked > 0).sum(axis=0)
    shares = (right / np.maximum(asked, 1)).sum(axis=0)
    return np.asarray(shares / np.maximum(kinds, 1)), np.asarray(kinds > 0)


def _hits(item: Codes, label: Codes, true_item: Codes, true_label: Codes) -> Mask:
    """For each answered pair whether it is true.

    Raises:
        ValueError: When a pair occurs twice.
    """
    width = int(max(label.max(initial=-1), true_label.max(initial=-1))) + 1
    ours = item.astype(np.int64) * width + label
    theirs = true_item.astype(np.int64) * width + true_label
    for pairs, where in ((ours, "answers"), (theirs, "truth")):
        if len(np.unique(pairs)) < len(pairs):
            raise ValueError(f"a pair of item and label occurs twice in the {where}")
    return np.asarray(np.isin(ours, theirs))


def _by_label(
    item: Codes, label: Codes, true_item: Codes, true_label: Codes, n_classes: int
) -> tuple[Counts, Counts, Counts]:
    hit = _hits(item, label, true_item, true_label)
    counted = (label[hit], label, true_label)
    hits, answered, true = (np.bincount(one, minlength=n_classes) for one in counted)
    return hits, answered, true


def _averaged(hits: Counts, answered: Counts, true: Counts, over: Over) -> Mask:
    if over == "all":
        return np.ones(len(true), dtype=bool)
    return np.asarray(true > 0) if over == "present" else np.asarray((true > 0) | (answered > 0))


def _f1(hits: Counts, answered: Counts, true: Counts) -> Values:
    return np.asarray(2.0 * hits / np.maximum(answered + true, 1))
