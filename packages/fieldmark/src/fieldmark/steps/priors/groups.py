"""Which labels are to be expected at a site or in a month, as val has it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import LearnsFrom
from fieldmark.errors import MisuseError
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.base import Lesson
from fieldmark.steps.multilabel import Chances, Holds
from fieldmark.steps.priors.base import in_order
from fieldmark.steps.priors.weighted import WeightedShift, best_weight
from fieldmark.tables.labels import Labels

# The rate of a label over all of val counts as much as this many segments of a group, so that few segments say little.
SEGMENTS_OF_ALL = 120.0


@dataclass(frozen=True)
class _GroupPrior(WeightedShift):
    """Shifts the logit of each label by how much more often it holds in a group than everywhere.

    The shift is the log of (rate in the group / rate in all of val), rates shrunk toward the common one, times a
    weight. The weight comes from val with each recording left out of the rates it is judged by; 0 is among those tried.
    Items of a group that val does not have stay as they are.

    Args:
        weight: How much the group counts.
        shifts: For each group the shift of each label.
    """

    weight: float = 0.0
    shifts: dict[str, list[float]] = field(default_factory=dict)
    name: ClassVar[str] = ""
    column: ClassVar[str] = ""

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def learns_from(self) -> tuple[LearnsFrom, ...]:
        return ("val",)

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        holds, items = lesson.holds, in_order(lesson.items, val)
        groups = self._groups(items)
        recordings = items["observation_id"].to_numpy()
        held_out = np.zeros((len(val.items), len(val.labels)))
        for recording in np.unique(recordings):
            rows, rest = recordings == recording, recordings != recording
            shifts = _shifts(holds[rest], groups[rest])
            for row in np.flatnonzero(rows):
                held_out[row] = shifts.get(groups[row], 0.0)
        weight = best_weight(val, held_out, holds)
        rounded = {group: [round(value, 4) for value in row] for group, row in _shifts(holds, groups).items()}
        return replace(self, weight=weight, shifts=rounded)

    def log_shift(self, items: pl.DataFrame, labels: Labels) -> Chances:
        none = np.zeros(len(labels))
        return np.stack([np.array(self.shifts.get(group, none)) for group in self._groups(items)])

    def _groups(self, items: pl.DataFrame) -> NDArray[Any]:
        """The group of each item; an empty text where it is not known."""
        if self.column not in items.columns:
            raise MisuseError(f"The step {self.name} needs to know the {self.column} of each item; the task has none.")
        return np.array([value or "" for value in self._names(items[self.column])], dtype=object)

    def _names(self, values: pl.Series) -> pl.Series:
        return values


@dataclass(frozen=True)
class SitePrior(_GroupPrior):
    """What is to be expected at each site; see `_GroupPrior`."""

    name: ClassVar[str] = "site-prior"
    column: ClassVar[str] = "site"


@dataclass(frozen=True)
class SeasonPrior(_GroupPrior):
    """What is to be expected in each month; see `_GroupPrior`."""

    name: ClassVar[str] = "season-prior"
    column: ClassVar[str] = "date"

    def _names(self, values: pl.Series) -> pl.Series:
        return values.dt.strftime("%m")


def _shifts(holds: Holds, groups: NDArray[Any]) -> dict[str, Chances]:
    """For each named group the shift of each label's logit."""
    everywhere = (holds.sum(axis=0) + 0.5) / (len(holds) + 1.0)
    made = {}
    for group in sorted({name for name in groups.tolist() if name}):
        rows = groups == group
        rate = (holds[rows].sum(axis=0) + SEGMENTS_OF_ALL * everywhere) / (rows.sum() + SEGMENTS_OF_ALL)
        made[group] = np.asarray(np.log(rate / everywhere))
    return made
