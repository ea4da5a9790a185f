"""Temperature scaling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Task
from fieldmark.errors import MisuseError
from fieldmark.runs.label_scores import LabelScores, log_softmax
from fieldmark.steps.base import Lesson, Step

# 1 / temperature is sought between these; beyond them the scores carry no information worth sharpening.
SMALLEST, LARGEST = 1e-3, 1e4
# How closely the temperature is found, relative to itself.
PRECISION = 1e-7
# Items whose logits are held in double precision, or copied, at once.
BLOCK_ITEMS = 1024


@dataclass(frozen=True)
class Temperature(Step):
    """Divides logits by one number so that confidence on val is neither too high nor too low.

    Guo et al., "On calibration of modern neural networks" (2017). The temperature minimizes the log loss on val, which
    is convex in 1 / temperature, so that Newton's steps on its slope, kept within bounds, find the minimum. The ranking
    of labels stays as it is.

    To the n items of val one is added that could be anything: the share 1 / (n + 1) of each target is spread over all
    labels. Without it, a val without a single error would ask for infinite confidence.

    Args:
        temperature: What logits are divided by, found on val.
    """

    temperature: float = 1.0
    name: ClassVar[str] = "temperature"
    takes_lists: ClassVar[bool] = True  # and leaves them as they are

    def check(self, task: Task) -> None:
        if task.answer.several:
            raise MisuseError("A temperature is for one label per item; where several may hold, take --step presence.")

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        return replace(self, temperature=best_temperature(val, lesson.truth))

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        if predictions.scale == "score" or not predictions.dense:
            return predictions
        temperature = np.full(len(predictions.items), self.temperature)
        return predictions.with_columns(scaled(predictions.columns, temperature), "log_probability")


def best_temperature(val: LabelScores, truth: NDArray[np.int32]) -> float:
    """The temperature of lowest log loss; 1 for scores that only rank, or say nothing, and for lists of some labels."""
    if val.scale == "score" or not val.dense or (np.ptp(val.columns, axis=1) == 0).all():
        return 1.0
    return LogLoss(val.columns, truth).best_temperature(np.ones(len(truth)))


class LogLoss:
    """The log loss on val as a function of b = 1 / temperature, a block of items at a time.

    With logits z, the slope in b is the sum over items of weight * (sum_c softmax(b z)_c z_c - z_true), and a little
    for the item that could be anything; it grows with b, by the variance of z under softmax(b z). Exponentials are
    taken in single precision, sums over items in double.
    """

    def __init__(self, scores: NDArray[Any], truth: NDArray[np.int32]) -> None:
        self._scores = scores
        self._highest = scores.max(axis=1, keepdims=True)
        rows = np.arange(len(truth))
        self._true = scores[rows, truth].astype(np.float64) - self._highest[:, 0]
        self._mean = scores.mean(axis=1, dtype=np.float64) - self._highest[:, 0]

    def best_temperature(self, weight: NDArray[np.float64], start: float = 1.0) -> float:
        """The temperature of lowest loss where each item counts by its weight; `start` is where to look first."""
        rows = np.flatnonzero(weight)
        low, high, sharpness, before = SMALLEST, LARGEST, 1 / start, np.inf
        while high / low > 1 + PRECISION:
            slope, curvature = self._slope(sharpness, weight, rows)
            if slope > 0:
                high = sharpness
            else:
                low = sharpness
            following = sharpness - slope / curvature if curvature > 0 else 0.0
            if not low < following < high or abs(slope) > before / 2:
                following = float(np.sqrt(low * high))  # Newton's step leads out or gains little: halve what is left
            elif abs(following / sharpness - 1) < PRECISION:
                return 1 / following
            sharpness, before = following, abs(slope)
        return float(1 / np.sqrt(low * high))

    def _slope(self, sharpness: float, weight: NDArray[np.float64], rows: NDArray[np.int64]) -> tuple[float, float]:
        """The slope of the loss, and its curvature."""
        anything = 1 / (weight.sum() + 1)
        slope = curvature = 0.0
        for first in range(0, len(rows), BLOCK_ITEMS):
            block = rows[first : first + BLOCK_ITEMS]
            logits = self._scores[block] - self._highest[block]
            share = np.exp(np.float32(sharpness) * logits)
            total = share.sum(axis=1, dtype=np.float64)
            share *= logits
            mean = share.sum(axis=1, dtype=np.float64) / total
            share *= logits
            squared = share.sum(axis=1, dtype=np.float64) / total
            true, average = self._true[block], self._mean[block]
            slope += float(weight[block] @ (mean - true - anything * (average - true)))
            curvature += float(weight[block] @ np.maximum(squared - mean**2, 0))
        return slope, curvature


def scaled(scores: NDArray[Any], temperature: NDArray[np.float64]) -> NDArray[Any]:
    """The log-probabilities of logits divided by the temperature of each item."""
    made = np.empty_like(scores)
    for start in range(0, len(scores), BLOCK_ITEMS):
        rows = slice(start, start + BLOCK_ITEMS)
        made[rows] = log_softmax(scores[rows].astype(np.float64) / temperature[rows, None])
    return made
