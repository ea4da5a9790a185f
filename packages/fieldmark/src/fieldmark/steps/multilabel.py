"""LabelScores and truth where any number of labels may hold at once: one chance per item and label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit

from fieldmark.metrics.retrieval import cmap_dense
from fieldmark.runs.label_scores import LabelScores
from fieldmark.stats.logistic import platt
from fieldmark.steps.base import Lesson, Step

Chances = NDArray[np.float64]
Holds = NDArray[np.bool_]

# Chances of exactly 0 and 1 have no logit. Small ones still differ from each other; near 1, single precision ends.
SMALLEST, LARGEST = 1e-30, 1 - 1e-8
# So many pairs of item and label are plenty to find two numbers; of more, evenly spread items stand for all.
MOST_PAIRS = 8_000_000


def chances_of(predictions: LabelScores) -> Chances:
    """The chance of each label for each item, from 0 to 1; labels that a list does not name have 0."""
    if predictions.dense:
        return np.clip(predictions.chances().astype(np.float64), 0.0, 1.0)
    row, code, scores = predictions.pairs()
    listed = scores if predictions.scale == "score" else np.exp(np.minimum(scores, 0.0))
    chances = np.zeros((len(predictions.items), len(predictions.labels)))
    chances[row, code] = np.clip(listed, 0.0, 1.0)
    return chances


def with_chances(predictions: LabelScores, chances: Chances) -> LabelScores:
    """The same predictions with other chances, in the form that they have; a list keeps the labels that it names."""
    if predictions.dense:
        return predictions.with_scores(chances.astype(np.float32), "score")
    row, code, _ = predictions.pairs()
    return predictions.with_scores(chances[row, code].astype(np.float32), "score")


def enough_rows(items: int, labels: int) -> NDArray[np.int64]:
    """All items, or where they and the labels are too many pairs, evenly spread ones."""
    kept = min(items, max(MOST_PAIRS // max(labels, 1), 1))
    return np.arange(items) if kept == items else np.linspace(0, items - 1, kept).astype(np.int64)


def logits_of(chances: Chances) -> Chances:
    """The logarithm of the odds."""
    bounded = np.clip(chances, SMALLEST, LARGEST)
    return np.asarray(np.log(bounded) - np.log1p(-bounded))


def mean_average_precision(chances: Chances, holds: Holds) -> float:
    """The mean over labels that hold anywhere of their average precision; the order of equals does not matter."""
    item, label = np.nonzero(holds)
    return cmap_dense(chances, item.astype(np.int32), label.astype(np.int32), ties="expected")


@dataclass(frozen=True)
class PresenceCurve(Step):
    """One logistic curve for all labels: sigmoid(slope * logit(score) + offset), of lowest log loss on val.

    Fitted as Platt did (`stats.logistic.platt`). The order of items for a label stays as it is; what changes is that
    a score of 0.8 is right in 8 of 10 cases. A score of exactly 0 means ruled out: it is not learned from and stays 0.

    Args:
        slope: How steep the curve is, found on val.
        offset: How far it is shifted, found on val.
    """

    slope: float = 1.0
    offset: float = 0.0
    name: ClassVar[str] = "presence"
    takes_lists: ClassVar[bool] = True

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        rows = enough_rows(len(val.items), len(val.labels))
        chances = chances_of(val)[rows]
        possible = chances > 0
        logits, holds = logits_of(chances[possible]), lesson.holds[rows][possible]
        if holds.all() or not holds.any() or np.ptp(logits) == 0:
            return self  # nothing to tell apart
        slope, offset = platt(logits, holds)
        return replace(self, slope=max(slope, 1e-3), offset=offset)

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        chances = chances_of(predictions)
        present = np.where(chances > 0, expit(self.slope * logits_of(chances) + self.offset), 0.0)
        return with_chances(predictions, present)
