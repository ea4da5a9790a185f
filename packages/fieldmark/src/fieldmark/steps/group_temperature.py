"""A temperature for each group of items, drawn towards the common one where a group is small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import polars as pl

from fieldmark.errors import MisuseError
from fieldmark.runs.label_scores import LabelScores
from fieldmark.settings import setting
from fieldmark.steps.base import Lesson, Step
from fieldmark.steps.temperature import LogLoss, scaled
from fieldmark.tables.inputs import input_of


@dataclass(frozen=True)
class GroupTemperature(Step):
    """One temperature per value of a column of the items, for example each month or each habitat.

    A group's temperature minimizes its own log loss plus `borrowed` times the mean log loss over all of val: as if so
    many items of the average kind had been seen in it. Groups that val does not have, and items without a value, get
    the common temperature. The ranking of labels stays as it is.

    Args:
        column: The column; "month" is taken from the date.
        borrowed: How many items of the average kind each group is lent.
        temperature: The common temperature, found by `fit`.
        temperatures: Those of the groups, found by `fit`.
    """

    column: str = "month"
    borrowed: float = setting(30.0, least=0)
    temperature: float = 1.0
    temperatures: Mapping[str, float] = field(default_factory=dict)
    name: ClassVar[str] = "group-temperature"

    @property
    def inputs(self) -> tuple[str, ...]:
        return (input_of(self.column),)

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        if val.scale == "score" or (np.ptp(val.columns, axis=1) == 0).all():
            return self  # scores that only rank, or that say nothing, have no temperature
        groups, truth = self._groups(val, lesson.items), lesson.truth
        loss = LogLoss(val.columns, truth)
        common = loss.best_temperature(np.ones(len(truth)))
        temperature_of = {}
        for group in sorted({name for name in groups if name is not None}):
            own = np.array([name == group for name in groups], dtype=np.float64)
            temperature_of[group] = loss.best_temperature(own + self.borrowed / len(truth), start=common)
        return replace(self, temperature=common, temperatures=temperature_of)

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        if predictions.scale == "score":
            return predictions
        groups = self._groups(predictions, items)
        by_item = np.array([self.temperatures.get(group or "", self.temperature) for group in groups])
        return predictions.with_columns(scaled(predictions.columns, by_item), "log_probability")

    def _groups(self, predictions: LabelScores, items: pl.DataFrame) -> list[str | None]:
        """The group of each predicted item, None where the column is empty."""
        source = "date" if self.column == "month" else self.column
        if source not in items.columns:
            columns = ", ".join(name for name in items.columns if name not in ("item_id", "media_ids"))
            raise MisuseError(f"group-temperature finds no column {source!r} among the inputs of the task: {columns}.")
        value = pl.col("date").dt.strftime("%m") if self.column == "month" else pl.col(source).cast(pl.String)
        group_of = dict(items.select("item_id", value.alias("group")).iter_rows())
        return [group_of[item] for item in predictions.items]
