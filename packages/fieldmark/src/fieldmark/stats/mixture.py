"""Weights of a mixture of predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDS = 200


def mixture_weights(chance: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """The mixture of lowest log loss, by expectation and maximization, which cannot leave the simplex.

    Args:
        chance: The probability that each member gives what happened: members x outcomes.

    >>> mixture_weights(np.array([[0.9, 0.9, 0.1], [0.1, 0.1, 0.2]])).round(2).tolist()
    [1.0, 0.0]
    """
    weights, likely = np.full(len(chance), 1 / len(chance)), np.maximum(chance.astype(np.float64), 1e-300)
    for _ in range(ROUNDS):
        shares = weights[:, None] * likely
        weights = (shares / shares.sum(axis=0)).mean(axis=1)
    return weights
