"""The plainest sign of the unknown: no class is likely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.base import Step
from fieldmark.steps.unknown_score import UnknownScore


@dataclass(frozen=True)
class MaxSoftmax(Step):
    """Scores an item as unknown by how low the probability of its likeliest class is.

    Hendrycks and Gimpel, "A baseline for detecting misclassified and out-of-distribution examples" (2017). It scores
    strangeness and decides nothing: the answers stay as they are. The same as `unknown-score:score=max-softmax`.
    """

    name: ClassVar[str] = "max-softmax"

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        return UnknownScore(self.name).apply(predictions, items)
