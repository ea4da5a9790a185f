"""The plainest sign of the unknown: no class is likely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import polars as pl
from numpy.typing import NDArray

from fieldmark.runs.predictions import Predictions
from fieldmark.steps.unknown_score import UnknownScore


@dataclass(frozen=True)
class MaxSoftmax:
    """Calls an item the stranger, the lower the probability of its likeliest class.

    Hendrycks and Gimpel, "A baseline for detecting misclassified and out-of-distribution examples" (2017). It scores
    strangeness and decides nothing: the answers stay as they are. The same as `unknown-score:score=max-softmax`.
    """

    name: ClassVar[str] = "max-softmax"

    def fit(self, val: Predictions, truth: NDArray[Any], items: pl.DataFrame) -> Self:
        return self

    def apply(self, predictions: Predictions, items: pl.DataFrame) -> Predictions:
        return UnknownScore(self.name).apply(predictions, items)
