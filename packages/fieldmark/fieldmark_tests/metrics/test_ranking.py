from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import label_ranking_average_precision_score

from fieldmark.metrics.classification import top_k
from fieldmark.metrics.ranking import (
    mean_reciprocal_rank,
    mean_reciprocal_rank_without_each_unit,
    rank_of_truth,
    recall_at_k,
    recall_at_k_without_each_unit,
    species_mean_reciprocal_rank,
    species_mean_reciprocal_rank_without_each_unit,
    top_k_error,
    top_k_error_without_each_unit,
)
from fieldmark_tests.metrics.drawing import draw_units, generators, recomputed


@st.composite
def answers(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A long table (item, label, score with ties, stated rank) in any order, and the truth."""
    rng = draw(generators)
    rows = []
    n_items = int(rng.integers(1, 8))
    for item in range(n_items):
        labels = rng.permutation(6)[: rng.integers(0, 7)]
        rows += [(item, label, rng.integers(0, 3) / 2, place + 1) for place, label in enumerate(labels)]
    rows = [rows[row] for row in rng.permutation(len(rows))] or [(0, 99, 0.0, 1)]
    item, label, score, stated = (np.array(column) for column in zip(*rows, strict=True))
    return item, label, score, stated, rng.integers(0, 6, n_items)


def naive_rank(rows: list[tuple], truth: int) -> int:
    ordered = [row[1] for row in sorted(rows, key=lambda row: (-row[2], row[3]))]
    return ordered.index(truth) + 1 if truth in ordered else 0


@given(case=answers())
def test_answers_are_sorted_by_score_and_ties_by_the_stated_rank(case):
    item, label, score, stated, truth = case
    rows = list(zip(item, label, score, stated, strict=True))
    expected = [naive_rank([row for row in rows if row[0] == number], true) for number, true in enumerate(truth)]
    assert rank_of_truth(item, label, score, truth, tie_break=stated).tolist() == expected


@given(case=answers(), rng=generators)
def test_the_order_of_rows_never_matters_even_when_ties_remain(case, rng):
    item, label, score, _, truth = case
    order = rng.permutation(len(item))
    before = rank_of_truth(item, label, score, truth)
    assert rank_of_truth(item[order], label[order], score[order], truth).tolist() == before.tolist()


def test_ties_that_nothing_breaks_count_against_the_run():
    assert rank_of_truth(np.array([0, 0]), np.array([1, 2]), np.array([0.5, 0.5]), np.array([1])).tolist() == [2]


@given(rng=generators)
def test_mean_reciprocal_rank_equals_scikit_learn_with_one_relevant_label(rng):
    n, n_classes = 20, 7
    scores = rng.permuted(np.tile(np.arange(float(n_classes)), (n, 1)), axis=1)
    truth = rng.integers(0, n_classes, n)
    ranks = rank_of_truth(np.repeat(np.arange(n), n_classes), np.tile(np.arange(n_classes), n), scores.ravel(), truth)
    expected = label_ranking_average_precision_score(np.eye(n_classes)[truth], scores)
    assert mean_reciprocal_rank(ranks) == pytest.approx(expected)


def test_an_unlisted_truth_counts_zero_and_stays_in_the_mean():
    assert mean_reciprocal_rank(np.array([1, 0])) == 0.5
    assert recall_at_k(np.array([1, 0]), k=100) == 0.5


def test_a_subset_without_items_has_no_mean():
    assert np.isnan(mean_reciprocal_rank(np.array([1, 2]), among=np.array([False, False])))


@given(rng=generators)
def test_leaving_out_a_unit_equals_computing_without_its_rows(rng):
    n = 25
    ranks, rare, unit = rng.integers(0, 12, n), rng.random(n) < 0.3, draw_units(rng, n)
    fast = mean_reciprocal_rank_without_each_unit(ranks, unit)
    np.testing.assert_allclose(fast, recomputed(mean_reciprocal_rank, (ranks,), unit))
    fast = mean_reciprocal_rank_without_each_unit(ranks, unit, among=rare)
    slow = [mean_reciprocal_rank(ranks[unit != u], among=rare[unit != u]) for u in range(unit.max() + 1)]
    np.testing.assert_allclose(fast, slow)
    fast = recall_at_k_without_each_unit(ranks, unit, k=5)
    np.testing.assert_allclose(fast, recomputed(recall_at_k, (ranks,), unit, k=5))
    truth, ranked = rng.integers(0, 4, n), rng.permuted(np.tile(np.arange(4), (n, 1)), axis=1)
    fast = top_k_error_without_each_unit(truth, ranked, unit, k=2)
    np.testing.assert_allclose(fast, recomputed(top_k_error, (truth, ranked), unit, k=2))
    assert top_k_error(truth, ranked, k=2) == pytest.approx(1 - top_k(truth, ranked, k=2))


def test_nan_and_a_true_label_listed_twice_are_refused():
    one = np.array([0, 0])
    with pytest.raises(ValueError, match="NaN"):
        rank_of_truth(one, np.array([1, 2]), np.array([0.5, np.nan]), np.array([1]))
    with pytest.raises(ValueError, match="item 0 lists its true label more than once"):
        rank_of_truth(one, np.array([1, 1]), np.array([0.5, 0.4]), np.array([1]))


@pytest.mark.parametrize("seed", range(4))
def test_species_have_the_same_weight_in_the_mean_reciprocal_rank_by_species(seed):
    rng = np.random.default_rng(seed)
    ranks, truth = rng.integers(0, 6, size=40), rng.integers(0, 5, size=40)
    unit = np.concatenate([np.arange(12), rng.integers(12, size=28)]).astype(np.int32)

    def by_hand(kept: np.ndarray) -> float:
        means = []
        for one in set(truth[kept]):
            own = ranks[kept & (truth == one)]
            means.append(np.mean([1 / rank if rank else 0 for rank in own]))
        return float(np.mean(means))

    assert species_mean_reciprocal_rank(ranks, truth) == pytest.approx(by_hand(np.ones(40, dtype=bool)), abs=1e-12)
    left_out = species_mean_reciprocal_rank_without_each_unit(ranks, truth, unit)
    np.testing.assert_allclose(left_out, [by_hand(unit != one) for one in range(12)], atol=1e-12)
