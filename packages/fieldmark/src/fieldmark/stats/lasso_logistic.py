"""Logistic regression with an L1 penalty, for many rows and a few hundred columns that resemble each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]

STEPS, PASSES, HALVINGS = 200, 100, 20


def lasso_logistic(
    columns: Floats, truth: Floats, weights: Floats, penalty: float = 1.0, tolerance: float = 1e-5
) -> Floats:
    """Coefficients of lowest weighted log loss plus `penalty` times the sum of their absolute values, intercept last.

    Newton's method on the columns that have a coefficient or ask for one, coordinate descent within each step (Yuan, Ho
    and Lin, "An improved GLMNET for L1-regularized logistic regression", 2012). The intercept is penalized like any
    other coefficient, as liblinear does, and starts at the log-odds of the truth. What it costs grows with the square
    of the columns that matter, not of all.

    Args:
        columns: One row per example.
        truth: 1 or 0 for each.
        weights: What each counts.
        penalty: What coefficients cost.
        tolerance: It stops when a step lowers the objective by less than this share of it.

    >>> lasso_logistic(np.array([[1.0, 0.1], [-1.0, 0.2]] * 50), np.array([1.0, 0.0] * 50), np.ones(100)).round(2)
    array([4.6, 0. , 0. ])
    """
    columns = np.column_stack([columns, np.ones(len(columns))])
    at = np.zeros(columns.shape[1])
    at[-1] = np.log((weights @ truth) / (weights @ (1 - truth)))
    level = np.full(len(columns), at[-1])
    now = _loss(level, truth, weights) + penalty * abs(at[-1])
    for _ in range(STEPS):
        chance = expit(level)
        slope = columns.T @ (weights * (chance - truth))
        asking = np.flatnonzero((at != 0) | (np.abs(slope) > penalty))
        if not len(asking):
            break
        own = columns[:, asking]
        curve = (own * (weights * np.maximum(chance * (1 - chance), 1e-12))[:, None]).T @ own
        step = _descended(curve, slope[asking], at[asking], penalty) - at[asking]
        moved = own @ step
        before, scale = now, 1.0
        for _ in range(HALVINGS):
            tried = at.copy()
            tried[asking] += scale * step
            now = _loss(level + scale * moved, truth, weights) + penalty * float(np.abs(tried).sum())
            if now <= before:
                break
            scale /= 2
        else:
            break
        at, level = tried, level + scale * moved
        if before - now < tolerance * abs(now):
            break
    return at


def _loss(level: Floats, truth: Floats, weights: Floats) -> float:
    return float(weights @ (np.logaddexp(0, level) - truth * level))


def _descended(curve: Floats, slope: Floats, start: Floats, penalty: float) -> Floats:
    """Where the quadratic with this slope and curve at `start`, plus the penalty, is lowest: coordinate descent."""
    at, rest = start.copy(), slope.copy()
    diagonal = np.maximum(np.diag(curve), 1e-10)
    first = 0.0
    for number in range(PASSES):
        largest = 0.0
        for one in range(len(at)):
            wanted = diagonal[one] * at[one] - rest[one]
            new = np.sign(wanted) * max(abs(wanted) - penalty, 0.0) / diagonal[one]
            change = new - at[one]
            if change:
                rest += curve[one] * change
                at[one] = new
                largest = max(largest, diagonal[one] * change * change)
        first = largest if number == 0 else first
        if largest <= 1e-6 * first:
            break
    return at
