from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from fieldmark.metrics import retrieval
from fieldmark.metrics.retrieval import (
    cmap,
    cmap_dense,
    cmap_dense_without_each_unit,
    cmap_without_each_unit,
    padded_cmap,
    padded_cmap_without_each_unit,
    rmap,
    rmap_without_each_unit,
)
from fieldmark_tests.metrics.drawing import draw_units, generators

TIES = ("optimistic", "expected", "grouped")


@st.composite
def soundscapes(draw: st.DrawFn, *, levels: int = 4) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """A run (segment, class, score with ties), a truth (segment, class), and the recording of each segment."""
    rng = draw(generators)
    n_segments, n_classes = int(rng.integers(1, 14)), int(rng.integers(1, 5))
    listed, true = rng.random((n_segments, n_classes)) < 0.7, rng.random((n_segments, n_classes)) < 0.3
    true[rng.integers(n_segments), rng.integers(n_classes)] = True
    segment, cls = (column.astype(np.int32) for column in np.nonzero(listed))
    score = rng.integers(0, levels, len(segment)) / levels if rng.random() < 0.7 else rng.random(len(segment))
    true_segment, true_cls = (column.astype(np.int32) for column in np.nonzero(true))
    return [segment, cls, score], [true_segment, true_cls], draw_units(rng, n_segments)


def organizers(query: np.ndarray, document: np.ndarray, score: np.ndarray, true: set[tuple[int, int]]) -> float:
    """Mean average precision as the evaluator has it: sorted by (score, correct), reversed."""
    total, queries = 0.0, {q for q, _ in true}
    for wanted in queries:
        rows = [(s, (q, d) in true) for q, d, s in zip(query, document, score, strict=True) if q == wanted]
        hits = 0
        for rank, (_, correct) in enumerate(sorted(rows, reverse=True), start=1):
            hits += correct
            total += correct * hits / rank / sum(q == wanted for q, _ in true)
    return total / len(queries)


@given(case=soundscapes())
def test_optimistic_ties_equal_the_organizers_evaluator(case):
    (segment, cls, score), (true_segment, true_cls), _ = case
    by_class = organizers(cls, segment, score, set(zip(true_cls, true_segment, strict=True)))
    by_segment = organizers(segment, cls, score, set(zip(true_segment, true_cls, strict=True)))
    assert cmap(segment, cls, score, true_segment, true_cls) == pytest.approx(by_class, abs=1e-12)
    assert rmap(segment, cls, score, true_segment, true_cls) == pytest.approx(by_segment, abs=1e-12)


@given(rng=generators)
@settings(max_examples=40)
def test_expected_ties_are_the_mean_over_all_orders(rng):
    n = int(rng.integers(1, 7))
    score, relevant = rng.integers(0, 3, n), rng.random(n) < 0.5
    relevant[0] = True
    found = []
    for order in permutations(range(n)):
        by_score = relevant[sorted(order, key=lambda row: -score[row])]
        hits = np.cumsum(by_score)
        found.append((hits / np.arange(1, n + 1))[by_score].sum() / relevant.sum())
    where = np.flatnonzero(relevant)
    value = cmap(np.arange(n), np.zeros(n, int), score, where, np.zeros(len(where), int), ties="expected")
    assert value == pytest.approx(np.mean(found), abs=1e-12)


@given(rng=generators)
def test_grouped_ties_equal_scikit_learn_and_without_ties_all_conventions_do(rng):
    n, n_classes = 25, 4
    true = rng.random((n, n_classes)) < 0.3
    true[0] = True
    for score in (rng.integers(0, 4, (n, n_classes)).astype(float), rng.permuted(np.arange(100.0)).reshape(n, 4)):
        tied = len(np.unique(score)) < score.size
        expected = np.mean([average_precision_score(true[:, c], score[:, c]) for c in range(n_classes)])
        for ties in ("grouped",) if tied else TIES:
            assert cmap_dense(score, *np.nonzero(true), ties=ties) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("ties", TIES)
@given(case=soundscapes())
def test_leaving_out_a_recording_equals_computing_without_its_rows_and_truth(ties, case):
    run, truth, unit = case
    for metric, fast in ((cmap, cmap_without_each_unit), (rmap, rmap_without_each_unit)):
        found = fast(*run, *truth, unit, ties=ties)
        for number in range(unit.max() + 1):
            kept_run, kept_truth = unit[run[0]] != number, unit[truth[0]] != number
            slow = metric(*(c[kept_run] for c in run), *(c[kept_truth] for c in truth), ties=ties)
            np.testing.assert_allclose(found[number], slow, atol=1e-12)


@pytest.mark.parametrize("ties", TIES)
@given(rng=generators)
@settings(max_examples=30)
def test_a_matrix_gives_the_same_as_its_list_of_pairs(ties, rng):
    score = rng.integers(0, 5, (12, 40)).astype(np.float32)
    segment, cls = (column.ravel() for column in np.indices(score.shape))
    truth, unit = np.nonzero(rng.random(score.shape) < 0.1), draw_units(rng, 12)
    if not len(truth[0]):
        return
    assert cmap_dense(score, *truth, ties=ties) == pytest.approx(cmap(segment, cls, score.ravel(), *truth, ties=ties))
    np.testing.assert_allclose(
        cmap_dense_without_each_unit(score, *truth, unit, ties=ties),
        cmap_without_each_unit(segment, cls, score.ravel(), *truth, unit, ties=ties),
    )


@given(case=soundscapes())
def test_the_size_of_the_tables_changes_nothing(case):
    run, truth, unit = case
    whole = cmap_without_each_unit(*run, *truth, unit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrieval, "TABLE_CELLS", 3)
        np.testing.assert_allclose(cmap_without_each_unit(*run, *truth, unit), whole, rtol=1e-12, atol=0)


@given(case=soundscapes(), rng=generators)
def test_order_of_rows_and_numbering_of_segments_and_classes_do_not_matter(case, rng):
    (segment, cls, score), (true_segment, true_cls), unit = case
    rows, pairs = rng.permutation(len(score)), rng.permutation(len(true_cls))
    segments, classes = rng.permutation(len(unit)), rng.permutation(9)
    for metric in (cmap, rmap):
        for ties in TIES:
            before = metric(segment, cls, score, true_segment, true_cls, ties=ties)
            run = segments[segment][rows], classes[cls][rows], score[rows]
            after = metric(*run, segments[true_segment][pairs], classes[true_cls][pairs], ties=ties)
            assert before == pytest.approx(after, abs=1e-12)


def test_false_alarms_in_silence_lower_cmap_but_not_rmap():
    truth = np.array([0]), np.array([0])
    quiet = np.array([0]), np.array([0]), np.array([0.5])
    alarmed = np.array([0, 1]), np.array([0, 0]), np.array([0.5, 0.9])
    assert (cmap(*quiet, *truth), cmap(*alarmed, *truth)) == (1.0, 0.5)
    assert (rmap(*quiet, *truth), rmap(*alarmed, *truth)) == (1.0, 1.0)


def test_what_is_not_listed_is_missed_and_a_class_nobody_names_scores_zero():
    segment, cls, score = np.array([0]), np.array([0]), np.array([1.0])
    assert cmap(segment, cls, score, np.array([0, 1]), np.array([0, 0])) == 0.5
    assert cmap(segment, cls, score, np.array([0, 1]), np.array([0, 7])) == 0.5
    assert cmap(segment, np.array([3]), score, np.array([0]), np.array([0])) == 0.0


def test_an_event_that_is_stated_twice_counts_once():
    run = np.array([0, 1]), np.array([0, 0]), np.array([0.9, 0.8])
    assert cmap(*run, np.array([1, 1]), np.array([0, 0])) == cmap(*run, np.array([1]), np.array([0])) == 0.5


def test_an_empty_run_scores_zero_and_an_empty_truth_is_undefined():
    none, numbers = np.zeros(0, np.int32), np.zeros(0)
    assert cmap(none, none, numbers, np.array([0]), np.array([0])) == 0.0
    assert np.isnan(cmap(np.array([0]), np.array([0]), np.array([0.5]), none, none))
    assert np.isnan(cmap_dense(np.ones((2, 2)), none, none))


def test_nan_and_a_pair_listed_twice_are_refused():
    twice = np.array([0, 0]), np.array([0, 0])
    with pytest.raises(ValueError, match="twice"):
        cmap(*twice, np.array([0.1, 0.2]), np.array([0]), np.array([0]))
    with pytest.raises(ValueError, match="NaN"):
        cmap(np.array([0, 1]), np.array([0, 0]), np.array([0.1, np.nan]), np.array([0]), np.array([0]))
    with pytest.raises(ValueError, match="ties='random'"):
        cmap(np.array([0]), np.array([0]), np.array([0.1]), np.array([0]), np.array([0]), ties="random")


@pytest.mark.parametrize("seed", range(6))
def test_padded_cmap_is_sklearns_average_precision_of_the_padded_matrices(seed):
    rng = np.random.default_rng(seed)
    scores, true = rng.integers(0, 5, (12, 4)) / 4, rng.random((12, 4)) < 0.2
    true[:, 0] = False  # a class that the truth lacks counts as well
    padded_true, padded_scores = (np.vstack([matrix, np.ones((5, 4))]) for matrix in (true, scores))
    (segment, cls), truth = np.nonzero(np.ones_like(scores)), np.nonzero(true)
    value = padded_cmap(segment, cls, scores.ravel(), *truth, n_classes=4, n_segments=12)
    assert value == pytest.approx(average_precision_score(padded_true, padded_scores, average="macro"), abs=1e-12)
    unit = np.arange(12, dtype=np.int32) % 5
    left_out = padded_cmap_without_each_unit(
        segment, cls, scores.ravel(), *truth, unit=unit, n_classes=4, n_segments=12
    )
    for one in range(5):
        kept = np.append(unit != one, np.ones(5, dtype=bool))
        by_hand = average_precision_score(padded_true[kept], padded_scores[kept], average="macro")
        assert left_out[one] == pytest.approx(by_hand, abs=1e-12)


def test_scores_of_nothing_look_good_where_segments_were_added():
    # One true segment in a hundred: five added ones lift a run without any score to 0.84.
    nothing = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32), np.empty(0)
    value = padded_cmap(*nothing, np.array([3]), np.array([0]), n_classes=1, n_segments=100)
    assert value == pytest.approx(0.843, abs=5e-4)
