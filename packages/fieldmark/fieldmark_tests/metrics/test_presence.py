from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import pearsonr
from sklearn.metrics import roc_auc_score

from fieldmark.metrics.openset import roc_auc
from fieldmark.metrics.presence import (
    by_class,
    mean_correlation,
    mean_correlation_without_each_unit,
    mean_prg_auc,
    mean_prg_auc_without_each_unit,
    mean_roc_auc,
    mean_roc_auc_without_each_unit,
)
from fieldmark_tests.metrics.drawing import draw_units, generators

METRICS = [
    (mean_roc_auc, mean_roc_auc_without_each_unit),
    (mean_correlation, mean_correlation_without_each_unit),
    (mean_prg_auc, mean_prg_auc_without_each_unit),
]


def survey(rng: np.random.Generator, *, levels: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Pairs that were asked about (item, class), scores with ties, presences, and the unit of each item."""
    n_items, n_classes = int(rng.integers(3, 14)), int(rng.integers(1, 4))
    asked = rng.random((n_items, n_classes)) < 0.8
    asked[:, 0] = True
    item, cls = (column.astype(np.int32) for column in np.nonzero(asked))
    score = rng.integers(0, levels, len(item)).astype(float) if levels else rng.random(len(item))
    return [item, cls, score, rng.random(len(item)) < 0.4], draw_units(rng, n_items)


def plain_prg_auc(score: np.ndarray, present: np.ndarray) -> float:
    """The area by definition: small steps of true positives along every run of equal scores, from recall gain 0 on."""
    p, area, before = present.mean(), 0.0, np.zeros(2)
    for level in sorted(set(score), reverse=True):
        after = np.array([(present & (score >= level)).sum(), (~present & (score >= level)).sum()], dtype=float)
        if after[0] > before[0]:
            first = np.clip((p * present.sum() - before[0]) / (after[0] - before[0]), 0, 1)
            true, false = (before + np.linspace(first, 1, 50)[:, None] * (after - before)).T
            precision, recall = true / (true + false), true / present.sum()
            gains = [(one - p) / ((1 - p) * one) for one in (recall, precision)]
            area += np.trapezoid(gains[1], gains[0])
        before = after
    return area


@given(rng=generators)
@settings(max_examples=40)
def test_each_class_has_the_value_of_scikit_learn_and_scipy(rng):
    (item, cls, score, present), _ = survey(rng, levels=3)
    aucs, correlations = [], []
    for one in range(cls.max() + 1):
        own = cls == one
        if present[own].any() and not present[own].all():
            aucs.append(roc_auc_score(present[own], score[own]))
            flat = len(set(score[own])) == 1
            correlations.append(0.0 if flat else pearsonr(score[own], present[own]).statistic)
    if aucs:
        assert mean_roc_auc(item, cls, score, present) == pytest.approx(np.mean(aucs))
        assert mean_correlation(item, cls, score, present) == pytest.approx(np.mean(correlations), abs=1e-9)
    else:
        assert np.isnan(mean_roc_auc(item, cls, score, present))


def test_the_area_of_gains_is_that_of_its_authors_program():
    # Computed with pyprg 0.1.1b7 by Flach and Kull; scores with and without ties.
    present = np.array([1, 1, 0, 1, 0, 0, 1, 0, 0, 0], dtype=bool)
    for score, area in (
        (np.arange(10.0, 0, -1), 0.7469135802469136),
        (np.array([5.0, 5, 4, 4, 4, 3, 3, 2, 1, 1]), 0.7962962962962963),
    ):
        assert mean_prg_auc(np.arange(10), np.zeros(10, int), score, present) == pytest.approx(area, abs=1e-8)


@given(rng=generators)
@settings(max_examples=40, deadline=None)
def test_the_area_of_gains_is_the_integral_of_its_definition(rng):
    score, present = rng.integers(0, 5, 9).astype(float), rng.random(9) < 0.4
    if present.any() and not present.all():
        value = mean_prg_auc(np.arange(9), np.zeros(9, int), score, present)
        assert value == pytest.approx(plain_prg_auc(score, present), abs=1e-9)


@pytest.mark.parametrize(("metric", "fast"), METRICS)
@pytest.mark.parametrize("levels", [0, 3])
@given(rng=generators)
@settings(max_examples=30, deadline=None)
def test_leaving_out_a_unit_equals_computing_without_its_pairs(metric, fast, levels, rng):
    pairs, unit = survey(rng, levels=levels)
    found = fast(*pairs, unit)
    for number in range(unit.max() + 1):
        kept = unit[pairs[0]] != number
        slow = metric(*(column[kept] for column in pairs)) if kept.any() else np.nan
        np.testing.assert_allclose(found[number], slow, atol=1e-9)


@pytest.mark.parametrize("metric", [metric for metric, _ in METRICS])
def test_a_perfect_order_scores_1_or_close_and_pairs_may_come_in_any_order(metric):
    rng = np.random.default_rng(0)
    item, cls = (column.ravel() for column in np.indices((20, 3)))
    present = rng.random(60) < 0.5
    assert metric(item, cls, present.astype(float), present) == pytest.approx(1.0)
    score, order = rng.random(60), rng.permutation(60)
    assert metric(item[order], cls[order], score[order], present[order]) == pytest.approx(
        metric(item, cls, score, present)
    )


def test_a_class_without_an_absence_is_left_out_of_the_mean():
    cls, present = np.array([0, 0, 1, 1]), np.array([True, False, True, True])
    values = by_class(roc_auc, cls, np.array([2.0, 1, 2, 1]), present, n_classes=3)
    assert values[0] == 1 and np.isnan(values[1:]).all()
    assert mean_roc_auc(np.array([0, 1, 0, 1]), cls, np.array([2.0, 1, 2, 1]), present) == 1
