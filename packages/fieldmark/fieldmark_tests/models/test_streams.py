"""Streams are pushed: a method is handed one day after the other, and nothing else."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from fieldmark.benchmarks.declarations import Sees, TimeOrder
from fieldmark.errors import MisuseError, PeekingError
from fieldmark.methods.base import Arrays, Fitted, Method, truth_of
from fieldmark.models.streams import answer_stream
from fieldmark.questions.targets import LabelTargets
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.steps.base import Step
from fieldmark.steps.past import apply_in_time, days
from fieldmark.tables.inputs import NotInPartError
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import PHOTO
from fieldmark.views.parts import Part, View, loose_media
from fieldmark_tests.lessons import with_columns

LABELS = Labels(("a", "b"))
PLAIN, DAY_BATCH = TimeOrder(), TimeOrder(day_together=True)
DAYS = [3, 1, 2, 1, None, 3, 2, None]


def part() -> Part:
    dates = [None if day is None else dt.date(2021, 6, day) for day in DAYS]
    ids = [f"i{number}" for number in range(len(DAYS))]
    items = with_columns(pl.DataFrame({"item_id": ids, "date": pl.Series(dates, dtype=pl.Date)}))
    return Part(items, LabelTargets(np.array([0, 1] * 4, dtype=np.int32)))


@dataclass(frozen=True)
class Diary(Method):
    """Writes down what it is shown, and answers with how many items it has seen before."""

    shown: list[tuple[str, ...]] = field(default_factory=list)
    told: list[tuple[str, ...]] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)
    scale: ClassVar[Scale] = "score"
    sees: ClassVar[Sees] = "past"

    def fit(self, view: View) -> Fitted:
        return Fitted(self, {})

    def scores(self, arrays: Arrays, part: Part) -> np.ndarray:
        raise AssertionError("a stream is answered day by day")

    def start(self, arrays: Arrays) -> int:
        return 0

    def answer_day(self, state: int, arrays: Arrays, day: Part, labels: Labels) -> LabelScores:
        assert day.targets is None
        self.shown.append(day.item_ids)
        return LabelScores(day.item_ids, labels, np.full((len(day), 2), state, dtype=np.float32), "score")

    def observe(self, state: int, arrays: Arrays, day: Part) -> int:
        assert day.targets is None
        self.told.append(day.item_ids)
        return state + len(day)

    def reveal(self, state: int, arrays: Arrays, day: Part, truth: np.ndarray) -> int:
        assert day.targets is None
        self.labels.append((len(self.told), day.item_ids, truth.tolist()))
        return state + 100 * len(day)


def answered(method: Method, order: TimeOrder = PLAIN, whole: Part | None = None, **told: Any) -> LabelScores:
    return answer_stream(Fitted(method, {}), (), part() if whole is None else whole, LABELS, order, **told)


def test_days_come_in_time_order_and_items_without_a_date_last():
    assert [day.rows.tolist() for day in days(part().items)] == [[1, 3], [2, 6], [0, 5], [4, 7]]


def test_a_method_is_told_of_each_day_once_after_it_has_answered_its_items_one_by_one():
    diary = Diary()
    found = answered(diary)
    assert diary.told == [("i1", "i3"), ("i2", "i6"), ("i0", "i5"), ("i4", "i7")]
    assert {len(items) for items in diary.shown} == {1}
    assert diary.labels == []
    assert found.items == part().item_ids
    assert found.scores[:, 0].tolist() == [4, 0, 2, 0, 6, 4, 2, 6]  # what earlier days have left, never the same day


def test_in_day_batches_the_items_of_a_day_come_together():
    diary = Diary()
    found = answered(diary, DAY_BATCH)
    assert diary.shown == diary.told == [("i1", "i3"), ("i2", "i6"), ("i0", "i5"), ("i4", "i7")]
    assert found.scores[:, 0].tolist() == [4, 0, 2, 0, 6, 4, 2, 6]


def test_labels_become_known_so_many_days_later_and_not_before():
    diary = Diary()
    found = answered(diary, TimeOrder(labels_after_days=2), truth=part().truth)
    assert diary.labels == [(2, ("i1", "i3"), [1, 1]), (3, ("i2", "i6"), [0, 0]), (3, ("i0", "i5"), [0, 1])]
    assert found.scores[:, 0].tolist() == [204, 0, 2, 0, 606, 204, 2, 606]


def test_labels_are_not_told_where_the_task_does_not():
    diary = Diary()
    answered(diary, truth=part().truth)
    assert diary.labels == []


@pytest.mark.parametrize("order", [PLAIN, DAY_BATCH, TimeOrder(labels_after_days=1)])
def test_the_order_within_a_day_changes_nothing(order):
    shuffled = part().take([3, 6, 5, 1, 7, 0, 2, 4])
    found = answered(Diary(), order, shuffled, truth=shuffled.truth)
    expected = answered(Diary(), order, truth=part().truth)
    np.testing.assert_array_equal(found.select(expected.items).scores, expected.scores)


@dataclass(frozen=True)
class Gossip(Diary):
    """Keeps what it is asked and uses it for the next item of the same day."""

    def answer_day(self, state: int, arrays: Arrays, day: Part, labels: Labels) -> LabelScores:
        self.shown.append(day.item_ids)
        scores = np.full((len(day), 2), len(self.shown), dtype=np.float32)
        return LabelScores(day.item_ids, labels, scores, "score")


def test_a_method_that_lets_items_of_a_day_see_each_other_is_refused():
    with pytest.raises(PeekingError, match=r"Gossip .* items of one day must not see each other"):
        answered(Gossip())


@dataclass(frozen=True)
class Relative(Diary):
    """Says that it answers item by item, and compares items with each other."""

    sees: ClassVar[Sees] = "item"

    def scores(self, arrays: Arrays, part: Part) -> np.ndarray:
        number = np.array([int(item[1:]) for item in part.item_ids], dtype=np.float32)
        return np.column_stack([number, number - number.mean()])


def test_a_method_that_looks_at_other_items_and_does_not_say_so_is_refused():
    with pytest.raises(PeekingError, match="Relative depend on which other items are asked about"):
        answered(Relative())


@dataclass(frozen=True)
class Ranks(Step):
    """Says that it looks at one item, and ranks all of them."""

    name: ClassVar[str] = "ranks"

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        return predictions.with_scores(predictions.scores.argsort(axis=0).astype(np.float32), "score")


def test_a_step_that_looks_at_other_items_and_does_not_say_so_is_refused():
    numbers = np.arange(16, dtype=np.float32).reshape(8, 2)[::-1]
    predictions = LabelScores(part().item_ids, LABELS, numbers, "score")
    with pytest.raises(PeekingError, match="the step ranks depend on which other items"):
        apply_in_time(Ranks(), predictions, part().items, PLAIN)


def test_a_step_that_sees_the_past_must_be_told_of_it():
    predictions = LabelScores(part().item_ids, LABELS, np.zeros((8, 2), dtype=np.float32), "score")
    with pytest.raises(MisuseError, match="must be a PastStep"):
        apply_in_time(type("Greedy", (Ranks,), {"sees": "past"})(), predictions, part().items, PLAIN)


def test_a_day_has_no_labels_and_opens_its_own_media_only():
    """Asking for more is an exception: labels are not there, and media of other items are refused."""
    whole = replace(part(), media=loose_media(PHOTO, []))
    with pytest.raises(ValueError, match="without labels"):
        truth_of(whole.take([0]).unlabeled())
    with pytest.raises(NotInPartError):
        whole.take([0]).media.read("i1")


def test_a_stream_without_dates_is_refused():
    undated = Part(with_columns(pl.DataFrame({"item_id": ["a"]})))
    with pytest.raises(ValueError, match="needs the date"):
        answered(Diary(), whole=undated)
