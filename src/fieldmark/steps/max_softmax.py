"""The plainest sign of the unknown: no class is likely."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import polars as pl
from numpy.typing import NDArray

from fieldmark.runs.predictions import Predictions


@dataclass(frozen=True)
class MaxSoftmax:
    """Calls an item the stranger, the lower the probability of its likeliest class.

    Hendrycks and Gimpel, "A baseline for detecting misclassified and out-of-distribution examples" (2017). It scores
    strangeness and decides nothing: the answers stay as they are.
    """

    name: ClassVar[str] = "max-softmax"

    def fit(self, val: Predictions, truth: NDArray[Any], items: pl.DataFrame) -> Self:
        return self

    def apply(self, predictions: Predictions, items: pl.DataFrame) -> Predictions:
        return replace(predictions, unknown=1 - predictions.probabilities().max(axis=1))
