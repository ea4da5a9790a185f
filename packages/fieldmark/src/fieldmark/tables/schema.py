"""The tables everything is made of, and how they are checked.

Each row class below is the declaration of one table: its fields are the columns, their types the column types, and
`| None` says that a value may be missing. A table may carry further columns (habitat, substrate, ...): they pass
through unchecked.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date as Date  # noqa: N812  (fields are called date)
from typing import Any, Generic, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import polars as pl

from fieldmark.errors import InputError, did_you_mean

# Latitudes and longitudes in degrees go as far, to the south and the west as well.
MOST_NORTH, MOST_EAST = 90.0, 180.0

RANKS = ("kingdom", "phylum", "class", "order", "family", "genus", "species")


@dataclass(frozen=True)
class Taxon:
    """What one label of a release stands for. The ranks (`RANKS`) are further columns, present where known."""

    label: str
    poisonous: bool | None


@dataclass(frozen=True)
class Observation:
    """One encounter with an organism: a time, a place, an observer."""

    observation_id: str
    label: str | None
    date: Date | None
    lat: float | None
    lon: float | None


@dataclass(frozen=True)
class MediaFile:
    """One file of a release (a photo, a recording) and the parts of the release it belongs to, if there are any."""

    media_id: str
    observation_id: str
    path: str
    parts: list[str]


@dataclass(frozen=True)
class Item:
    """What one answer is about: a photo, an observation, a segment of a recording, a place."""

    item_id: str
    observation_id: str
    media_ids: list[str]
    start_s: float | None
    end_s: float | None
    date: Date | None
    lat: float | None
    lon: float | None
    domain: str | None


@dataclass(frozen=True)
class TrueLabel:
    """One true label of one item. Truth is long: an item may have several rows, or none."""

    item_id: str
    label: str


@dataclass(frozen=True)
class Event:
    """A label that holds for a stretch of a recording; without a label, something that nobody could name."""

    media_id: str
    start_s: float
    end_s: float
    label: str | None


Row = TypeVar("Row")


class Schema(Generic[Row]):
    """The columns of a table, taken from its row class.

    Args:
        row: The dataclass whose fields are the columns.
        key: The column whose values must be unique, if any.
    """

    def __init__(self, row: type[Row], key: str | None = None) -> None:
        self.row, self.key = row, key
        hints = get_type_hints(row)
        self.types = {field.name: _column_type(hints[field.name]) for field in dataclasses.fields(cast(Any, row))}
        self.required = frozenset(name for name in self.types if not _may_be_missing(hints[name]))

    def check(self, frame: pl.DataFrame, where: object) -> pl.DataFrame:
        """Returns the frame with its declared columns first and in their types.

        Columns that may be missing are added as nulls.

        Raises:
            InputError: Names the column, and the row where there is one.
        """
        for name in self.required - set(frame.columns):
            raise missing_column(where, name, frame.columns)
        columns = [
            pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, dtype=kind).alias(name)
            for name, kind in self.types.items()
        ]
        further = [name for name in frame.columns if name not in self.types]
        checked = frame.select(*columns, *further)
        for name in self.required:
            empty = checked[name].is_null().arg_true()
            if len(empty):
                raise InputError(
                    where, line=int(empty[0]) + 2, found=f"no value for {name}", expected="one in each row"
                )
        if self.key is not None and not all_different(checked[self.key]):
            twice = checked[self.key].is_duplicated().arg_true()
            if len(twice):
                value = checked[self.key][int(twice[0])]
                raise InputError(where, found=f"{self.key} {value!r} more than once", expected="each once")
        return checked

    def empty(self) -> pl.DataFrame:
        """Returns the table without rows."""
        return pl.DataFrame(schema=self.types)


def all_different(values: pl.Series) -> bool:
    """Whether no value stands in a column twice.

    >>> all_different(pl.Series(["a", "b"])), all_different(pl.Series(["a", "b", "a"]))
    (True, False)
    """
    # Numbers are far quicker to compare than texts; texts that differ may have the same number, so that they decide.
    return values.hash().n_unique() == len(values) or values.n_unique() == len(values)


_POLARS_TYPES: dict[type, Any] = {
    str: pl.String,
    float: pl.Float64,
    int: pl.Int64,
    bool: pl.Boolean,
    Date: pl.Date,
}


def _may_be_missing(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def _column_type(hint: Any) -> Any:
    if _may_be_missing(hint):
        hint = next(part for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is list:
        return pl.List(_POLARS_TYPES[get_args(hint)[0]])
    return _POLARS_TYPES[hint]


TAXA = Schema(Taxon, key="label")
OBSERVATIONS = Schema(Observation, key="observation_id")
MEDIA = Schema(MediaFile, key="media_id")
ITEMS = Schema(Item, key="item_id")
TRUTH = Schema(TrueLabel)
EVENTS = Schema(Event)


def parse_column(frame: pl.DataFrame, name: str, kind: type, where: object) -> pl.DataFrame:
    """Turns a text column into dates, floats, integers or booleans, naming the first line that is none.

    A column that is not there becomes one of nulls.
    """
    parse, expected = _PARSERS[kind]
    if name not in frame.columns:
        return frame.with_columns(pl.lit(None, dtype=_POLARS_TYPES[kind]).alias(name))
    parsed = frame.select(parse(pl.col(name).str.strip_chars())).to_series()
    wrong = (parsed.is_null() & frame[name].is_not_null() & (frame[name].str.strip_chars() != "")).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise InputError(where, line=row + 2, found=f"{frame[name][row]!r} as {name}", expected=expected)
    return frame.with_columns(parsed.alias(name))


def parse_places(
    frame: pl.DataFrame, where: object, *, lat: str = "lat", lon: str = "lon", required: bool = False
) -> pl.DataFrame:
    """Turns two text columns into degrees, naming the first line that is none or lies off the globe.

    Args:
        frame: The table. A column that is not there becomes one of nulls.
        where: What to call it.
        lat: The column of latitudes.
        lon: The column of longitudes.
        required: Whether every row must have both; otherwise blanks stay blank.
    """
    for name, most in ((lat, MOST_NORTH), (lon, MOST_EAST)):
        given, frame = frame, parse_column(frame, name, float, where)
        degrees = frame[name]
        wrong = (~(degrees.abs() <= most)).fill_null(required).arg_true()  # what is not a number is wrong as well
        if len(wrong):
            row = int(wrong[0])
            found = f"no {name}" if degrees[row] is None else f"{given[name][row]!r} as {name}"
            raise InputError(where, line=row + 2, found=found, expected=f"degrees from {-most:g} to {most:g}")
    return frame


def missing_column(where: object, name: str, found: Iterable[str]) -> InputError:
    """The error for a table that lacks a column."""
    columns = list(found)
    return InputError(
        where,
        line=1,
        found=f"the columns {', '.join(columns)}",
        expected=f"a column {name!r}",
        hint=did_you_mean(name, columns).partition("Known:")[0].strip() or "Add it, or rename the one that is meant.",
    )


_TRUE, _FALSE = ["true", "1", "yes"], ["false", "0", "no"]


def _parse_bool(text: pl.Expr) -> pl.Expr:
    lower = text.str.to_lowercase()
    return pl.when(lower.is_in(_TRUE)).then(True).when(lower.is_in(_FALSE)).then(False).otherwise(None)


_PARSERS: dict[type, tuple[Callable[[pl.Expr], pl.Expr], str]] = {
    Date: (lambda text: text.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False), "a date such as 2021-09-30"),
    float: (lambda text: text.cast(pl.Float64, strict=False), "a number"),
    int: (lambda text: text.cast(pl.Int64, strict=False), "a whole number"),
    bool: (_parse_bool, "true or false"),
}
