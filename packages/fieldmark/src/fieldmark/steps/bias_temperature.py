"""Temperature scaling with a bias for each label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import LearnsFrom
from fieldmark.runs.label_scores import LabelScores, log_softmax
from fieldmark.steps.base import Lesson, Step

# The biases have a normal prior of this spread, so that labels with few items on val keep what the method said.
BIAS_SPREAD = 1.0


@dataclass(frozen=True)
class BiasTemperature(Step):
    """Divides logits by one number and adds one bias per label, so that log loss on val is lowest.

    Alexandari et al., "Maximum likelihood with bias-corrected calibration is hard-to-beat at label shift adaptation"
    (2020). Biases also mend a method that favors common labels. They are penalized as if drawn from N(0, 1), and to the
    items of val one is added that could be anything, as for `temperature`.

    Args:
        temperature: Found by `fit`.
        biases: One per label, found by `fit`; none are no biases.
    """

    temperature: float = 1.0
    biases: tuple[float, ...] = ()
    name: ClassVar[str] = "bias-temperature"

    @property
    def learns_from(self) -> tuple[LearnsFrom, ...]:
        return ("val",)

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        if val.scale == "score" or (np.ptp(val.columns, axis=1) == 0).all():
            return self  # scores that only rank, or that say nothing, have no temperature
        from scipy.optimize import minimize  # takes long to import and is needed here alone

        logits = val.columns.astype(np.float64)
        n, n_labels = logits.shape
        target = np.full(logits.shape, 1 / (n + 1) / n_labels)
        target[np.arange(n), lesson.truth] += n / (n + 1)

        def loss_and_gradient(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            sharpness, biases = np.exp(parameters[0]), parameters[1:]
            log_probability = log_softmax(sharpness * logits + biases).astype(np.float64)
            apart = np.exp(log_probability) - target
            loss = -(target * log_probability).sum() + 0.5 * (biases**2).sum() / BIAS_SPREAD**2
            by_bias = apart.sum(axis=0) + biases / BIAS_SPREAD**2
            return float(loss), np.append(sharpness * (apart * logits).sum(), by_bias)

        optimum = minimize(
            loss_and_gradient, np.zeros(1 + n_labels), jac=True, method="L-BFGS-B", options={"maxiter": 500}
        ).x
        return replace(self, temperature=float(np.exp(-optimum[0])), biases=tuple(float(bias) for bias in optimum[1:]))

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        if predictions.scale == "score":
            return predictions
        logits = predictions.columns.astype(np.float64) / self.temperature
        if self.biases:
            logits = logits + np.array(self.biases)
        return predictions.with_columns(log_softmax(logits), "log_probability")
