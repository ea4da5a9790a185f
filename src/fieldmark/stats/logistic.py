"""Penalized logistic regression with few inputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
    found = np.zeros(inputs.shape[1])

    def loss(weights: Floats) -> float:
        z = inputs @ weights
        return float((np.logaddexp(0, z) - target * z).sum() + 0.5 * (penalty * weights**2).sum())

    for _ in range(100):
        probability = 1 / (1 + np.exp(-np.clip(inputs @ found, -500, 500)))
        gradient = inputs.T @ (probability - target) + penalty * found
        curvature = (inputs.T * (probability * (1 - probability))) @ inputs + np.diag(penalty + 1e-9)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-6 and loss(found - size * step) > loss(found):
            size /= 2
        found = found - size * step
        if float(np.abs(size * step).max()) < 1e-9:
            break
    return found[:-1], float(found[-1])
