"""The novelty score as a probability of "unknown", beside those of the labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit

from fieldmark.runs.label_scores import LabelScores, log_softmax
from fieldmark.stats.logistic import platt
from fieldmark.steps.base import Lesson, Step


@dataclass(frozen=True)
class UnknownProbability(Step):
    """P(unknown | s) = 1 / (1 + exp(-(slope s + offset))), fitted on val; P(label) is scaled by what is left.

    Fitted as Platt did (`stats.logistic.platt`). How common unknown items are is learned from val; where val has none,
    nothing is taken for unknown.

    Args:
        slope: How fast the probability rises with strangeness, found on val.
        offset: Where it starts, found on val; empty where val has no unknown items.
    """

    slope: float = 0.0
    offset: float | None = None
    name: ClassVar[str] = "unknown-probability"
    learns_from_unknown: ClassVar[bool] = True

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        score, strange = strangeness_of(val), lesson.targets.unknown
        if not strange.any() or strange.all():
            return replace(self, slope=0.0, offset=None)
        slope, offset = platt(score, strange, ridge=1e-3)
        return replace(self, slope=slope, offset=offset)

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        if self.offset is None:
            return predictions
        strange = expit(self.slope * strangeness_of(predictions) + self.offset)
        strange = np.clip(strange, 1e-9, 1 - 1e-9)
        known = log_softmax(predictions.scores.astype(np.float64)) + np.log(1 - strange)[:, None]
        return predictions.with_scores(known, "log_probability", unknown_label=np.log(strange))


def strangeness_of(predictions: LabelScores) -> NDArray[np.float64]:
    """The unknown score of each item; without one there is nothing to draw a line through."""
    if predictions.unknown is None:
        raise ValueError("these predictions have no novelty score: add the step max-softmax before")
    return predictions.unknown.astype(np.float64)
