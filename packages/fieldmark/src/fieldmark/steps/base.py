"""What a step is: everything that the harness may ask of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import LearnsFrom, Sees, Task
from fieldmark.errors import InputError, MisuseError
from fieldmark.questions.answer import flags_of
from fieldmark.questions.targets import Targets
from fieldmark.registry import imported_anew
from fieldmark.runs.label_scores import LabelScores
from fieldmark.settings import Settings
from fieldmark.tables.labels import Labels
from fieldmark.views.opaque_ids import blinded_table
from fieldmark.views.parts import Part


@dataclass(frozen=True)
class Lesson:
    """What a step may learn from.

    Args:
        task: What is asked, with its metrics.
        labels: The known labels.
        taxa: What is known about them (`poisonous`), one row per label.
        val: The validation items with their labels.
        train: The training items with their labels; None where only val is available.
    """

    task: Task
    labels: Labels
    taxa: pl.DataFrame
    val: Part
    train: Part | None = None

    @property
    def targets(self) -> Targets:
        """The labels of val."""
        if self.val.targets is None:
            raise ValueError("a step learns from labels of val")
        return self.val.targets

    @property
    def truth(self) -> NDArray[np.int32]:
        """One label code per item of val, -1 for unknown or none."""
        return self.targets.codes

    @property
    def holds(self) -> NDArray[np.bool_]:
        """One row per item of val, one column per label: whether it holds."""
        return self.targets.holds(len(self.labels))

    @property
    def items(self) -> pl.DataFrame:
        """What may be known about the items of val (date, place, ...)."""
        return self.val.items

    def flag(self, name: str) -> NDArray[np.bool_]:
        """One flag per known label; labels without the flag count as False, and all do where the column is missing."""
        try:
            return flags_of(self.labels, self.taxa, name)
        except InputError:
            return np.zeros(len(self.labels), dtype=bool)


class Step(Settings, ABC):
    """A change to predictions with parameters from val. Steps are dataclasses whose fields are those parameters.

    Attributes:
        name: As it is asked for and saved.
        sees: What it looks at besides the item; the harness refuses what the task does not allow.
        takes_lists: Whether it can be applied to lists of labels, and not only to a score for every label.
        learns_from_unknown: Whether it is shown the unknown items of val as well.
        decides: Whether it gives an answer to each item and leaves the scores as they are.
        needs_unknown: Whether it is for tasks with unknown species alone.
    """

    name: ClassVar[str]
    sees: ClassVar[Sees] = "item"
    takes_lists: ClassVar[bool] = False
    learns_from_unknown: ClassVar[bool] = False
    decides: ClassVar[bool] = False
    needs_unknown: ClassVar[bool] = False

    @property
    def external_data(self) -> tuple[str, ...]:
        """What it brings in from outside the release, one sentence each."""
        return ()

    @property
    def learns_from(self) -> tuple[LearnsFrom, ...]:
        """The parts of whose labels it keeps something for each label or class: counts, biases, thresholds.

        A task may forbid it. A few numbers that are chosen on val and hold for all labels do not count (`tuned_on`).
        """
        return ()

    @property
    def tuned_on(self) -> tuple[LearnsFrom, ...]:
        """The parts on which it chooses a few numbers that hold for all labels: val, unless `fit` does nothing."""
        return ("val",) if type(self).fit is not Step.fit and "val" not in self.learns_from else ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it reads of the items, by the names of inputs; the run declares it among its modalities."""
        return ()

    def check(self, task: Task) -> None:
        """Refuses what cannot be done for a task, before anything is read."""

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        """Returns the step with its parameters set.

        Args:
            val: The predictions on val, after all earlier steps.
            lesson: The items behind them, and what else there is to learn from.
        """
        return self

    @abstractmethod
    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        """Returns the changed predictions.

        Args:
            predictions: The predictions, after all earlier steps.
            items: What may be known about the items (date, place, ...).
        """

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """What the step keeps besides its fields, to be saved with the model."""
        return {}

    def with_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The step with the arrays that were saved."""
        return self


def fit_step(step: Step, val: LabelScores, lesson: Lesson) -> Step:
    """Fits a step on val: on all of it where the step learns from the unknown, else without the unknown items.

    Raises:
        MisuseError: When it wants a score for every label, and there are lists.
    """
    _refuse_lists(step, val)
    unknown = lesson.targets.unknown
    if step.learns_from_unknown or not unknown.any():
        return step.fit(val, lesson)
    kept = lesson.val.take(~unknown)
    return step.fit(val.select(kept.item_ids), replace(lesson, val=kept))


def apply_step(step: Step, predictions: Any, items: pl.DataFrame) -> Any:
    """Applies a step; one that wants a score for every label is not handed a list.

    Raises:
        MisuseError: When it is.
    """
    _refuse_lists(step, predictions)
    with blinded_table(predictions, items) as (shown, table, names):
        changed = step.apply(shown, table)
        return predictions if changed is shown else names.back(changed)


def _refuse_lists(step: Step, predictions: Any) -> None:
    if not isinstance(predictions, LabelScores):
        raise MisuseError(f"The step {step.name} changes scores of labels, and there are none here.")
    if not (predictions.dense or step.takes_lists):
        raise MisuseError(f"The step {step.name} needs a score for every label, and the method lists a few.")


def fresh_step(step: Step) -> Step:
    """A copy of a fitted step that has seen nothing since: what another package brings is imported anew."""
    from fieldmark.steps import STEPS

    cls = imported_anew(type(step)) if STEPS.is_added(step.name) else type(step)
    made: Step = cls(**{one.name: deepcopy(getattr(step, one.name)) for one in fields(step)})  # type: ignore[arg-type]
    arrays = {name: np.array(array) for name, array in step.arrays.items()}
    return made.with_arrays(arrays) if arrays else made
