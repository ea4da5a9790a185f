"""Items in time order: a method is handed one day after the other, and never asks for more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.labels import Labels
from fieldmark.methods.base import Fitted
from fieldmark.steps import Step
from fieldmark.steps.base import apply_step
from fieldmark.views import Part

DATE = "date"


def answer_stream(
    fitted: Fitted,
    steps: Sequence[Step],
    part: Part,
    labels: Labels,
    *,
    revealed: NDArray[np.int32] | None = None,
) -> Any:
    """Answers the items of a part day by day.

    The method gets the items of one day at a time, without labels and with their own media only; items of one day do
    not see those of another unless the method kept something of earlier ones (`Method.observe`).

    Args:
        fitted: The method.
        steps: What follows, fitted; applied to each day by itself.
        part: The items; those without a date come last.
        labels: The known labels.
        revealed: The label code of each item, where the task reveals those of a day once it is answered.

    Returns:
        The predictions in the order of the part.
    """
    method, arrays = fitted.method, fitted.arrays
    state, answered = method.start(arrays), []
    for rows in days(part):
        day = part.take(rows).unlabeled()
        predictions: Any = method.answer_day(state, arrays, day, labels)
        for step in steps:
            predictions = apply_step(step, predictions, day.items)
        answered.append(predictions)
        state = method.observe(state, arrays, day, None if revealed is None else revealed[rows])
    return type(answered[0]).concat(answered).select(part.item_ids)


def days(part: Part) -> Iterator[NDArray[np.int64]]:
    """The rows of the items of each day, in time order; those without a date come last, together."""
    if DATE not in part.items.columns:
        raise ValueError("a stream needs the date of each item, and the task does not tell it")
    dates = part.items[DATE]
    for date in dates.drop_nulls().unique().sort():
        yield np.flatnonzero((dates == date).fill_null(False).to_numpy())
    if dates.is_null().any():
        yield np.flatnonzero(dates.is_null().to_numpy())
