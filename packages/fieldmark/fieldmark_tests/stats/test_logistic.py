"""Logistic regression and Platt's curve against scikit-learn, and where there is nothing to learn."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fieldmark.stats.logistic import logistic, platt


@pytest.mark.parametrize("ridge", [0.001, 1.0, 30.0])
def test_weights_and_intercept_equal_those_of_scikit_learn(ridge):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(120, 3)) * [1.0, 5.0, 0.2]
    target = (rng.random(120) < 1 / (1 + np.exp(2 - table[:, 0] - 0.3 * table[:, 1]))).astype(float)
    weights, intercept = logistic(table, target, ridge=ridge)
    peer = LogisticRegression(C=1 / ridge, tol=1e-10, max_iter=10_000).fit(table, target)
    assert weights == pytest.approx(peer.coef_[0], abs=1e-5)
    assert intercept == pytest.approx(peer.intercept_[0], abs=1e-5)


@pytest.mark.parametrize("ridge", [1e-3, 5.0])
def test_the_curve_is_a_logistic_regression_on_smoothed_targets(ridge):
    rng = np.random.default_rng(3)
    scores = rng.normal(4, 3, 200)
    holds = scores + rng.normal(0, 3, 200) > 5
    target = np.where(holds, (holds.sum() + 1) / (holds.sum() + 2), 1 / ((~holds).sum() + 2))
    # A target between 0 and 1 is the same item twice, once each way, with shares as weights.
    column = np.tile((scores - scores.mean()) / scores.std(), 2)[:, None]
    answers, weights = np.repeat([1, 0], 200), np.concatenate([target, 1 - target])
    other = LogisticRegression(C=1 / ridge, tol=1e-10, max_iter=1000).fit(column, answers, sample_weight=weights)

    slope, offset = platt(scores, holds, ridge=ridge)

    assert slope * scores.std() == pytest.approx(other.coef_[0, 0], rel=1e-5)
    assert offset + slope * scores.mean() == pytest.approx(other.intercept_[0], rel=1e-5)


def test_scores_that_part_the_items_cleanly_still_give_a_finite_curve():
    slope, offset = platt(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]))
    assert 0 < slope < 10 and offset == pytest.approx(0, abs=1e-6)


def test_equal_scores_give_the_share_that_holds():
    slope, offset = platt(np.ones(4), np.array([True, False, False, False]))
    assert slope == 0 and 1 / (1 + np.exp(-offset)) == pytest.approx(0.25)


def test_an_input_that_says_nothing_does_not_end_the_search_for_the_others():
    rng = np.random.default_rng(4)
    table, target = rng.normal(size=(60, 1)), (rng.random(60) < 0.3).astype(float)
    weights, intercept = logistic(np.column_stack([table, np.zeros(60)]), target, ridge=0.1)
    alone, other_intercept = logistic(table, target, ridge=0.1)
    assert weights == pytest.approx([alone[0], 0.0], abs=1e-8) and intercept == pytest.approx(other_intercept, abs=1e-8)
