"""Steps that shift the logits of labels by what the context says, times one weight."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.special import expit

from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.multilabel import Holds, chances_of, logits_of, mean_average_precision
from fieldmark.steps.priors.base import ContextStep, Logs, in_order
from fieldmark.steps.priors.combination import shifted

WEIGHTS = (0.0, 0.25, 0.5, 1.0)


class WeightedShift(ContextStep):
    """A step that adds `weight` times its `log_shift` to the logits of the labels, several of which may hold."""

    weight: float

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        chances = chances_of(predictions)
        if self.weight:
            shift = self.log_shift(in_order(items, predictions), predictions.labels)
            chances = shifted(chances, self.weight * shift)
        return predictions.with_scores(chances.astype(np.float32), "score")


def best_weight(val: LabelScores, shift: Logs, holds: Holds) -> float:
    """The weight that gives val the highest mean average precision, 0 among them; the lowest of equal ones."""
    logits = logits_of(chances_of(val))
    values = [mean_average_precision(expit(logits + weight * shift), holds) for weight in WEIGHTS]
    return WEIGHTS[int(np.argmax(np.nan_to_num(values)))]
