from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldmark.metrics import geo
from fieldmark.metrics.geo import (
    AdaptiveSets,
    adaptive_accuracy,
    adaptive_accuracy_without_each_unit,
    adaptive_sets,
    adaptive_sets_of_lists,
)
from fieldmark.metrics.ranking import rank_of_truth_in_blocks, recall_at_k
from fieldmark.stats.intervals import interval, pseudo_values
from fieldmark_tests.metrics.drawing import generators


@st.composite
def places(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """Scores with or without ties (one row per place), the true species, and K."""
    rng = draw(generators)
    n, n_labels = int(rng.integers(1, 15)), int(rng.integers(2, 12))
    score = rng.random((n, n_labels)) if rng.random() < 0.5 else rng.integers(0, 5, (n, n_labels)) / 4
    return score.astype(np.float32), rng.integers(0, n_labels, n), int(rng.integers(1, n_labels))


def average_k(score: np.ndarray, truth: np.ndarray, k: int, strict: bool) -> tuple[float, list[bool], list[int]]:
    """The definition: sort everything, take the middle of two scores."""
    flat = sorted((float(value) for value in score.ravel() if value > -np.inf), reverse=True)
    if len(flat) <= len(truth) * k:
        kept = score > -np.inf
        threshold = -np.inf
    else:
        threshold = (flat[len(truth) * k - 1] + flat[len(truth) * k]) / 2
        kept = score.astype(float) > threshold if strict else score.astype(float) >= threshold
    return threshold, [bool(row[true]) for row, true in zip(kept, truth, strict=True)], kept.sum(axis=1).tolist()


def same(sets: AdaptiveSets, expected: tuple[float, list[bool], list[int]]) -> bool:
    return (sets.threshold, sets.hit.tolist(), sets.size.tolist()) == expected


def in_blocks(score: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    return np.split(score, np.sort(rng.integers(0, len(score) + 1, 3)))


@given(case=places(), strict=st.booleans(), rng=generators, cells=st.integers(1, 40))
@settings(max_examples=200)
def test_sets_follow_the_definition_whatever_the_blocks(case, strict, rng, cells):
    score, truth, k = case
    expected = average_k(score, truth, k, strict)
    assert same(adaptive_sets([score], truth, k=k, strict=strict), expected)
    with pytest.MonkeyPatch.context() as patch:
        # Small enough that the cutoff rises many times.
        patch.setattr(geo, "CHUNK_CELLS", cells)
        assert same(adaptive_sets(in_blocks(score, rng), truth, k=k, strict=strict), expected)


@given(case=places(), strict=st.booleans(), rng=generators)
def test_a_list_of_pairs_gives_the_same_as_a_matrix_with_gaps(case, strict, rng):
    score, truth, k = case
    score[rng.random(score.shape) < 0.4] = -np.inf
    expected = average_k(score, truth, k, strict)
    assert same(adaptive_sets([score], truth, k=k, strict=strict), expected)
    item, label = np.nonzero(score > -np.inf)
    order = rng.permutation(len(item))
    item, label = item[order], label[order]
    assert same(adaptive_sets_of_lists(item, label, score[item, label], truth, k=k, strict=strict), expected)


def test_where_little_is_listed_everything_is_kept_and_what_is_not_listed_never_hits():
    sets = adaptive_sets_of_lists(np.array([0]), np.array([3]), np.array([0.1]), np.array([3, 3]), k=30)
    assert sets.hit.tolist() == [True, False] and sets.threshold == -np.inf and sets.mean_size == 0.5


def test_ties_at_the_threshold_enlarge_the_sets_or_with_strict_shrink_them():
    score, truth = np.zeros((4, 6)), np.zeros(4, dtype=int)
    assert adaptive_sets([score], truth, k=2).mean_size == 6
    assert adaptive_sets([score], truth, k=2, strict=True).mean_size == 0


def test_without_ties_the_sets_have_k_labels_on_average():
    rng = np.random.default_rng(0)
    sets = adaptive_sets([rng.random((50, 40))], rng.integers(0, 40, 50), k=7)
    assert sets.mean_size == 7


def test_neighboring_single_precision_scores_are_told_apart():
    low = np.float32(0.5)
    score = np.array([[low, np.nextafter(low, np.float32(1))]])
    assert adaptive_sets([score], np.array([0]), k=1).hit.tolist() == [False]


@given(case=places(), rng=generators)
def test_order_of_items_and_numbering_of_labels_do_not_matter(case, rng):
    score, truth, k = case
    items, labels = rng.permutation(len(truth)), rng.permutation(score.shape[1])
    renamed = np.argsort(labels)  # where each label went
    before = adaptive_sets([score], truth, k=k)
    after = adaptive_sets([score[:, labels][items]], renamed[truth][items], k=k)
    assert adaptive_accuracy(before) == adaptive_accuracy(after) and before.threshold == after.threshold
    assert before.gain == pytest.approx(after.gain)


def test_influence_without_a_gain_is_leaving_out_the_hits():
    sets = AdaptiveSets(0.5, np.array([True, False, True]), np.array([1, 2, 3]), 0.0)
    assert adaptive_accuracy_without_each_unit(sets, np.array([0, 1, 2])).tolist() == [0.5, 1.0, 0.5]


def draw_places(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Places that differ in how many species are likely: confident rows have few high scores."""
    sharpness = rng.choice([1.0, 4.0], n)[:, None]
    logits = sharpness * rng.gumbel(size=(n, 60))
    score = np.exp(logits - logits.max(axis=1, keepdims=True))
    score /= score.sum(axis=1, keepdims=True)
    return score, np.array([rng.choice(60, p=row) for row in 0.5 * score + 0.5 / 60])


def test_intervals_by_influence_cover():
    rng = np.random.default_rng(1)
    cases = [adaptive_sets([score], truth, k=5) for score, truth in (draw_places(rng, 150) for _ in range(600))]
    values = np.array([adaptive_accuracy(sets) for sets in cases])
    covered = 0
    for sets, value in zip(cases, values, strict=True):
        pseudo = pseudo_values(value, adaptive_accuracy_without_each_unit(sets, np.arange(150)))
        found = interval(value, pseudo)
        covered += found.low <= values.mean() <= found.high
    assert covered / 600 >= 0.93


@pytest.mark.parametrize(
    ("score", "truth", "message"),
    [
        ([[0.1, np.nan]], [0], "NaN"),
        ([[0.1, np.inf]], [0], "infinite"),
        ([[0.1, 0.2]], [-1], "contain -1"),
        ([[0.1, 0.2]], [0, 1], "1 rows or more, expected 2"),
        ([[0.1, 0.2], [0.1, 0.2]], [0], "expected 1"),
        (np.zeros((0, 2)), [], "0 items"),
    ],
)
def test_what_has_no_meaning_is_refused(score, truth, message):
    with pytest.raises(ValueError, match=message):
        adaptive_sets([np.array(score)], np.array(truth, dtype=int), k=1)


@given(case=places(), rng=generators)
def test_ranks_in_dense_scores_put_the_lower_code_first_among_equals(case, rng):
    score, truth, k = case
    order = [sorted(range(score.shape[1]), key=lambda label, row=row: (-row[label], label)) for row in score]
    expected = [labels.index(true) + 1 for labels, true in zip(order, truth, strict=True)]
    ranks = rank_of_truth_in_blocks(in_blocks(score, rng), truth)
    assert ranks.tolist() == expected
    assert recall_at_k(ranks, k=k) == np.mean([true in labels[:k] for labels, true in zip(order, truth, strict=True)])


def test_missing_rows_are_refused():
    with pytest.raises(ValueError, match="1 rows, expected 2"):
        rank_of_truth_in_blocks([np.zeros((1, 3))], np.array([0, 1]))
