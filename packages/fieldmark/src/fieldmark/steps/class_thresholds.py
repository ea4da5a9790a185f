"""From which score on a label counts as heard, label by label."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import polars as pl

from fieldmark.benchmarks.declarations import LearnsFrom
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.base import Lesson, Step
from fieldmark.steps.multilabel import Chances, Holds, chances_of

# A label with fewer true items on val takes the threshold that all of them share.
FEWEST = 10


@dataclass(frozen=True)
class ClassThresholds(Step):
    """Scores below the threshold of their label become 0, and are no longer listed.

    The threshold of a label is the one of highest F1 on val; labels that val hardly has share the one of highest F1
    over all pairs. It is made for lists that people read: average precision only loses by shorter lists.

    Args:
        shared: The threshold of labels without one of their own.
        own: Thresholds by label.
    """

    shared: float = 0.0
    own: dict[str, float] = field(default_factory=dict)
    name: ClassVar[str] = "class-thresholds"

    @property
    def learns_from(self) -> tuple[LearnsFrom, ...]:
        return ("val",)

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        chances, holds = chances_of(val), lesson.holds
        frequent = np.flatnonzero(holds.sum(axis=0) >= FEWEST)
        own = {val.labels.names[code]: best_threshold(chances[:, code], holds[:, code]) for code in frequent}
        return replace(self, shared=best_threshold(chances.ravel(), holds.ravel()), own=own)

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        chances = chances_of(predictions)
        kept = np.where(chances >= self.thresholds(predictions.labels.names), chances, 0.0)
        return predictions.with_scores(kept.astype(np.float32), "score")

    def thresholds(self, labels: tuple[str, ...]) -> Chances:
        """The threshold of each label, a hair lower, so that single precision does not decide."""
        return np.array([self.own.get(name, self.shared) for name in labels]) * (1 - 1e-6)


def best_threshold(chances: Chances, holds: Holds) -> float:
    """The score from which on "yes" has the highest F1; the highest one of several, 0 where nothing is true.

    >>> best_threshold(np.array([0.9, 0.8, 0.7, 0.1]), np.array([True, False, True, False]))
    0.7
    """
    present = int(holds.sum())
    if present == 0:
        return 0.0
    order = np.argsort(-chances, kind="stable")
    hits = np.cumsum(holds[order])
    scores = chances[order]
    last_of_equals = np.append(scores[1:] != scores[:-1], True)
    f1 = np.where(last_of_equals, 2 * hits / (np.arange(1, len(scores) + 1) + present), -1.0)
    return float(scores[int(f1.argmax())])
