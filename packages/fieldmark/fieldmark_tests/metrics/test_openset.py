from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, roc_auc_score, roc_curve

from fieldmark.metrics.openset import (
    f1_of_class,
    f1_of_class_without_each_unit,
    known_roc_auc,
    known_roc_auc_without_each_unit,
    open_macro_f1,
    open_macro_f1_without_each_unit,
    roc_auc,
    roc_auc_without_each_unit,
    tnr_at_tpr,
    tnr_at_tpr_resampled,
)
from fieldmark_tests.metrics.drawing import draw_units, generators, recomputed

RULES = ("first", "nearest")


@st.composite
def scored(draw: st.DrawFn, *, both: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores with or without ties, which items are known, and their units."""
    rng = draw(generators)
    n = int(rng.integers(2, 60))
    score = rng.random(n) if rng.random() < 0.5 else rng.integers(0, 6, n).astype(float)
    is_known = rng.random(n) < rng.random()
    if both:
        is_known[0], is_known[-1] = True, False
    return score, is_known, draw_units(rng, n)


def sweep(known: list[float], novel: list[float], tpr: float) -> float:
    """The organizers' sweep from the lowest score up, written out: ties drop a known item first."""
    known, novel = sorted(known), sorted(novel)
    kept_known, kept_novel = [len(known)], [len(novel)]
    while kept_known[-1] + kept_novel[-1] > 0:
        k, n = len(known) - kept_known[-1], len(novel) - kept_novel[-1]
        drop_novel = k == len(known) or (n < len(novel) and novel[n] < known[k])
        kept_known.append(kept_known[-1] - (not drop_novel))
        kept_novel.append(kept_novel[-1] - drop_novel)
    distance = [abs(kept / len(known) - tpr) for kept in kept_known]
    return 1.0 - kept_novel[distance.index(min(distance))] / len(novel)


@given(case=scored())
def test_roc_auc_equals_scikit_learn_with_and_without_ties(case):
    score, positive, _ = case
    assert roc_auc(score, positive) == pytest.approx(roc_auc_score(positive, score), abs=1e-12)


@given(case=scored())
def test_known_or_unknown_as_positive_gives_the_same_area(case):
    unknown_score, is_known, _ = case
    assert known_roc_auc(unknown_score, is_known) == pytest.approx(roc_auc(unknown_score, ~is_known), abs=1e-12)


@given(case=scored(both=False), ties=st.sampled_from(["half", "zero"]))
def test_roc_auc_without_a_unit_is_exactly_that_of_the_rest(case, ties):
    score, positive, unit = case
    fast = roc_auc_without_each_unit(score, positive, unit, ties=ties)
    again = recomputed(roc_auc, (score, positive), unit, ties=ties)
    np.testing.assert_allclose(fast, again, rtol=0, atol=1e-12)
    known = known_roc_auc_without_each_unit(score, positive, unit, ties=ties)
    again = recomputed(known_roc_auc, (score, positive), unit, ties=ties)
    np.testing.assert_allclose(known, again, rtol=0, atol=1e-12)


@given(case=scored())
def test_a_tied_pair_counts_nothing_where_that_is_asked(case):
    score, positive, _ = case
    pairs = [first > second for first in score[positive] for second in score[~positive]]
    assert roc_auc(score, positive, ties="zero") == pytest.approx(np.mean(pairs), abs=1e-12)


def test_roc_auc_of_one_kind_only_is_undefined():
    assert np.isnan(roc_auc(np.array([0.1, 0.2]), np.array([True, True])))
    assert np.isnan(roc_auc_without_each_unit(np.array([0.1, 0.2]), np.array([True, False]), np.array([0, 1]))).all()


@given(case=scored(), tpr=st.sampled_from([0.5, 0.8, 0.9, 0.95, 1.0]))
def test_the_first_threshold_is_the_first_point_of_the_roc_curve_that_reaches_the_share(case, tpr):
    unknown_score, is_known, _ = case
    fpr, reached, _ = roc_curve(is_known, -unknown_score, drop_intermediate=False)
    assert tnr_at_tpr(unknown_score, is_known, tpr=tpr) == pytest.approx(1 - fpr[np.argmax(reached >= tpr)], abs=1e-12)


@given(case=scored(), tpr=st.sampled_from([0.5, 0.8, 0.9, 0.95, 1.0]))
def test_the_nearest_threshold_equals_the_organizers_sweep(case, tpr):
    unknown_score, is_known, _ = case
    expected = sweep(list(-unknown_score[is_known]), list(-unknown_score[~is_known]), tpr)
    assert tnr_at_tpr(unknown_score, is_known, tpr=tpr, threshold="nearest") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("rule", RULES)
@given(case=scored(), rng=generators)
def test_a_resampled_value_is_the_value_of_the_repeated_items(rule, case, rng):
    unknown_score, is_known, unit = case
    times = rng.integers(0, 3, (4, unit.max() + 1))
    found = tnr_at_tpr_resampled(unknown_score, is_known, unit, times, tpr=0.9, threshold=rule)
    for value, drawn in zip(found, times, strict=True):
        score, known = np.repeat(unknown_score, drawn[unit]), np.repeat(is_known, drawn[unit])
        np.testing.assert_allclose(value, tnr_at_tpr(score, known, tpr=0.9, threshold=rule), rtol=0, atol=1e-12)


@given(case=scored(), rng=generators)
def test_rising_transformations_and_the_order_of_rows_change_nothing(case, rng):
    unknown_score, is_known, _ = case
    order = rng.permutation(len(unknown_score))
    moved = np.exp(unknown_score)[order]
    assert known_roc_auc(moved, is_known[order]) == pytest.approx(known_roc_auc(unknown_score, is_known))
    for rule in RULES:
        before = tnr_at_tpr(unknown_score, is_known, threshold=rule)
        assert tnr_at_tpr(moved, is_known[order], threshold=rule) == pytest.approx(before)


def test_a_perfect_score_rejects_every_unknown_item_and_a_constant_one_none():
    is_known = np.arange(40) < 20
    for rule in RULES:
        assert tnr_at_tpr(np.where(is_known, 0.0, 1.0), is_known, threshold=rule) == 1.0
        assert tnr_at_tpr(np.zeros(40), is_known, threshold=rule) == 0.0


def test_the_nearest_rule_counts_unknown_items_between_two_known_ones_as_accepted():
    # 20 known items: one is dropped. The unknown item above it and below the next one is not rejected.
    known = np.arange(20.0)
    unknown_score, is_known = -np.append(known, 0.5), np.arange(21) < 20
    assert tnr_at_tpr(unknown_score, is_known, threshold="first") == 1.0
    assert tnr_at_tpr(unknown_score, is_known, threshold="nearest") == 0.0


@pytest.mark.parametrize("metric", [roc_auc, known_roc_auc, tnr_at_tpr])
def test_nan_is_refused(metric):
    with pytest.raises(ValueError, match="NaN, first at position 1"):
        metric(np.array([0.1, np.nan, 0.3]), np.array([True, False, True]))


def test_a_share_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"tpr is 95\.0"):
        tnr_at_tpr(np.array([0.1, 0.2]), np.array([True, False]), tpr=95.0)


@st.composite
def named(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    rng = draw(generators)
    n, n_classes = int(rng.integers(2, 50)), int(rng.integers(1, 7))
    truth = rng.integers(-1, n_classes, n).astype(np.int32)
    predicted = np.where(rng.random(n) < 0.5, truth, rng.integers(-1, n_classes, n)).astype(np.int32)
    return truth, predicted, draw_units(rng, n), n_classes


@given(case=named(), cls=st.integers(-1, 2))
def test_f1_of_a_class_equals_scikit_learn_and_leaving_out_a_unit_equals_recomputing(case, cls):
    truth, predicted, unit, _ = case
    expected = f1_score(truth, predicted, labels=[cls], average="macro", zero_division=0)
    assert f1_of_class(truth, predicted, cls=cls) == pytest.approx(expected, abs=1e-12)
    fast = f1_of_class_without_each_unit(truth, predicted, unit, cls=cls)
    np.testing.assert_allclose(fast, recomputed(f1_of_class, (truth, predicted), unit, cls=cls), atol=1e-12)


@pytest.mark.parametrize("unknown", ["averaged", "left out"])
@pytest.mark.parametrize("over", ["all", "present", "union"])
@given(case=named())
def test_open_macro_f1_equals_scikit_learn_with_the_classes_spelled_out(over, unknown, case):
    truth, predicted, unit, n_classes = case
    labels = {
        "all": np.arange(-1, n_classes),
        "present": np.unique(truth),
        "union": np.union1d(truth, predicted),
    }[over]
    labels = labels[labels >= 0] if unknown == "left out" else labels
    expected = f1_score(truth, predicted, labels=labels, average="macro", zero_division=0) if len(labels) else 0.0
    options = {"n_classes": n_classes, "over": over, "unknown": unknown}
    assert open_macro_f1(truth, predicted, **options) == pytest.approx(expected, abs=1e-12)
    fast = open_macro_f1_without_each_unit(truth, predicted, unit, **options)
    np.testing.assert_allclose(fast, recomputed(open_macro_f1, (truth, predicted), unit, **options), atol=1e-12)
