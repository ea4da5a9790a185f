"""Temperature scaling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.runs.predictions import Predictions, log_softmax

# 1 / temperature is sought between these; beyond them the scores carry no information worth sharpening.
SMALLEST, LARGEST = 1e-3, 1e4


@dataclass(frozen=True)
class Temperature:
    """Divides logits by one number so that confidence on val is neither too high nor too low.

    Guo et al., "On calibration of modern neural networks" (2017). The temperature minimizes the log loss on val, which
    is convex in 1 / temperature, so bisection of its slope finds the minimum. The ranking of labels stays as it is.

    To the n items of val one is added that could be anything: the share 1 / (n + 1) of each target is spread over all
    labels. Without it, a val without a single error would ask for infinite confidence.
    """

    temperature: float = 1.0
    name: ClassVar[str] = "temperature"

    def fit(self, val: Predictions, truth: NDArray[Any], items: pl.DataFrame) -> Self:
        if truth.ndim == 2:
            raise MisuseError("A temperature is for one label per item; where several may hold, take --step presence.")
        if val.scale == "score" or (np.ptp(val.scores, axis=1) == 0).all():
            return self  # scores that only rank, or that say nothing, have no temperature
        return replace(self, temperature=best_temperature(val.scores, truth, np.ones(len(truth))))

    def apply(self, predictions: Predictions, items: pl.DataFrame) -> Predictions:
        if predictions.scale == "score":
            return predictions
        scores = log_softmax(predictions.scores.astype(np.float64) / self.temperature)
        return predictions.with_scores(scores.astype(np.float32), "log_probability")


def best_temperature(scores: NDArray[np.float32], truth: NDArray[np.int32], weight: NDArray[np.float64]) -> float:
    """The temperature of lowest log loss, by bisection of its slope; each item counts by its weight.

    With logits z centered on the true label, the slope of the loss in b = 1 / temperature is the sum over items of
    weight * sum_c (softmax(b z)_c - spread) z_c, which grows with b.
    """
    rows = np.arange(len(truth))
    centered = scores.astype(np.float64) - scores[rows, truth].astype(np.float64)[:, None]
    spread = 1 / (weight.sum() + 1) / scores.shape[1]
    low, high = np.log(SMALLEST), np.log(LARGEST)
    for _ in range(60):
        middle = (low + high) / 2
        probability = np.exp(log_softmax(np.exp(middle) * centered))
        if (weight[:, None] * (probability - spread) * centered).sum() > 0:
            high = middle
        else:
            low = middle
    return float(np.exp(-(low + high) / 2))
