"""One covariance for all classes, shrunk towards a ball, and what follows from it for a mean per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark.runs.label_scores import log_softmax
from fieldmark.work.large_arrays import principal_squares, row_blocks

Matrix = NDArray[np.float64]
Deviations = Callable[[slice], Matrix]

SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 0.99)


@dataclass(frozen=True)
class Covariance:
    """The covariance S of deviations from class means, by its axes; they give the inverse for any shrinkage.

    Args:
        axes: One row per axis along which there is any spread.
        spectrum: The variance along each.
        average: tr(S) / d.
    """

    axes: Matrix
    spectrum: NDArray[np.float64]
    average: float

    @classmethod
    def of(cls, deviations: Deviations, shape: tuple[int, int], freedom: int) -> Covariance:
        """The covariance of deviations with so many degrees of freedom.

        Args:
            deviations: Those of some rows, asked for block by block, so that all of them need not fit into memory.
            shape: How many rows and columns there are.
            freedom: The degrees of freedom.
        """
        rows, width = shape
        squares, axes = principal_squares(deviations, rows, width)
        spectrum = squares / max(freedom, 1)
        return cls(axes.T, spectrum, max(float(spectrum.sum()) / width, 1e-12))

    def discriminants(self, means: Matrix, shrinkage: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Weights and bias of x' A m - m' A m / 2, with A the inverse of (1 - shrinkage) S + shrinkage tr(S) / d I."""
        floor = shrinkage * self.average
        # (S + floor I)^-1 applied to the means, with S of low rank.
        gain = 1 / ((1 - shrinkage) * self.spectrum + floor) - 1 / floor
        weights = means / floor + (means @ self.axes.T * gain) @ self.axes
        bias = -0.5 * (weights * means).sum(axis=1)
        return weights.astype(np.float32), bias.astype(np.float32)

    def cosine_discriminants(self, means: Matrix, shrinkage: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Weights and bias of the cosine to each mean, seen from the mean of them all, in the whitened space.

        The length of the item itself is left out: it raises or lowers all labels alike, up to a temperature.
        """
        center = means.mean(axis=0)
        apart = means - center
        weights, _ = self.discriminants(apart, shrinkage)
        lengths = np.sqrt(np.maximum((weights * apart).sum(axis=1, keepdims=True), 1e-12))
        weights = (weights / lengths).astype(np.float32)
        return weights, -(weights @ center).astype(np.float32)

    def whitened(self, features: NDArray[np.floating], shrinkage: float) -> Matrix:
        """Features in the coordinates in which that covariance is a ball of radius one."""
        floor = shrinkage * self.average
        gain = 1 / np.sqrt((1 - shrinkage) * self.spectrum + floor) - 1 / np.sqrt(floor)
        return np.asarray(features / np.sqrt(floor) + (features @ self.axes.T * gain) @ self.axes)


def loss_on_val(logits: NDArray[np.floating], truth: NDArray[np.int32]) -> float:
    """The log loss of logits brought to one spread: confidence is set right by a temperature later, not judged here."""
    spread = max(float(logits.std()), 1e-12)
    of_truth = np.empty(len(truth), dtype=np.result_type(logits, np.float32))
    for block in row_blocks(logits):
        shares = log_softmax(4 * logits[block] / spread)
        of_truth[block] = shares[np.arange(len(shares)), truth[block]]
    return -float(of_truth.mean())
