"""Metrics of where the true label stands in a list of answers.

A rank is 1 for the first answer, 2 for the second and so on; 0 says that the true label is not listed at all. Every
item of the truth counts, listed or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.checks import refuse_nan, refuse_negative
from fieldmark.metrics.classification import (
    Codes,
    Mask,
    Values,
    mean_of_groups_without_each_unit,
    mean_without_each_unit,
    top_k,
    top_k_without_each_unit,
)

Ranks = NDArray[np.int64]


def rank_of_truth(
    item: Codes, label: Codes, score: NDArray[Any], truth: Codes, *, tie_break: NDArray[Any] | None = None
) -> Ranks:
    """The rank of the true label of each item in a long table of answers, sorted by falling score.

    Args:
        item: The item that each row is about, numbered as in `truth`.
        label: The label that the row names; each label once per item.
        score: Its score, higher is better.
        truth: The true label of each item.
        tie_break: Orders rows with equal scores, lowest first (the rank that a run states itself). Answers that are
            equal in both are counted before the true label, so that the order of rows never matters.

    Returns:
        One rank per item, 0 where the true label is not listed.

    >>> item, label = np.array([0, 0, 0, 1]), np.array([5, 6, 7, 5])
    >>> rank_of_truth(item, label, np.array([0.2, 0.2, 0.6, 1.0]), np.array([6, 6]), tie_break=np.array([2, 3, 1, 1]))
    array([3, 0])
    """
    refuse_nan(score)
    is_true = label == truth[item]
    n_items = len(truth)
    listed = np.bincount(item[is_true], minlength=n_items)
    if (listed > 1).any():
        raise ValueError(f"item {int((listed > 1).argmax())} lists its true label more than once")
    true_score = np.zeros(n_items, dtype=np.asarray(score).dtype)
    true_score[item[is_true]] = score[is_true]
    before = score == true_score[item]
    if tie_break is not None:
        refuse_nan(tie_break, "the tie breaks")
        true_break = np.zeros(n_items, dtype=np.asarray(tie_break).dtype)
        true_break[item[is_true]] = tie_break[is_true]
        before &= tie_break <= true_break[item]
    before |= score > true_score[item]
    # The true label itself is among those "before" it, which makes the count its rank.
    return np.asarray(np.where(listed > 0, np.bincount(item[before], minlength=n_items), 0), dtype=np.int64)


def rank_of_truth_in_blocks(blocks: Iterable[NDArray[Any]], truth: Codes) -> Ranks:
    """The rank of the true label of each item among dense scores, given a few rows at a time.

    Args:
        blocks: Matrices with one row per item, in the order of `truth`, and one column per label.
        truth: The true label of each item.

    Returns:
        One rank per item. Among equal scores the lower label code comes first.

    >>> rank_of_truth_in_blocks([np.array([[0.1, 0.7, 0.2], [0.4, 0.2, 0.4]])], np.array([2, 2]))
    array([2, 2])
    """
    refuse_negative(truth)
    ranks, first = np.zeros(len(truth), dtype=np.int64), 0
    for block in blocks:
        refuse_nan(block)
        true = truth[first : first + len(block), None]
        true_score = np.take_along_axis(block, true, axis=1)
        before = (block > true_score) | ((block == true_score) & (np.arange(block.shape[1]) < true))
        ranks[first : first + len(block)] = 1 + before.sum(axis=1)
        first += len(block)
    if first != len(truth):
        raise ValueError(f"the blocks have {first} rows, expected {len(truth)}, one per item")
    return ranks


def mean_reciprocal_rank(rank_of_truth: Ranks, *, among: Mask | None = None) -> float:
    """The mean over items of 1 / rank, 0 where the true label is not listed.

    Args:
        rank_of_truth: The rank of each item's true label, 0 where it is not listed.
        among: One flag per item; only flagged items are averaged (those of rare species). None stands for all. NaN
            where no item is flagged.

    >>> mean_reciprocal_rank(np.array([1, 4, 0]))
    0.4166666666666667
    >>> mean_reciprocal_rank(np.array([1, 4, 0]), among=np.array([False, True, True]))
    0.125
    """
    reciprocal = _reciprocal(rank_of_truth)
    kept = reciprocal if among is None else reciprocal[among]
    return float(kept.mean()) if len(kept) else float("nan")


def mean_reciprocal_rank_without_each_unit(rank_of_truth: Ranks, unit: Codes, *, among: Mask | None = None) -> Values:
    """The mean reciprocal rank with each unit left out in turn; a unit without flagged items changes nothing."""
    reciprocal, n_units = _reciprocal(rank_of_truth), int(unit.max()) + 1
    kept = np.ones(len(reciprocal), dtype=bool) if among is None else among
    return mean_without_each_unit(reciprocal[kept], unit[kept], n_units=n_units)


def species_mean_reciprocal_rank(rank_of_truth: Ranks, truth: Codes) -> float:
    """The mean over the labels of the truth of the mean reciprocal rank of their items (MA-MRR of PlantCLEF 2022).

    >>> species_mean_reciprocal_rank(np.array([1, 1, 2]), np.array([7, 7, 3]))
    0.75
    """
    _, label = np.unique(truth, return_inverse=True)
    return float((np.bincount(label, weights=_reciprocal(rank_of_truth)) / np.bincount(label)).mean())


def species_mean_reciprocal_rank_without_each_unit(rank_of_truth: Ranks, truth: Codes, unit: Codes) -> Values:
    """The same with each unit left out in turn; a label that only one unit has goes with it."""
    _, label = np.unique(truth, return_inverse=True)
    return mean_of_groups_without_each_unit(_reciprocal(rank_of_truth), label.astype(np.int32), unit)


def recall_at_k(rank_of_truth: Ranks, *, k: int) -> float:
    """The share of items whose true label is among the first k answers.

    >>> recall_at_k(np.array([1, 6, 0, 5]), k=5)
    0.5
    """
    return float(_within(rank_of_truth, k).mean())


def recall_at_k_without_each_unit(rank_of_truth: Ranks, unit: Codes, *, k: int) -> Values:
    """Recall at k with each unit left out in turn."""
    return mean_without_each_unit(_within(rank_of_truth, k), unit)


def top_k_error(truth: Codes, ranked: Codes, *, k: int) -> float:
    """The share of items whose true label is *not* among their first k answers: 1 - `top_k`; lower is better.

    >>> round(top_k_error(np.array([0, 1, 2]), np.array([[0, 1], [0, 1], [0, 1]]), k=2), 3)
    0.333
    """
    return 1.0 - top_k(truth, ranked, k=k)


def top_k_error_without_each_unit(truth: Codes, ranked: Codes, unit: Codes, *, k: int) -> Values:
    """Top-k error with each unit left out in turn."""
    return np.asarray(1.0 - top_k_without_each_unit(truth, ranked, unit, k=k))


def _reciprocal(ranks: Ranks) -> Values:
    return np.divide(1.0, ranks, out=np.zeros(len(ranks)), where=ranks > 0)


def _within(ranks: Ranks, k: int) -> Values:
    return np.asarray((ranks >= 1) & (ranks <= k), dtype=np.float64)
