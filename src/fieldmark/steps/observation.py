"""Photos of one observation show one specimen: their predictions are pooled, and each photo gets the common answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Sees
from fieldmark.runs.label_scores import LabelScores, log_softmax
from fieldmark.steps.base import Step

Photos = NDArray[np.floating]  # one row per photo, photos of an observation together
Pool = Callable[[Photos, NDArray[np.int64]], NDArray[Any]]


@dataclass(frozen=True)
class ObservationMean(Step):
    """The mean over the photos of an observation: of log-probabilities where the scores are, else of the scores."""

    name: ClassVar[str] = "observation-mean"
    sees: ClassVar[Sees] = "unit"

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        return _pooled(predictions, items, lambda photos, starts: _sums(photos, starts) / _counts(photos, starts))


@dataclass(frozen=True)
class ObservationMax(Step):
    """The highest score of each label over the photos of an observation: one clear photo is enough."""

    name: ClassVar[str] = "observation-max"
    sees: ClassVar[Sees] = "unit"

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        return _pooled(predictions, items, lambda photos, starts: np.maximum.reduceat(photos, starts, axis=0))


def _pooled(predictions: LabelScores, items: pl.DataFrame, pool: Pool) -> LabelScores:
    """Hands every photo the pooled scores of its observation, normalized where they are probabilities."""
    names = dict(zip(items["item_id"], items["observation_id"], strict=True))
    observation = np.unique([names[item] for item in predictions.items], return_inverse=True)[1]
    order = np.argsort(observation, kind="stable")
    starts = np.flatnonzero(np.diff(observation[order], prepend=-1))
    if predictions.scale == "score":
        return predictions.with_columns(pool(predictions.columns[order], starts)[observation], "score")
    pooled = log_softmax(pool(log_softmax(predictions.columns)[order], starts))
    return predictions.with_columns(pooled[observation], "log_probability")


def _sums(photos: Photos, starts: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.add.reduceat(photos.astype(np.float64), starts, axis=0)


def _counts(photos: Photos, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.diff(starts, append=len(photos))[:, None]
