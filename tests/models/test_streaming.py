"""Streams are pushed: a method is handed one day after the other, and nothing else."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from fieldmark.labels import Labels
from fieldmark.methods.base import Arrays, Fitted, Method
from fieldmark.models.streaming import answer_stream, days
from fieldmark.questions.targets import LabelTargets
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.views import Part, View
from tests.lessons import with_columns

LABELS = Labels(("a", "b"))
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
    labels: list[Any] = field(default_factory=list)
    scale: ClassVar[Scale] = "score"

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

    def observe(self, state: int, arrays: Arrays, day: Part, revealed: np.ndarray | None) -> int:
        assert day.targets is None
        self.labels.append(None if revealed is None else revealed.tolist())
        return state + len(day)


def test_days_come_in_time_order_and_items_without_a_date_last():
    assert [rows.tolist() for rows in days(part())] == [[1, 3], [2, 6], [0, 5], [4, 7]]


def test_a_method_is_shown_each_day_once_and_never_a_label():
    diary = Diary()
    found = answer_stream(Fitted(diary, {}), (), part(), LABELS)
    assert diary.shown == [("i1", "i3"), ("i2", "i6"), ("i0", "i5"), ("i4", "i7")]
    assert diary.labels == [None] * 4
    assert found.items == part().item_ids
    assert found.scores[:, 0].tolist() == [4, 0, 2, 0, 6, 4, 2, 6]  # what earlier days have left, never the same day


def test_labels_are_revealed_only_after_a_day_is_answered():
    diary = Diary()
    answer_stream(Fitted(diary, {}), (), part(), LABELS, revealed=part().truth)
    assert diary.labels == [[1, 1], [0, 0], [0, 1], [0, 1]]


def test_the_order_within_a_day_changes_nothing():
    shuffled = part().take([3, 6, 5, 1, 7, 0, 2, 4])
    found = answer_stream(Fitted(Diary(), {}), (), shuffled, LABELS)
    expected = answer_stream(Fitted(Diary(), {}), (), part(), LABELS)
    np.testing.assert_array_equal(found.select(expected.items).scores, expected.scores)


def test_a_day_opens_its_own_media_only():
    """What the harness hands over is a part, and parts open nothing of others (see test_parts)."""
    whole = part()
    for rows in days(whole):
        day = whole.take(rows)
        assert set(day.item_ids) == {whole.item_ids[row] for row in rows}


def test_a_stream_without_dates_is_refused():
    undated = Part(with_columns(pl.DataFrame({"item_id": ["a"]})))
    with pytest.raises(ValueError, match="needs the date"):
        answer_stream(Fitted(Diary(), {}), (), undated, LABELS)
