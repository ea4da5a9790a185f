"""From what a head says of unlabeled items to what they are taught as: thresholds, alignment, filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.semi.soft_heads import Matrix, SoftTargets

Thresholds = Literal["fixed", "softmatch", "freematch"]
SMALLEST = 1e-12


@dataclass(frozen=True)
class Guessing:
    """How guesses become labels.

    Args:
        threshold: How sure a head must be, for fixed thresholds.
        thresholds: "fixed"; "softmatch" (Chen et al. 2023: every guess counts, by a Gaussian around the mean
            confidence); "freematch" (Wang et al. 2023: the mean confidence, lower for classes that are seldom guessed).
        align: Whether guesses are scaled so that classes are as frequent as among the labels (distribution alignment,
            Berthelot et al. 2020).
        keep: The share of unlabeled items that is kept, those most like a class (by the highest logit); the others are
            taken to be out of class.
    """

    threshold: float = 0.95
    thresholds: Thresholds = "fixed"
    align: bool = False
    keep: float = 1.0

    def __post_init__(self) -> None:
        if self.thresholds not in ("fixed", "softmatch", "freematch"):
            raise MisuseError(f"thresholds={self.thresholds}: expected fixed, softmatch or freematch.")
        if not 0 <= self.threshold <= 1 or not 0 < self.keep <= 1:
            raise MisuseError("threshold lies from 0 to 1, and keep is more than 0 and at most 1.")

    def shares(self, guesses: Matrix, label_shares: Matrix, allowed: NDArray[np.bool_] | None) -> Matrix:
        """The guesses after alignment, with labels that are not allowed for an item ruled out."""
        if self.align:
            guesses = guesses * (label_shares / np.maximum(guesses.mean(axis=0), SMALLEST))
        if allowed is not None:
            # An item of a phylum that no label belongs to is surely out of class: nothing is allowed for it.
            guesses = np.asarray(guesses * allowed, dtype=np.float32)
        total = guesses.sum(axis=1, keepdims=True)
        return np.asarray(guesses / np.maximum(total, SMALLEST), dtype=np.float32)

    def weights(self, shares: Matrix, highest_logit: Matrix) -> Matrix:
        """How much each item counts."""
        sure, answer = shares.max(axis=1), shares.argmax(axis=1)
        if self.thresholds == "fixed":
            weights = (sure >= self.threshold).astype(np.float32)
        elif self.thresholds == "softmatch":
            mean, variance = float(sure.mean()), max(float(sure.var()), SMALLEST)
            weights = np.exp(-(np.minimum(sure - mean, 0.0) ** 2) / (2 * variance)).astype(np.float32)
        else:
            often = shares.mean(axis=0)
            weights = (sure >= sure.mean() * (often / max(float(often.max()), SMALLEST))[answer]).astype(np.float32)
        weights = weights * (shares.sum(axis=1) > 0.5)  # nothing is allowed for the others
        if self.keep < 1:
            weights = weights * (highest_logit >= np.quantile(highest_logit, 1 - self.keep))
        return np.asarray(weights, dtype=np.float32)


def hard(shares: Matrix) -> Matrix:
    """Every row as the one label that is most likely."""
    return np.asarray(np.eye(shares.shape[1], dtype=np.float32)[shares.argmax(axis=1)])


def taught_hard(shares: Matrix, weights: Matrix) -> SoftTargets:
    """Items taught as their most likely label."""
    return SoftTargets(hard(shares), weights)
