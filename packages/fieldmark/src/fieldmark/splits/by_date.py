"""A cut by date, as FungiTastic is cut: train up to a day, then val, then test.

What train holds of a species decides the rest: species with enough observations are known, those with fewer are the
few-shot ones, and those with none are unknown.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from fieldmark.errors import MisuseError
from fieldmark.splits.division import UNUSED

KNOWN, FEW_SHOT, UNKNOWN = "known", "few-shot", "unknown"


@dataclass(frozen=True)
class DateCut:
    """Which days belong to which part, and how many observations make a species known. The defaults are FungiTastic's.

    Args:
        val_from: The first day of val; everything before it is train.
        test_from: The first day of test.
        until: The last day of test; what is later belongs to no part. None for no end.
        few: A species with fewer observations in train, but some, is a few-shot one.
    """

    val_from: datetime.date = datetime.date(2022, 1, 1)
    test_from: datetime.date = datetime.date(2023, 1, 1)
    until: datetime.date | None = datetime.date(2023, 12, 31)
    few: int = 5
    kind: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        if not self.val_from < self.test_from or (self.until is not None and self.until < self.test_from):
            days = f"val from {self.val_from}, test from {self.test_from}, until {self.until or 'the end'}"
            raise MisuseError(f"The parts must follow each other in time: found {days}.")
        if self.few < 1:
            raise MisuseError(f"A species is known from 1 observation in train on, or more: found {self.few}.")

    def parts(self, days: pl.Series) -> pl.Series:
        """The part of each day; what has no day, or one after the end, is unused."""
        day = pl.col("day")
        later = pl.lit(value=False) if self.until is None else day > self.until
        part = (
            pl.when(day.is_null() | later)
            .then(pl.lit(UNUSED))
            .when(day < self.val_from)
            .then(pl.lit("train"))
            .when(day < self.test_from)
            .then(pl.lit("val"))
            .otherwise(pl.lit("test"))
        )
        return pl.DataFrame({"day": days}).select(part.alias("part")).to_series()

    def kinds(self, labels: pl.Series, parts: pl.Series) -> pl.Series:
        """Whether the species of each observation is known, few-shot or unknown.

        Args:
            labels: The species of each observation.
            parts: Its part.
        """
        times = (pl.col("part") == "train").sum().over("label")
        kind = pl.when(times == 0).then(pl.lit(UNKNOWN)).when(times < self.few).then(pl.lit(FEW_SHOT))
        rows = pl.DataFrame({"label": labels, "part": parts})
        return rows.select(kind.otherwise(pl.lit(KNOWN)).alias("kind")).to_series()

    def span(self, part: str) -> str:
        """Which days a part holds, in words.

        >>> DateCut().span("val"), DateCut().span("train")
        ('from 2022-01-01 to 2022-12-31', 'up to 2021-12-31')
        """
        eve = {"train": self.val_from, "val": self.test_from}.get(part)
        last = self.until if eve is None else eve - datetime.timedelta(days=1)
        if part == "train":
            return f"up to {last}"
        first = {"val": self.val_from, "test": self.test_from}[part]
        return f"from {first} on" if last is None else f"from {first} to {last}"

    def to_data(self) -> dict[str, Any]:
        """The cut as plain data."""
        until = self.until.isoformat() if self.until else None
        days = {"val_from": self.val_from.isoformat(), "test_from": self.test_from.isoformat(), "until": until}
        return {"rule": self.kind, **days, "few": self.few}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> DateCut:
        """The cut that `to_data` wrote.

        Raises:
            ValueError: For data that are no cut.
        """
        try:
            days = {name: datetime.date.fromisoformat(data[name]) for name in ("val_from", "test_from")}
            until = None if data["until"] is None else datetime.date.fromisoformat(data["until"])
            return cls(**days, until=until, few=int(data["few"]))
        except (KeyError, TypeError, MisuseError) as error:
            raise ValueError(f"{dict(data)} is no cut by date") from error


def first_day(text: str) -> datetime.date:
    """The first day of a year, of a month, or the day itself.

    >>> first_day("2022"), first_day("2022-05")
    (datetime.date(2022, 1, 1), datetime.date(2022, 5, 1))
    """
    return _days(text)[0]


def last_day(text: str) -> datetime.date:
    """The last day of a year, of a month, or the day itself.

    >>> last_day("2022"), last_day("2024-02")
    (datetime.date(2022, 12, 31), datetime.date(2024, 2, 29))
    """
    return _days(text)[1]


def _days(text: str) -> tuple[datetime.date, datetime.date]:
    given = re.fullmatch(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?", text.strip())
    try:
        if given is None:
            raise ValueError(text)
        year, month, day = (None if one is None else int(one) for one in given.groups())
        assert year is not None  # the pattern begins with it
        first = datetime.date(year, month or 1, day or 1)
        of_month = calendar.monthrange(year, month or 12)[1]
        return first, datetime.date(year, month or 12, day or of_month)
    except ValueError as error:
        raise MisuseError(f"{text!r} is no date: expected a year, a month or a day, such as 2022, 2022-05.") from error
