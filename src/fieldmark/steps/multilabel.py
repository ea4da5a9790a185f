"""LabelScores and truth where any number of labels may hold at once: one chance per item and label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.retrieval import cmap_dense
from fieldmark.runs.label_scores import LabelScores

Chances = NDArray[np.float64]
Holds = NDArray[np.bool_]

# Chances of exactly 0 and 1 have no logit. Small ones still differ from each other; near 1, single precision ends.
SMALLEST, LARGEST = 1e-30, 1 - 1e-8


def chances_of(predictions: LabelScores) -> Chances:
    """The chance of each label for each item, from 0 to 1."""
    return np.clip(predictions.chances().astype(np.float64), 0.0, 1.0)


def logits_of(chances: Chances) -> Chances:
    """The logarithm of the odds."""
    bounded = np.clip(chances, SMALLEST, LARGEST)
    return np.asarray(np.log(bounded) - np.log1p(-bounded))


def mean_average_precision(chances: Chances, holds: Holds) -> float:
    """The mean over labels that hold anywhere of their average precision; the order of equals does not matter."""
    item, label = np.nonzero(holds)
    return cmap_dense(chances, item.astype(np.int32), label.astype(np.int32), ties="expected")
