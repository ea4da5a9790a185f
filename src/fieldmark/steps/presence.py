"""From scores to the probability that a label holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import polars as pl
from scipy.special import expit

from fieldmark.runs.label_scores import LabelScores
from fieldmark.stats.logistic import platt
from fieldmark.steps.base import Lesson, Step
from fieldmark.steps.multilabel import chances_of, enough_rows, logits_of, with_chances


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
