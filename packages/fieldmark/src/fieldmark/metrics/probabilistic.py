"""Metrics of stated probabilities."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.checks import refuse_nan, refuse_negative
from fieldmark.metrics.classification import Codes, Values, mean_without_each_unit

Probabilities = NDArray[Any]
Renormalize = Literal["never", "before clipping", "after clipping"]

# Cells that are turned to float64 at a time.
BLOCK_CELLS = 4_000_000


def log_loss(truth: Codes, probability: Probabilities, *, eps: float, renormalize: Renormalize) -> float:
    """Multi-class logarithmic loss: the mean over items of -ln p(true class); lower is better.

    Two conventions change the number a lot and are seldom stated:

    Args:
        truth: The true class of each item.
        probability: One row per item, one column per class; not negative.
        eps: Probabilities are clipped to [eps, 1 - eps]; 0 leaves them alone, so that a true class with probability 0
            makes the loss infinite.
        renormalize: Whether each row is divided by its sum: "never" (recent scikit-learn, with eps the smallest step
            of the number type), "before clipping" (as Kaggle describes it), or "after clipping" (older scikit-learn).

    >>> truth, probability = np.array([0, 1]), np.array([[0.5, 0.3], [1.0, 0.0]])
    >>> [round(log_loss(truth, probability, eps=0.01, renormalize=rule), 3) for rule in ("never", "before clipping")]
    [2.649, 2.538]
    """
    return float(_losses(truth, probability, eps, renormalize).mean())


def log_loss_without_each_unit(
    truth: Codes, probability: Probabilities, unit: Codes, *, eps: float, renormalize: Renormalize
) -> Values:
    """The logarithmic loss with each unit left out in turn."""
    return mean_without_each_unit(_losses(truth, probability, eps, renormalize), unit)


def _losses(truth: Codes, probability: Probabilities, eps: float, renormalize: Renormalize) -> Values:
    if not 0 <= eps < 0.5:
        raise ValueError(f"eps is {eps}, expected a number from 0 up to 0.5")
    if renormalize not in ("never", "before clipping", "after clipping"):
        raise ValueError(f"renormalize={renormalize!r}, expected 'never', 'before clipping' or 'after clipping'")
    refuse_negative(truth)
    losses = np.empty(len(truth))
    per_block = max(BLOCK_CELLS // max(probability.shape[1], 1), 1)
    for first in range(0, len(truth), per_block):
        rows = slice(first, first + per_block)
        losses[rows] = _block_losses(truth[rows], probability[rows].astype(np.float64), eps, renormalize)
    return losses


def _block_losses(truth: Codes, probability: Values, eps: float, renormalize: Renormalize) -> Values:
    refuse_nan(probability, "the probabilities")
    if (probability < 0).any():
        raise ValueError("a probability is negative")
    if renormalize == "before clipping":
        probability = probability / _sums(probability)
    clipped = np.clip(probability, eps, 1 - eps) if eps > 0 else probability
    of_truth = clipped[np.arange(len(truth)), truth]
    if renormalize == "after clipping":
        of_truth = of_truth / _sums(clipped)[:, 0]
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(of_truth))


def _sums(probability: Values) -> Values:
    sums = probability.sum(axis=1, keepdims=True)
    if (sums == 0).any():
        raise ValueError("a row of probabilities sums to 0 and cannot be renormalized")
    return np.asarray(sums)
