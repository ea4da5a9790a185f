"""What a step is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Task
from fieldmark.labels import Labels
from fieldmark.runs.predictions import Predictions


class Step(Protocol):
    """A change to predictions with parameters from val. A step is a dataclass whose fields are those parameters."""

    name: ClassVar[str]

    def fit(self, val: Predictions, truth: NDArray[Any], items: pl.DataFrame) -> Self:
        """Returns the step with its parameters set from predictions on val.

        Args:
            val: The predictions, after all earlier steps.
            truth: The label code of each item; where any number of labels may hold at once, one mark per item and
                label.
            items: What may be known about the items (date, place, ...).
        """
        ...

    def apply(self, predictions: Predictions, items: pl.DataFrame) -> Predictions:
        """Returns the changed predictions."""
        ...


@dataclass(frozen=True)
class Asked:
    """What is asked, for steps whose aim depends on it.

    Args:
        task: The task, with its metrics.
        labels: The known labels.
        taxa: What is known about them (`poisonous`), one row per label.
    """

    task: Task
    labels: Labels
    taxa: pl.DataFrame

    def flag(self, name: str) -> NDArray[np.bool_]:
        """One flag per known label; a label without one has it not. All False where the column is missing."""
        if name not in self.taxa.columns:
            return np.zeros(len(self.labels), dtype=bool)
        about = pl.DataFrame({"label": self.labels.names}).join(
            self.taxa, on="label", how="left", maintain_order="left"
        )
        return about[name].fill_null(False).to_numpy().astype(np.bool_)


@runtime_checkable
class OpenStep(Protocol):
    """A step that is also shown the unknown items of val (truth -1), and told what is asked."""

    def check(self, task: Task) -> None:
        """Refuses what cannot be done for a task, before anything is read."""
        ...

    def fit_open(self, val: Predictions, truth: NDArray[np.int32], items: pl.DataFrame, asked: Asked | None) -> Step:
        """Returns the step with its parameters set; `asked` is None where nobody says what is asked."""
        ...


def fit_step(
    step: Step, val: Predictions, truth: NDArray[Any], items: pl.DataFrame, asked: Asked | None = None
) -> Step:
    """Fits a step on val: on all of it where the step learns from the unknown, else on the items of known labels.

    Where any number of labels may hold, the truth is one mark per item and label, and no item is unknown.
    """
    if isinstance(step, OpenStep):
        return step.fit_open(val, truth, items, asked)
    known = truth >= 0
    if truth.ndim == 2 or known.all():
        return step.fit(val, truth, items)
    kept = [item for item, keep in zip(val.items, known, strict=True) if keep]
    return step.fit(val.select(kept), truth[known], items.filter(pl.Series(known)))
