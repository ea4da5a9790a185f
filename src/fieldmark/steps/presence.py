"""From scores to the probability that a label holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.base import Lesson, Step
from fieldmark.steps.multilabel import chances_of, logits_of, sigmoid


@dataclass(frozen=True)
class Presence(Step):
    """One logistic curve for all labels: sigmoid(slope * logit(score) + offset), of lowest log loss on val.

    Platt, "Probabilistic outputs for support vector machines" (1999), with his targets, which never quite reach 0 and
    1. The order of items for a label stays as it is; what changes is that a score of 0.8 is right in 8 of 10 cases.
    What scores exactly 0 was ruled out, teaches nothing and stays so.
    """

    slope: float = 1.0
    offset: float = 0.0
    name: ClassVar[str] = "presence"

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        chances = chances_of(val)
        possible = chances > 0
        logits, marks = logits_of(chances[possible]), lesson.marks[possible]
        present = int(marks.sum())
        if present in (0, len(marks)) or np.ptp(logits) == 0:
            return self  # nothing to tell apart
        target = np.where(marks, (present + 1) / (present + 2), 1 / (len(marks) - present + 2))
        slope, offset = _newton(logits, target)
        return replace(self, slope=max(slope, 1e-3), offset=offset)

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        chances = chances_of(predictions)
        present = np.where(chances > 0, sigmoid(self.slope * logits_of(chances) + self.offset), 0.0)
        return predictions.with_scores(present.astype(np.float32), "score")


def _newton(logits: NDArray[np.float64], target: NDArray[np.float64]) -> tuple[float, float]:
    """Slope and offset of lowest log loss, by Newton's method with halved steps where a whole one overshoots."""

    def loss(parameters: NDArray[np.float64]) -> float:
        line = parameters[0] * logits + parameters[1]
        return float((np.logaddexp(0, line) - target * line).mean())

    rate = float(target.mean())
    best = np.array([0.0, np.log(rate / (1 - rate))])
    value = loss(best)
    for _ in range(50):
        chance = sigmoid(best[0] * logits + best[1])
        gradient = np.array([((chance - target) * logits).mean(), (chance - target).mean()])
        weight = chance * (1 - chance)
        cross = (weight * logits).mean()
        curvature = np.array([[(weight * logits**2).mean(), cross], [cross, weight.mean()]]) + 1e-12 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        for share in 0.5 ** np.arange(12):
            tried = best - share * step
            if loss(tried) < value:
                break
        else:
            break
        gained, best, value = value - loss(tried), tried, loss(tried)
        if gained < 1e-10:
            break
    return float(best[0]), float(best[1])
