"""L1-penalized logistic regression against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.stats.lasso_logistic import lasso_logistic

LogisticRegression = pytest.importorskip("sklearn.linear_model").LogisticRegression


def drawn(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns of which some nearly repeat each other, a rare truth, and weights."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(400, 12))
    columns[:, 6:] = columns[:, :6] + rng.normal(scale=0.05, size=(400, 6))
    truth = (columns[:, 0] - 2 * columns[:, 1] + rng.normal(size=400) > 2.5).astype(float)
    return columns, truth, np.where(truth > 0, 1.0, 20.0)


def objective(at: np.ndarray, columns: np.ndarray, truth: np.ndarray, weights: np.ndarray, penalty: float) -> float:
    level = columns @ at[:-1] + at[-1]
    return float(weights @ (np.logaddexp(0, level) - truth * level) + penalty * np.abs(at).sum())


@pytest.mark.parametrize("penalty", [0.3, 3.0])
def test_the_objective_is_as_low_as_that_of_liblinear(penalty):
    columns, truth, weights = drawn()
    ours = lasso_logistic(columns, truth, weights, penalty, tolerance=1e-9)
    peer = LogisticRegression(C=1 / penalty, l1_ratio=1.0, solver="liblinear", tol=1e-8, max_iter=10_000)
    peer.fit(columns, truth, sample_weight=weights)
    theirs = np.append(peer.coef_[0], peer.intercept_)
    reached, best = (objective(at, columns, truth, weights, penalty) for at in (ours, theirs))
    assert reached == pytest.approx(best, rel=1e-5)


def test_a_penalty_above_every_slope_leaves_no_coefficient():
    columns, truth, weights = drawn()
    assert not lasso_logistic(columns, truth, weights, penalty=1e6)[:-1].any()
