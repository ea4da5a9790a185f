"""Photos of one observation show one specimen: their predictions are pooled, and each photo gets the common answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.runs.predictions import Predictions, log_softmax

Photos = NDArray[np.floating]  # one row per photo, photos of an observation together
Pool = Callable[[Photos, NDArray[np.int64]], NDArray[Any]]


@dataclass(frozen=True)
class ObservationMean:
    """The mean over the photos of an observation: of log-probabilities where the scores are, else of the scores."""

    name: ClassVar[str] = "observation-mean"

    def fit(self, val: Predictions, truth: NDArray[Any], items: pl.DataFrame) -> Self:
        return self

    def apply(self, predictions: Predictions, items: pl.DataFrame) -> Predictions:
        return _pooled(predictions, items, lambda photos, starts: _sums(photos, starts) / _counts(photos, starts))


@dataclass(frozen=True)
class ObservationMax:
    """The highest score of each label over the photos of an observation: one telling photo is enough."""

    name: ClassVar[str] = "observation-max"

    def fit(self, val: Predictions, truth: NDArray[Any], items: pl.DataFrame) -> Self:
        return self

    def apply(self, predictions: Predictions, items: pl.DataFrame) -> Predictions:
        return _pooled(predictions, items, lambda photos, starts: np.maximum.reduceat(photos, starts, axis=0))


def _pooled(predictions: Predictions, items: pl.DataFrame, pool: Pool) -> Predictions:
    """Hands every photo the pooled scores of its observation, normalized where they are probabilities."""
    if not predictions.dense:
        raise ValueError("only dense predictions can be pooled")
    names = dict(zip(items["item_id"], items["observation_id"], strict=True))
    observation = np.unique([names[item] for item in predictions.items], return_inverse=True)[1]
    order = np.argsort(observation, kind="stable")
    starts = np.flatnonzero(np.diff(observation[order], prepend=-1))
    if predictions.scale == "score":
        return predictions.with_scores(pool(predictions.scores[order], starts)[observation], "score")
    pooled = log_softmax(pool(log_softmax(predictions.scores)[order], starts))
    return predictions.with_scores(pooled[observation], "log_probability")


def _sums(photos: Photos, starts: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.add.reduceat(photos.astype(np.float64), starts, axis=0)


def _counts(photos: Photos, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.diff(starts, append=len(photos))[:, None]
