"""How strange an item looks by its logits alone, so that any classifier can be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.base import Step
from fieldmark.steps.strangeness import around_zero, energy, entropy, max_logit, max_softmax

SCORES: dict[str, Callable[[NDArray[Any]], NDArray[np.float64]]] = {
    "max-softmax": max_softmax,
    "max-logit": max_logit,
    "energy": energy,
    "entropy": entropy,
}
# Scores that differ between logits of the same probabilities.
OF_LOGITS = ("max-logit", "energy")


@dataclass(frozen=True)
class UnknownScore(Step):
    """Gives each item a score of strangeness from its logits (`fieldmark.steps.strangeness`), and decides nothing.

    Log-probabilities, which a temperature leaves behind, no longer tell what all logits of an item have in common:
    `max-logit` and `energy` take them to have mean zero, which those of softmax regression have. To read the logits
    as the network gave them, put this step first: a temperature after it leaves the score as it is.

    Args:
        score: `max-softmax`, `max-logit`, `energy` or `entropy`.
    """

    score: str = "energy"
    name: ClassVar[str] = "unknown-score"

    def __post_init__(self) -> None:
        if self.score not in SCORES:
            raise MisuseError(
                f"unknown-score has no score={self.score}: {did_you_mean(self.score, SCORES)} "
                "Scores that read features are those of --method openset."
            )

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        if predictions.scale == "score" or not predictions.dense:
            raise MisuseError(f"The step {self.name} reads logits or probabilities, and these scores only rank.")
        centered = predictions.scale == "log_probability" and self.score in OF_LOGITS
        scores = [np.zeros(0)]
        for block in predictions.blocks():
            scores.append(SCORES[self.score](around_zero(block.scores) if centered else block.scores))
        return replace(predictions, unknown=np.concatenate(scores).astype(np.float32))
