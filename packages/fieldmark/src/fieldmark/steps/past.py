"""Predictions in time order: what a step may know of earlier days, and the loop that tells it."""

from __future__ import annotations

import datetime
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Sees, TimeOrder
from fieldmark.errors import MisuseError, PeekingError
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.predictions import rows_by_item
from fieldmark.steps.base import Step, apply_step, fresh_step
from fieldmark.steps.company import Rows, refuse_dependent, same_answers

DATE = "date"
Codes = NDArray[np.int32]
State = TypeVar("State")


class Day(NamedTuple):
    """The rows of the items of one day; no date for those whose day is not known, which come last."""

    date: datetime.date | None
    rows: Rows


def days(items: pl.DataFrame) -> Iterator[Day]:
    """The days in time order; items without a date come last, together.

    Raises:
        ValueError: When the items do not tell their dates.
    """
    if DATE not in items.columns:
        raise ValueError("a stream needs the date of each item, and the task does not provide it")
    table = items.select(pl.col(DATE), pl.int_range(pl.len()).alias("row")).sort(DATE, "row", nulls_last=True)
    for (date,), group in table.group_by(DATE, maintain_order=True):
        yield Day(date, group["row"].to_numpy().astype(np.int64))


class Streamed(Generic[State]):
    """Walks through the days of a part: answers each, then observes it, and tells labels when they are due.

    Args:
        answer: Answers some rows of one day, given the state; must leave the state as it is.
        observe: The state after the rows of a day.
        reveal: The state once the labels of the rows of an earlier day are known.
    """

    def __init__(
        self,
        who: str,
        answer: Callable[[State, Rows], Any],
        observe: Callable[[State, Rows], State],
        reveal: Callable[[State, Rows, Codes], State],
    ) -> None:
        self._who, self._answer, self._observe, self._reveal = who, answer, observe, reveal

    def run(self, state: State, items: pl.DataFrame, order: TimeOrder, truth: Codes | None) -> Any:
        """The answers in the order of the items.

        Args:
            state: What is known before the first day.
            items: What may be known about the items.
            order: How the task hands them out.
            truth: The label of each item, where the task tells it some days later.

        Raises:
            PeekingError: When the answer to an item depends on others of its day that it must not see.
        """
        answered: list[Any] = []
        waiting: list[Day] = []
        walked: list[Rows] = []
        for day in days(items):
            while waiting and _due(waiting[0], day.date, order):
                assert truth is not None  # only then does a day wait
                due = waiting.pop(0).rows
                state = self._reveal(state, due, truth[due])
            answered += self._answers(state, day.rows, order)
            state = self._observe(state, day.rows)
            walked.append(day.rows)
            if order.labels_after_days is not None and truth is not None and day.date is not None:
                waiting.append(day)
        together = type(answered[0]).concat(answered)
        place = np.empty(len(items), dtype=np.int64)
        place[np.concatenate(walked)] = np.arange(len(items))
        return together.select(together.items[row] for row in place)

    def _answers(self, state: State, rows: Rows, order: TimeOrder) -> list[Any]:
        if order.day_together or len(rows) == 1:
            return [self._answer(state, rows)]
        each = [self._answer(state, rows[place : place + 1]) for place in range(len(rows))]
        # Whoever keeps something of one item for the next of the same day answers the first differently now.
        again = self._answer(state, rows[:1])
        if not same_answers(each[0], again).all():
            raise PeekingError(
                f"The answer of {self._who} to {each[0].items[0]!r} has changed after it was shown other items of the "
                "same day: items of one day must not see each other. Keep things in `observe`, which comes after it."
            )
        return each


def _due(earlier: Day, today: datetime.date | None, order: TimeOrder) -> bool:
    """Whether the labels of an earlier day are known today; items without a date come after everything."""
    assert earlier.date is not None and order.labels_after_days is not None
    return today is None or (today - earlier.date).days >= order.labels_after_days


class PastStep(Step, Generic[State]):
    """A step that changes the predictions of a day by what earlier days have shown.

    It is told of one day after the other, and has nothing to ask for more with: `apply_day` gets one item at a time
    (unless the task shows the items of a day to each other) and must leave the state as it is.
    """

    sees: ClassVar[Sees] = "past"

    @abstractmethod
    def start(self) -> State:
        """What is known before the first day."""

    @abstractmethod
    def apply_day(self, state: State, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        """The changed predictions of some items of one day."""

    @abstractmethod
    def observe(self, state: State, predictions: LabelScores, items: pl.DataFrame) -> State:
        """What is known after a day: its predictions as they came, before this step."""

    def reveal(self, state: State, predictions: LabelScores, items: pl.DataFrame, truth: Codes) -> State:
        """What is known once the labels of an earlier day have become known; -1 stands for unknown."""
        return state

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        """The changed predictions of all items, in time order."""
        changed: LabelScores = apply_in_time(self, predictions, items, TimeOrder())
        return changed


def apply_checked(step: Step, predictions: Any, items: pl.DataFrame, unit_of: Mapping[str, Any] | None = None) -> Any:
    """Applies a step, and asks a copy again about a few items in no other company than it says that it looks at.

    Args:
        step: The step, fitted.
        predictions: The predictions of all items, after all earlier steps.
        items: What may be known about them.
        unit_of: The unit of each item; without, its observation.

    Raises:
        PeekingError: When answers depend on others.
    """
    if step.sees not in ("item", "unit"):
        return apply_step(step, predictions, items)
    copy = fresh_step(step)  # made before the first answer
    changed = apply_step(step, predictions, items)
    table = _in_order(items, predictions)
    refuse_dependent(
        f"the step {step.name}",
        lambda sets: [apply_step(copy, predictions.take(rows), _rows(table, rows)) for rows in sets],
        changed,
        (unit_of or observation_of(items)) if step.sees == "unit" else None,
    )
    return changed


def observation_of(items: pl.DataFrame) -> dict[str, Any]:
    """The observation of each item."""
    return dict(zip(items["item_id"], items["observation_id"], strict=True))


def apply_in_time(
    step: Step,
    predictions: Any,
    items: pl.DataFrame,
    order: TimeOrder,
    truth: Codes | None = None,
) -> Any:
    """Applies a step where items come in time order.

    Args:
        step: The step, fitted.
        predictions: The predictions of all items, after all earlier steps.
        items: What may be known about them; where nobody knows a date, every item is answered as on the first day.
        order: How the task hands them out.
        truth: The label of each predicted item, where the task tells it some days later.

    Raises:
        PeekingError: When the answer to an item depends on others that it must not see.
    """
    if step.sees == "past" and not isinstance(step, PastStep):
        raise MisuseError(f"The step {step.name} sees the past and must be a PastStep, which is told day by day.")
    table = _in_order(items, predictions)
    if not isinstance(step, PastStep):
        return apply_checked(step, predictions, table)
    if DATE not in table.columns:
        return step.apply_day(step.start(), predictions, table)
    walk = Streamed[Any](
        f"the step {step.name}",
        lambda state, rows: step.apply_day(state, predictions.take(rows), _rows(table, rows)),
        lambda state, rows: step.observe(state, predictions.take(rows), _rows(table, rows)),
        lambda state, rows, codes: step.reveal(state, predictions.take(rows), _rows(table, rows), codes),
    )
    return walk.run(step.start(), table, order, truth) if len(table) else predictions


def _in_order(items: pl.DataFrame, predictions: Any) -> pl.DataFrame:
    ids = tuple(items["item_id"])
    return items if ids == predictions.items else items[rows_by_item(ids, predictions.items).tolist()]


def _rows(table: pl.DataFrame, rows: Rows) -> pl.DataFrame:
    return table.slice(int(rows[0]), 1) if len(rows) == 1 else table[rows.tolist()]
