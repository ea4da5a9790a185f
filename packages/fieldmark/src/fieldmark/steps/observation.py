"""Photos of one observation show one specimen: their predictions are pooled, and each photo gets the common answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Sees
from fieldmark.errors import MisuseError
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.runs.predictions import rows_by_item
from fieldmark.settings import setting
from fieldmark.steps.base import Lesson, Step
from fieldmark.steps.pooling import photo_quality, pool
from fieldmark.tables.inputs import input_of

# Which values of sharpness are tried on val; 0 is the plain mean.
SHARPNESS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
CONFIDENCE, FROM_VAL = "confidence", "val"


@dataclass(frozen=True)
class ObservationMean(Step):
    """The mean over the photos of an observation: of log-probabilities where the scores are, else of the scores."""

    name: ClassVar[str] = "observation-mean"
    sees: ClassVar[Sees] = "unit"

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        return _shared(predictions, _observations(predictions, items), "mean")


@dataclass(frozen=True)
class ObservationMax(Step):
    """The highest score of each label over the photos of an observation: one clear photo is enough."""

    name: ClassVar[str] = "observation-max"
    sees: ClassVar[Sees] = "unit"

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        return _shared(predictions, _observations(predictions, items), "max")


@dataclass(frozen=True)
class ObservationAttention(Step):
    """The mean over the photos of an observation, in which better photos have more of a say (`pooling.attention`).

    Args:
        quality: What makes a photo good: confidence (how sure its answer is), or a column of the items with numbers;
            photos without a number count as the mean of all others.
        sharpness: How much quality counts: a number, or val: the one of lowest log loss there.
        chosen: The sharpness that was taken, found by `fit`.
        tried: The log loss per observation of val for each sharpness that was tried.
    """

    quality: str = CONFIDENCE
    sharpness: str = setting(FROM_VAL, least=0, also=(FROM_VAL,))
    chosen: float = 0.0
    tried: Mapping[str, float] = field(default_factory=dict)
    name: ClassVar[str] = "observation-attention"
    sees: ClassVar[Sees] = "unit"

    @property
    def inputs(self) -> tuple[str, ...]:
        return () if self.quality == CONFIDENCE else (input_of(self.quality),)

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        if self.sharpness != FROM_VAL:
            return replace(self, chosen=float(self.sharpness))
        if val.scale == "score":
            raise MisuseError(f"The step {self.name} weighs probabilities, and these scores only rank.")
        observation, quality = _observations(val, lesson.items), self._quality(val, lesson.items)
        first = np.unique(observation, return_index=True)[1]
        losses = {
            value: -float(pool(val, observation, "attention", quality=quality, sharpness=value)[
                np.arange(len(first)), lesson.truth[first]
            ].mean())
            for value in SHARPNESS
        }  # fmt: skip
        chosen = min(losses, key=lambda value: (losses[value], value))
        return replace(self, chosen=chosen, tried={f"{key:g}": round(loss, 6) for key, loss in losses.items()})

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        quality = self._quality(predictions, items)
        return _shared(predictions, _observations(predictions, items), "attention", quality, self.chosen)

    def _quality(self, predictions: LabelScores, items: pl.DataFrame) -> NDArray[np.float64]:
        if self.quality == CONFIDENCE:
            return photo_quality(predictions)
        if self.quality not in items.columns or not items.schema[self.quality].is_numeric():
            raise MisuseError(f"The step {self.name} finds no column {self.quality!r} of numbers among the items.")
        values = items[self.quality].cast(pl.Float64).fill_nan(None)
        numbers = values.fill_null(values.mean()).fill_null(0.0).to_numpy()
        return np.asarray(numbers[rows_by_item(tuple(items["item_id"]), predictions.items)])


def _observations(predictions: LabelScores, items: pl.DataFrame) -> NDArray[np.int64]:
    """The number of the observation of each predicted photo."""
    names = dict(zip(items["item_id"], items["observation_id"], strict=True))
    return np.unique([names[item] for item in predictions.items], return_inverse=True)[1]


def _shared(
    predictions: LabelScores,
    observation: NDArray[np.int64],
    pooling: str,
    quality: NDArray[np.float64] | None = None,
    sharpness: float = 1.0,
) -> LabelScores:
    """Hands every photo the pooled scores of its observation."""
    pooled = pool(predictions, observation, pooling, quality=quality, sharpness=sharpness)
    scale: Scale = "score" if predictions.scale == "score" else "log_probability"
    return predictions.with_columns(pooled[observation], scale)
