"""Logistic regression with few inputs, and Platt's curve of one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Floats = NDArray[np.float64]


def logistic(table: Floats, target: Floats, *, ridge: float) -> tuple[Floats, float]:
    """Weights and intercept that minimize sum log(1 + exp(-+ z)) + ridge / 2 |w|^2 by damped Newton steps.

    Args:
        table: One row per item, one column per input.
        target: From 0 to 1.
        ridge: The strength of the penalty; the intercept is not penalized.
    """
    inputs = np.column_stack([table, np.ones(len(table))])
    penalty = np.append(np.full(table.shape[1], ridge), 0.0)
    weights = np.zeros(inputs.shape[1])

    def loss(tried: Floats) -> float:
        z = inputs @ tried
        return float((np.logaddexp(0, z) - target * z).sum() + 0.5 * (penalty * tried**2).sum())

    for _ in range(100):
        probability = expit(inputs @ weights)
        gradient = inputs.T @ (probability - target) + penalty * weights
        curvature = (inputs.T * (probability * (1 - probability))) @ inputs + np.diag(penalty + 1e-9)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-6 and loss(weights - size * step) > loss(weights):
            size /= 2
        weights = weights - size * step
        if float(np.abs(size * step).max()) < 1e-9:
            break
    return weights[:-1], float(weights[-1])


def platt(scores: Floats, holds: NDArray[np.bool_], *, ridge: float = 0.0) -> tuple[float, float]:
    """Slope and offset of the curve 1 / (1 + exp(-(slope s + offset))) of lowest log loss.

    Platt, "Probabilistic outputs for support vector machines" (1999), with his targets, which are drawn a little
    towards the middle: a clean cut among these items is no certainty. Where all scores are equal, the slope is 0.

    Args:
        scores: One per item.
        holds: What the curve gives the probability of; true for some items and false for others.
        ridge: The strength of a penalty on the slope, for scores of unit variance.
    """
    if np.ptp(scores) == 0:
        return 0.0, float(logit(holds.mean()))
    n_true, n_false = int(holds.sum()), int((~holds).sum())
    target = np.where(holds, (n_true + 1) / (n_true + 2), 1 / (n_false + 2))
    center, spread = float(scores.mean()), max(float(scores.std()), 1e-12)
    weights, intercept = logistic(((scores - center) / spread)[:, None], target, ridge=ridge)
    slope = float(weights[0]) / spread
    return slope, intercept - slope * center
