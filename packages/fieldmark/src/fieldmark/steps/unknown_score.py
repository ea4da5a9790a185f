"""How strange an item looks by its logits alone, so that any classifier can be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.runs.label_scores import LabelScores
from fieldmark.settings import setting
from fieldmark.steps.base import Step
from fieldmark.steps.novelty import around_zero, energy, entropy, max_logit, max_softmax

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
    """Gives each item a novelty score from its logits (`fieldmark.steps.novelty`), and decides nothing.

    Log-probabilities, which a temperature leaves behind, no longer tell what all logits of an item have in common:
    `max-logit` and `energy` take them to have mean zero, which those of softmax regression have. To read the logits
    as the network gave them, put this step first: a temperature after it leaves the score as it is.

    Args:
        score: `max-softmax`, `max-logit`, `energy` or `entropy`; --method openset has scores that read features.
    """

    score: str = setting("energy", choices=tuple(SCORES))
    name: ClassVar[str] = "unknown-score"

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        if predictions.scale == "score" or not predictions.dense:
            raise MisuseError(f"The step {self.name} reads logits or probabilities, and these scores only rank.")
        centered = predictions.scale == "log_probability" and self.score in OF_LOGITS
        scores = [np.zeros(0)]
        for block in predictions.blocks():
            scores.append(SCORES[self.score](around_zero(block.scores) if centered else block.scores))
        return replace(predictions, unknown=np.concatenate(scores).astype(np.float32))


@dataclass(frozen=True)
class MaxSoftmax(Step):
    """Scores an item as unknown by how low the probability of its likeliest class is.

    Hendrycks and Gimpel, "A baseline for detecting misclassified and out-of-distribution examples" (2017). It scores
    strangeness and decides nothing: the answers stay as they are. The same as `unknown-score:score=max-softmax`.
    """

    name: ClassVar[str] = "max-softmax"

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        return UnknownScore(self.name).apply(predictions, items)
