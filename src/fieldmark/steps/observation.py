"""Photos of one observation show one specimen: their predictions are pooled, and each photo gets the common answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.runs.predictions import Predictions, log_softmax


@dataclass(frozen=True)
class ObservationMean:
    """The mean over the photos of an observation: of log-probabilities where the scores are, else of the scores."""

    name: ClassVar[str] = "observation-mean"

    def fit(self, val: Predictions, truth: NDArray[np.int32], items: pl.DataFrame) -> Self:
        return self

    def apply(self, predictions: Predictions, items: pl.DataFrame) -> Predictions:
        order, starts, observation = _groups(predictions, items)
        scores = predictions.scores if predictions.scale == "score" else log_softmax(predictions.scores)
        sums = np.add.reduceat(scores[order].astype(np.float64), starts, axis=0)
        counts = np.diff(starts, append=len(order))[:, None]
        return _shared(predictions, sums / counts, observation)


@dataclass(frozen=True)
class ObservationMax:
    """The highest score of each label over the photos of an observation: one telling photo is enough."""

    name: ClassVar[str] = "observation-max"

    def fit(self, val: Predictions, truth: NDArray[np.int32], items: pl.DataFrame) -> Self:
        return self

    def apply(self, predictions: Predictions, items: pl.DataFrame) -> Predictions:
        order, starts, observation = _groups(predictions, items)
        scores = predictions.scores if predictions.scale == "score" else log_softmax(predictions.scores)
        return _shared(predictions, np.maximum.reduceat(scores[order], starts, axis=0), observation)


def _groups(predictions: Predictions, items: pl.DataFrame) -> tuple[NDArray[np.int64], ...]:
    """The rows sorted by observation, where each observation starts, and the observation of each row."""
    if not predictions.dense:
        raise ValueError("only dense predictions can be pooled")
    names = dict(zip(items["item_id"], items["observation_id"], strict=True))
    observation = np.unique([names[item] for item in predictions.items], return_inverse=True)[1]
    order = np.argsort(observation, kind="stable")
    return order, np.flatnonzero(np.diff(observation[order], prepend=-1)), observation


def _shared(predictions: Predictions, pooled: NDArray[np.floating], observation: NDArray[np.int64]) -> Predictions:
    """The pooled scores handed to every photo of the observation, normalized where they are probabilities."""
    if predictions.scale == "score":
        return predictions.with_scores(pooled[observation].astype(np.float32), "score")
    return predictions.with_scores(log_softmax(pooled)[observation].astype(np.float32), "log_probability")
