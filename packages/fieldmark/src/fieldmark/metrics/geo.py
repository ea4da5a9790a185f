"""Adaptive top-K accuracy: label sets of varying size, K on average, cut from the scores by one threshold.

With the scores s of all n items and all labels sorted down, the threshold is lambda = (s[nK - 1] + s[nK]) / 2 (counting
from 0), an item's set holds the labels with a score of at least lambda, and the score is the share of items whose set
holds the true label. Items and labels that a run does not list are in no set; where it lists nK pairs or fewer, all are
kept. The threshold belongs to the items that are scored together, so public and private parts each have their own.

Equal scores at the threshold make the sets larger than K on average, or with `strict` (above lambda, not at it)
smaller; the realized mean size is part of the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.checks import refuse_nan, refuse_negative
from fieldmark.metrics.classification import Codes, Mask, Values, mean_without_each_unit

Scores = NDArray[Any]
Counts = NDArray[np.int64]

# Scores that are looked at in one go.
CHUNK_CELLS = 4_000_000
# The gain of accuracy with the size of the sets is measured between (1 - this) K and (1 + this) K.
_WINDOW = 0.25


@dataclass(frozen=True)
class AdaptiveSets:
    """The sets that one threshold cuts.

    Args:
        threshold: Lambda; minus infinity where everything listed is kept.
        hit: Whether the set of each item holds its true label.
        size: How many labels the set of each item holds.
        gain: By how much accuracy rises per label that the sets are larger on average, around K; 0 where everything
            listed is kept, because then nothing moves the threshold.
    """

    threshold: float
    hit: Mask
    size: Counts
    gain: float

    @property
    def mean_size(self) -> float:
        """The realized mean size of the sets."""
        return float(self.size.mean())


def adaptive_sets(blocks: Iterable[Scores], truth: Codes, *, k: int, strict: bool = False) -> AdaptiveSets:
    """Cuts sets of `k` labels on average from dense scores, given a few rows at a time and looked at once.

    Only about 1.25 n K scores are kept at any time: the largest so far, exactly.

    Args:
        blocks: Matrices with one row per item, in the order of `truth`, and one column per label; minus infinity says
            that a label is not listed.
        truth: The true label of each item.
        k: The mean size of the sets.
        strict: Whether a label must score above the threshold, not at it.

    >>> score = np.array([[0.9, 0.8, 0.1], [0.5, 0.3, 0.2]])
    >>> sets = adaptive_sets([score], np.array([1, 2]), k=1)
    >>> round(sets.threshold, 3), sets.hit.tolist(), sets.size.tolist()
    (0.65, [True, False], [2, 0])
    """
    refuse_negative(truth)
    largest, true_score, first = _Largest(len(truth), k), np.full(len(truth), -np.inf), 0
    for block in blocks:
        last = first + len(block)
        if last > len(truth):
            break
        true_score[first:last] = block[np.arange(len(block)), truth[first:last]]
        rows = max(CHUNK_CELLS // max(block.shape[1], 1), 1)
        for start in range(0, len(block), rows):
            chunk = np.ascontiguousarray(block[start : start + rows])
            listed = np.flatnonzero(largest.may_matter(chunk.ravel()))
            largest.add(chunk.ravel()[listed], first + start + listed // block.shape[1])
        first = last
    if first != len(truth):
        raise ValueError(f"the blocks have {first} rows or more, expected {len(truth)}, one per item")
    return _cut(largest, true_score, k, strict)


def adaptive_sets_of_lists(
    item: Codes, label: Codes, score: Scores, truth: Codes, *, k: int, strict: bool = False
) -> AdaptiveSets:
    """Cuts sets of `k` labels on average from a long table of (item, label, score), each pair once.

    >>> item, label, score = np.array([0, 0, 1]), np.array([4, 7, 4]), np.array([0.9, 0.8, 0.5])
    >>> adaptive_sets_of_lists(item, label, score, np.array([7, 7]), k=1).hit.tolist()
    [True, False]
    """
    refuse_negative(truth)
    is_true = label == truth[item]
    true_score = np.full(len(truth), -np.inf)
    true_score[item[is_true]] = score[is_true]
    largest = _Largest(len(truth), k)
    listed = np.flatnonzero(largest.may_matter(np.asarray(score)))
    largest.add(score[listed], item[listed])
    return _cut(largest, true_score, k, strict)


def adaptive_accuracy(sets: AdaptiveSets) -> float:
    """Adaptive top-K accuracy: the share of items whose set holds the true label."""
    return float(sets.hit.mean())


def adaptive_accuracy_without_each_unit(sets: AdaptiveSets, unit: Codes) -> Values:
    """Adaptive top-K accuracy with each unit left out in turn, to first order.

    Leaving out an item takes away its hit h_i, and it moves the threshold: an item with a set larger than average had
    taken room from the others. With accuracy A as a function of the mean size M of the sets, the influence of item i is
    (h_i - A) - dA/dM (m_i - M), so that the value without a unit is the mean over the others of h_i - dA/dM (m_i - M).
    dA/dM is the gain measured over a window around K. Exact recomputation would be worse: a single item moves the
    threshold past zero or one true label, which says nothing about how many it passes on average.
    """
    return mean_without_each_unit(sets.hit - sets.gain * (sets.size - sets.mean_size), unit)


def mean_set_size(sets: AdaptiveSets) -> float:
    """The realized mean size of the sets; above K where scores tie at the threshold."""
    return sets.mean_size


class _Largest:
    """The largest scores seen so far, with their items; those equal to the smallest of them only counted per item."""

    def __init__(self, n_items: int, k: int) -> None:
        if n_items == 0 or k < 1:
            raise ValueError(f"{n_items} items and k={k}, expected at least one of each")
        self.n_items = n_items
        self.wanted = int(np.ceil(n_items * k * (1 + _WINDOW))) + 1
        self.cutoff = -np.inf
        self.at_cutoff: Counts = np.zeros(n_items, dtype=np.int64)
        self._scores: list[Scores] = []
        self._items: list[NDArray[Any]] = []
        self._held = 0

    def may_matter(self, score: Scores) -> Mask:
        """Which scores can be among the largest; refuses those that have no place in the order."""
        highest = score.max(initial=-np.inf)
        if np.isnan(highest):
            refuse_nan(score)
        if highest == np.inf:
            raise ValueError("a score is infinite")
        return np.asarray(score >= self.cutoff if self.cutoff > -np.inf else score > -np.inf)

    def add(self, score: Scores, item: NDArray[Any]) -> None:
        """Takes in scores that may matter."""
        equal = score == self.cutoff
        if equal.any():
            self.at_cutoff += np.bincount(item[equal], minlength=self.n_items)
            score, item = score[~equal], item[~equal]
        self._scores.append(score)
        self._items.append(item.astype(np.int32))
        self._held += len(score)
        if self._held > 2 * self.wanted:
            self._raise_cutoff()

    def in_order(self) -> tuple[Scores, NDArray[np.int32]]:
        """The scores above the cutoff and their items, largest first."""
        score, item = self._merged()
        order = np.argsort(-score, kind="stable")
        return score[order], item[order]

    def _merged(self) -> tuple[Scores, NDArray[np.int32]]:
        if not self._scores:
            return np.zeros(0), np.zeros(0, dtype=np.int32)
        return np.concatenate(self._scores), np.concatenate(self._items)

    def _raise_cutoff(self) -> None:
        score, item = self._merged()
        place = len(score) - self.wanted
        self.cutoff = float(np.partition(score, place)[place])
        above = score > self.cutoff
        self.at_cutoff = np.bincount(item[score == self.cutoff], minlength=self.n_items)
        self._scores, self._items, self._held = [score[above]], [item[above]], int(above.sum())


def _cut(largest: _Largest, true_score: Values, k: int, strict: bool) -> AdaptiveSets:
    score, item = largest.in_order()
    n_items, wanted = largest.n_items, largest.n_items * k
    listed = len(score) + int(largest.at_cutoff.sum())

    def nth(place: int) -> float:
        return float(score[place] if place < len(score) else largest.cutoff)

    def sizes(threshold: float, strict: bool) -> Counts:
        above = np.searchsorted(-score, -threshold, side="left" if strict else "right")
        kept = np.bincount(item[:above], minlength=n_items)
        tied = largest.cutoff > threshold or (largest.cutoff == threshold and not strict)
        return kept + largest.at_cutoff if tied else kept

    if listed <= wanted:
        return AdaptiveSets(-np.inf, true_score > -np.inf, sizes(-np.inf, strict=True), 0.0)
    # In double precision the mean of two neighboring single-precision scores lies between them.
    threshold = (nth(wanted - 1) + nth(wanted)) / 2
    hit = true_score > threshold if strict else true_score >= threshold

    reach = int(wanted * _WINDOW)
    narrow, wide = nth(max(wanted - reach, 1) - 1), nth(min(wanted + reach, listed) - 1)
    larger = (sizes(wide, strict=False).sum() - sizes(narrow, strict=False).sum()) / n_items
    gain = float((true_score >= wide).mean() - (true_score >= narrow).mean()) / larger if larger > 0 else 0.0
    return AdaptiveSets(threshold, hit, sizes(threshold, strict), gain)
