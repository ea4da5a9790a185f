"""A bird that sang five seconds ago is likely to sing still."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Sees
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.base import Lesson, Step
from fieldmark.steps.multilabel import Chances, chances_of, mean_average_precision

SHARES = (0.0, 0.2, 0.35, 0.5, 0.65)


@dataclass(frozen=True)
class Neighbors(Step):
    """Each segment takes a share of its chances from the segments before and after it in the same recording.

    Args:
        share: The share that comes from the neighbors. On val several are tried, 0 among them, and the one of highest
            mean average precision over labels is kept; of equal ones the smallest.
    """

    share: float = 0.0
    name: ClassVar[str] = "neighbors"
    sees: ClassVar[Sees] = "unit"

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        chances, holds = chances_of(val), lesson.holds
        before, after = _neighbors(val, lesson.items)
        values = [mean_average_precision(_smooth(chances, before, after, share), holds) for share in SHARES]
        return replace(self, share=SHARES[int(np.argmax(np.nan_to_num(values)))])

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        smooth = _smooth(chances_of(predictions), *_neighbors(predictions, items), self.share)
        return predictions.with_scores(smooth.astype(np.float32), "score")


def _neighbors(predictions: LabelScores, items: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each item the row of the one before and after it in its recording, itself where there is none."""
    rows = pl.DataFrame({"item_id": predictions.items}).with_row_index("row")
    rows = rows.join(items.select("item_id", "observation_id", "start_s"), on="item_id", how="left")
    order = rows.sort("observation_id", "start_s", "row")
    row, recording = order["row"].to_numpy().astype(np.int64), order["observation_id"].to_numpy()
    follows = np.concatenate([recording[1:] == recording[:-1], [False]]) if len(row) else np.empty(0, dtype=np.bool_)
    before, after = np.arange(len(row)), np.arange(len(row))
    after[row[:-1][follows[:-1]]] = row[1:][follows[:-1]]
    before[row[1:][follows[:-1]]] = row[:-1][follows[:-1]]
    return before, after


def _smooth(chances: Chances, before: NDArray[np.int64], after: NDArray[np.int64], share: float) -> Chances:
    return np.asarray((1 - share) * chances + share / 2 * (chances[before] + chances[after]))
