"""The score of strangeness as a probability of "unknown", beside those of the labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit, logit

from fieldmark.runs.label_scores import LabelScores, log_softmax
from fieldmark.stats.logistic import logistic
from fieldmark.steps.base import Lesson, Step


@dataclass(frozen=True)
class UnknownProbability(Step):
    """P(unknown | s) = 1 / (1 + exp(-(slope s + offset))), fitted on val; P(label) is scaled by what is left.

    Platt, "Probabilistic outputs for support vector machines" (1999), with his smoothed targets. How common unknown
    items are is learned from val; where val has none, nothing is taken for unknown.
    """

    slope: float = 0.0
    offset: float | None = None
    name: ClassVar[str] = "unknown-probability"
    learns_from_unknown: ClassVar[bool] = True

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        score, strange = strangeness_of(val), lesson.targets.unknown
        if not strange.any() or strange.all():
            return replace(self, slope=0.0, offset=None)
        # Platt's targets, drawn a little towards the middle: a clean cut on val is no certainty.
        target = np.where(strange, (strange.sum() + 1) / (strange.sum() + 2), 1 / ((~strange).sum() + 2))
        center, spread = float(score.mean()), max(float(score.std()), 1e-12)
        if np.ptp(score) == 0:
            return replace(self, slope=0.0, offset=float(logit(strange.mean())))
        weights, intercept = logistic(((score - center) / spread)[:, None], target, ridge=1e-3)
        slope = float(weights[0]) / spread
        return replace(self, slope=slope, offset=intercept - slope * center)

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
        raise ValueError("these predictions do not say how strange an item is: add the step max-softmax before")
    return predictions.unknown.astype(np.float64)
