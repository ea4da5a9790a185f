"""Scored lists of labels: what the overview of LifeCLEF 2020 defines, list by list.

- Mean reciprocal rank: section on plants.
- cmAP, and the same by segment (rmAP): section on birds; the order of equal scores is the organizers', or averaged.
- Adaptive top-30 accuracy: section on places; the threshold lies halfway between the scores on either side of the cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations

Scored = Mapping[str, float]
SET_SIZE = 30


def reciprocal_rank(ranked: Sequence[str], true: str) -> float:
    """1 / rank of the true label, 0 where it is not listed."""
    for place, label in enumerate(ranked, 1):
        if label == true:
            return 1 / place
    return 0.0


def precision_sum(relevant: Sequence[bool]) -> float:
    """The sum over ranks k of P(k) rel(k)."""
    total, found = 0.0, 0
    for rank, is_relevant in enumerate(relevant, 1):
        if is_relevant:
            found += 1
            total += found / rank
    return total


def optimistic_precision(scores: Scored, relevant: Collection[str]) -> float:
    """AveP with the right ones first among equal scores, as the organizers sort."""
    order = sorted(((score, name in relevant) for name, score in scores.items()), reverse=True)
    return precision_sum([is_relevant for _, is_relevant in order]) / len(relevant)


def expected_precision(scores: Scored, relevant: Collection[str]) -> float:
    """AveP averaged over all orders of equal scores, each of which is tried."""
    total, before, found_before = 0.0, 0, 0
    for score in sorted(set(scores.values()), reverse=True):
        tied = [name for name in scores if scores[name] == score]
        n_relevant = sum(1 for name in tied if name in relevant)
        sums = [
            _sum_in_group(places, before, found_before) for places in combinations(range(1, len(tied) + 1), n_relevant)
        ]
        total += sum(sums) / len(sums)
        before, found_before = before + len(tied), found_before + n_relevant
    return total / len(relevant)


def _sum_in_group(places: Sequence[int], before: int, found_before: int) -> float:
    """What relevant ones at these places of a group add, behind `before` others of which some are relevant."""
    total = 0.0
    for number, place in enumerate(places, 1):
        total += (found_before + number) / (before + place)
    return total


Precision = Callable[[Scored, Collection[str]], float]


def mean_average_precision(
    scores_of: Mapping[str, Scored], relevant_to: Mapping[str, Collection[str]], precision: Precision
) -> float:
    """The mean over the queries of the truth; a query that the run does not answer counts 0."""
    total = 0.0
    for query, relevant in relevant_to.items():
        total += precision(scores_of.get(query, {}), relevant)
    return total / len(relevant_to) if relevant_to else math.nan


def adaptive_threshold(scores_of: Mapping[str, Scored]) -> float:
    """The threshold that leaves 30 labels per item on average; minus infinity where so few are listed."""
    in_order = sorted((score for scores in scores_of.values() for score in scores.values()), reverse=True)
    kept = SET_SIZE * len(scores_of)
    return (in_order[kept - 1] + in_order[kept]) / 2 if len(in_order) > kept else -math.inf


def adaptive_sets(scores_of: Mapping[str, Scored], *, strict: bool) -> dict[str, set[str]]:
    """The labels of each item at (or, if strict, only above) the threshold."""
    threshold = adaptive_threshold(scores_of)
    sets: dict[str, set[str]] = {}
    for item, scores in scores_of.items():
        sets[item] = {
            label for label, score in scores.items() if score > threshold or (score == threshold and not strict)
        }
    return sets
