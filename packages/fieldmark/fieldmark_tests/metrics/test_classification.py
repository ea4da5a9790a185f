from __future__ import annotations

import warnings
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, f1_score, top_k_accuracy_score

from fieldmark.metrics import classification
from fieldmark.metrics.classification import (
    balanced_accuracy,
    balanced_accuracy_without_each_unit,
    macro_f1,
    macro_f1_without_each_unit,
    mean_without_each_unit,
    top_k,
    top_k_without_each_unit,
)
from fieldmark_tests.peak_memory import peak_bytes

OVERS = ("all", "present", "union")


@st.composite
def answers(draw: st.DrawFn, *, missing: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    n_classes = draw(st.integers(1, 8))
    n = draw(st.integers(1, 40))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n).astype(np.int32)
    predicted = np.where(rng.random(n) < 0.5, truth, rng.integers(-1 if missing else 0, n_classes, n)).astype(np.int32)
    unit = np.unique(rng.integers(0, n, n), return_inverse=True)[1].astype(np.int32)
    return truth, predicted, unit, n_classes


def labels_averaged(truth: np.ndarray, predicted: np.ndarray, n_classes: int, over: str) -> np.ndarray:
    return {"all": np.arange(n_classes), "present": np.unique(truth), "union": np.union1d(truth, predicted)}[over]


@pytest.mark.parametrize("over", OVERS)
@given(case=answers())
def test_macro_f1_equals_scikit_learn_with_the_classes_spelled_out(over, case):
    truth, predicted, _, n_classes = case
    averaged = labels_averaged(truth, predicted, n_classes, over)
    expected = f1_score(truth, predicted, labels=averaged, average="macro", zero_division=0)
    assert macro_f1(truth, predicted, n_classes=n_classes, over=over) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("over", OVERS)
@given(case=answers(missing=True), items_at_once=st.sampled_from([5, classification.ITEMS_AT_ONCE]))
def test_leaving_out_a_unit_equals_computing_without_its_rows(over, items_at_once, case):
    truth, predicted, unit, n_classes = case
    with patch.object(classification, "ITEMS_AT_ONCE", items_at_once):
        fast = macro_f1_without_each_unit(truth, predicted, unit, n_classes=n_classes, over=over)
    for number in range(unit.max() + 1):
        kept = unit != number
        naive = macro_f1(truth[kept], predicted[kept], n_classes=n_classes, over=over) if kept.any() else 0.0
        assert fast[number] == pytest.approx(naive, abs=1e-12)


def test_pairs_too_many_to_be_numbered_in_32_bits_are_left_out_as_others_are(monkeypatch):
    rng, items, n_classes = np.random.default_rng(0), 30_000, 50_000
    truth = rng.integers(0, n_classes, items).astype(np.int32)
    predicted = np.where(rng.random(items) < 0.5, truth, rng.integers(-1, n_classes, items)).astype(np.int32)
    unit = rng.permutation(items).astype(np.int32)
    together = macro_f1_without_each_unit(truth, predicted, unit, n_classes=n_classes, over="present")
    monkeypatch.setattr(classification, "ITEMS_AT_ONCE", 500)
    few = macro_f1_without_each_unit(truth, predicted, unit, n_classes=n_classes, over="present")
    assert together.tolist() == few.tolist() and len(set(few.tolist())) > 2


def test_leaving_out_units_takes_memory_for_the_pairs_and_little_else():
    rng, items = np.random.default_rng(0), 400_000
    truth, predicted = rng.integers(0, 50, (2, items)).astype(np.int32)
    unit = np.arange(items, dtype=np.int32)
    peak = peak_bytes(lambda: macro_f1_without_each_unit(truth, predicted, unit, n_classes=50, over="union"))
    pairs, values = 8 * 2 * items, 8 * items
    assert peak < 2 * (pairs + values)


@given(case=answers(missing=True), seed=st.integers(0, 1000))
def test_order_of_rows_and_numbering_of_classes_do_not_matter(case, seed):
    truth, predicted, _, n_classes = case
    rng = np.random.default_rng(seed)
    order, renamed = rng.permutation(len(truth)), np.append(rng.permutation(n_classes), -1)
    for over in OVERS:
        before = macro_f1(truth, predicted, n_classes=n_classes, over=over)
        after = macro_f1(renamed[truth][order], renamed[predicted][order], n_classes=n_classes, over=over)
        assert before == pytest.approx(after, abs=1e-12)


def test_classes_nobody_mentions_count_zero_only_over_all():
    truth = np.array([0, 1])
    scores = {over: macro_f1(truth, truth, n_classes=4, over=over) for over in OVERS}
    assert scores == {"all": 0.5, "present": 1.0, "union": 1.0}


def test_no_answer_is_a_miss_and_never_a_class():
    truth, predicted = np.array([0, 1]), np.array([0, -1])
    assert macro_f1(truth, predicted, n_classes=2, over="union") == 0.5


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 4))
@settings(max_examples=50)
def test_top_k_equals_scikit_learn_without_ties(seed, k):
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.arange(5.0), (30, 1)), axis=1)
    truth = rng.integers(0, 5, 30)
    ranked = np.argsort(-scores, axis=1)
    expected = top_k_accuracy_score(truth, scores, k=k, labels=np.arange(5))
    assert top_k(truth, ranked, k=k) == pytest.approx(expected)


def test_top_k_without_each_unit_equals_computing_without_its_rows():
    rng = np.random.default_rng(0)
    truth, ranked = rng.integers(0, 4, 50), rng.permuted(np.tile(np.arange(4), (50, 1)), axis=1)
    unit = np.unique(rng.integers(0, 12, 50), return_inverse=True)[1]
    left_out = top_k_without_each_unit(truth, ranked, unit, k=2)
    assert left_out == pytest.approx([top_k(truth[unit != u], ranked[unit != u], k=2) for u in range(unit.max() + 1)])


def test_leaving_out_the_only_unit_leaves_nothing():
    assert np.isnan(mean_without_each_unit(np.array([1.0, 0.0]), np.array([0, 0]))).all()


@pytest.mark.parametrize("over", OVERS)
@given(case=answers(missing=True), seed=st.integers(0, 1000))
def test_macro_f1_among_some_classes_equals_scikit_learn_over_those(over, case, seed):
    truth, predicted, unit, n_classes = case
    among = np.random.default_rng(seed).random(n_classes) < 0.5
    averaged = [c for c in labels_averaged(truth, predicted, n_classes, over) if c >= 0 and among[c]]
    expected = f1_score(truth, predicted, labels=averaged, average="macro", zero_division=0) if averaged else 0.0
    options = {"n_classes": n_classes, "over": over, "among": among}
    assert macro_f1(truth, predicted, **options) == pytest.approx(expected, abs=1e-12)
    fast = macro_f1_without_each_unit(truth, predicted, unit, **options)
    for number in range(unit.max() + 1):
        kept = unit != number
        assert fast[number] == pytest.approx(macro_f1(truth[kept], predicted[kept], **options), abs=1e-12)


@given(case=answers(missing=True))
def test_balanced_accuracy_equals_scikit_learn(case):
    truth, predicted, _, n_classes = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of answers that are no class, and ignores them as we do
        expected = balanced_accuracy_score(truth, predicted)
    assert balanced_accuracy(truth, predicted, n_classes=n_classes) == pytest.approx(expected, abs=1e-12)


@given(case=answers(missing=True))
def test_balanced_accuracy_without_a_unit_equals_computing_without_its_rows(case):
    truth, predicted, unit, n_classes = case
    fast = balanced_accuracy_without_each_unit(truth, predicted, unit, n_classes=n_classes)
    for number in range(unit.max() + 1):
        kept = unit != number
        naive = balanced_accuracy(truth[kept], predicted[kept], n_classes=n_classes) if kept.any() else np.nan
        assert fast[number] == pytest.approx(naive, abs=1e-12, nan_ok=True)


def test_averages_that_share_their_counts_are_those_that_do_not():
    rng = np.random.default_rng(4)
    truth, predicted = (rng.integers(low, 30, 500).astype(np.int32) for low in (0, -1))
    shared = classification.SharedCounts()
    for unit in (np.arange(500, dtype=np.int32) // 3, np.arange(500, dtype=np.int32) // 7):
        for over in ("all", "present", "union"):
            own = classification.macro_f1_without_each_unit(truth, predicted, unit, n_classes=40, over=over)
            common = classification.macro_f1_without_each_unit(
                truth, predicted, unit, n_classes=40, over=over, shared=shared
            )
            assert (own == common).all()
            value = classification.macro_f1(truth, predicted, n_classes=40, over=over)
            assert value == classification.macro_f1(truth, predicted, n_classes=40, over=over, shared=shared)
