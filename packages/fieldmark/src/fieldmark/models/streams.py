"""Items in time order: a method is told of one day after the other, and has nothing to ask for more with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import TimeOrder
from fieldmark.methods.base import Fitted
from fieldmark.models.photo_by_photo import OF_FEATURES, answer, answer_checked
from fieldmark.steps import Step
from fieldmark.steps.past import DATE, Streamed, apply_in_time
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part


def answer_stream(
    fitted: Fitted,
    steps: Sequence[Step],
    part: Part,
    labels: Labels,
    order: TimeOrder,
    *,
    truth: NDArray[np.int32] | None = None,
    supply: Callable[[Part], Part] = lambda part: part,
    pooling: str = OF_FEATURES,
) -> Any:
    """Answers the items of a part in time order.

    A method that sees the past gets one item at a time, without labels and with its own media only, and is told of a
    day once that is answered (`Method.observe`). One that answers item by item cannot know what day it is, and gets
    them all at once; some items are asked again by themselves, to see that it does as it says.

    Args:
        fitted: The method.
        steps: What follows, fitted.
        part: The items; those without a date come last.
        labels: The known labels.
        order: Whether items of a day see each other, and whether labels become known some days later.
        truth: The label code of each item, for tasks that tell it.
        supply: Adds the features that the method needs.
        pooling: How items of several photos are answered (`photo_by_photo`).

    Returns:
        The predictions in the order of the part.

    Raises:
        PeekingError: When an answer depends on items that it must not see.
    """
    if DATE not in part.items.columns:
        raise ValueError("a stream needs the date of each item, and the task does not provide it")
    told = truth if order.labels_after_days is not None else None
    part = part.unlabeled()
    if fitted.method.sees == "past":
        predictions = _day_by_day(fitted, part, labels, order, told, supply, pooling)
    else:
        predictions = answer_checked(type(fitted.method).__name__, fitted, part, labels, supply, pooling)
    for step in steps:
        predictions = apply_in_time(step, predictions, part.items, order, told)
    return predictions


def _day_by_day(
    fitted: Fitted,
    part: Part,
    labels: Labels,
    order: TimeOrder,
    truth: NDArray[np.int32] | None,
    supply: Callable[[Part], Part],
    pooling: str,
) -> Any:
    method = fitted.method

    def answered(state: Any, rows: NDArray[np.int64]) -> Any:
        return answer(
            fitted,
            part.take(rows),
            labels,
            supply,
            pooling,
            predict=lambda items: fitted.answer_day(state, items, labels),
        )

    walk = Streamed[Any](
        f"the method {type(method).__name__}",
        answered,
        lambda state, rows: fitted.observe(state, supply(part.take(rows))),
        lambda state, rows, codes: fitted.reveal(state, supply(part.take(rows)), codes),
    )
    return walk.run(method.start(fitted.arrays), part.items, order, truth)
