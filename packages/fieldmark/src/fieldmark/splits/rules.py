"""Rules as data: which rows of a table belong together."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import InputError, MisuseError
from fieldmark.splits.grids import Cells, equal_area_cells, organizers_quadrats, square_blocks
from fieldmark.splits.quadrats import ORGANIZERS_SEED
from fieldmark.tables.numbers import parse_float
from fieldmark.tables.schema import missing_column, parse_column

DEFAULT_SIDE_M = 5000.0


@dataclass(frozen=True)
class Rule(ABC):
    """Which rows belong together. Rows without a value (no date, no place) belong to nothing but themselves.

    Attributes:
        kind: What the rule is called in files.
        keeps_classes_whole: Whether all rows of a class go to one side, so that classes cannot be balanced.
        seed: The seed of the draw where nobody gives one.
        counts_groups: Whether shares are of groups and not of rows where nobody says so.
    """

    kind: ClassVar[str]
    keeps_classes_whole: ClassVar[bool] = False
    seed: ClassVar[int] = 0
    counts_groups: ClassVar[bool] = False

    @property
    @abstractmethod
    def title(self) -> str:
        """What the rows are held together by, as a person would say it."""

    @abstractmethod
    def _values(self, table: pl.DataFrame, where: object) -> pl.Series:
        """One value per row, null where there is none."""

    def keys(self, table: pl.DataFrame, where: object = "the table") -> pl.Series:
        """One text per row; rows with the same text belong together, null belongs to nothing.

        Raises:
            InputError: When the table lacks a column, or when no row has a value.
        """
        values = self._values(table, where)
        if len(values) and values.is_null().all():
            raise InputError(where, found=f"no row with a {self.title}", expected="at least one")
        return values

    def to_data(self) -> dict[str, Any]:
        """The rule as plain data."""
        return {"rule": self.kind, **asdict(self)}


@dataclass(frozen=True)
class ByColumn(Rule):
    """Rows with the same value in a column belong together: an observation, a site, an observer."""

    column: str
    kind: ClassVar[str] = "column"

    @property
    def title(self) -> str:
        return self.column.removesuffix("_id")

    def _values(self, table: pl.DataFrame, where: object) -> pl.Series:
        return _filled(_column(table, self.column, where).cast(pl.String))


@dataclass(frozen=True)
class ByClass(Rule):
    """Rows of the same class belong together, so that classes are left out as a whole."""

    column: str = "label"
    kind: ClassVar[str] = "class"
    keeps_classes_whole: ClassVar[bool] = True
    title: ClassVar[str] = "class"

    def _values(self, table: pl.DataFrame, where: object) -> pl.Series:
        return _filled(_column(table, self.column, where).cast(pl.String))


@dataclass(frozen=True)
class ByDay(Rule):
    """Rows of the same calendar day belong together, wherever they were made."""

    column: str = "date"
    kind: ClassVar[str] = "day"
    title: ClassVar[str] = "day"

    def _values(self, table: pl.DataFrame, where: object) -> pl.Series:
        values = _column(table, self.column, where)
        if values.dtype == pl.String:
            values = parse_column(table, self.column, datetime.date, where)[self.column]
        return values.cast(pl.Date).cast(pl.String)


@dataclass(frozen=True)
class PlaceRule(Rule):
    """Rows whose places lie in one cell of a grid belong together."""

    side_m: float = DEFAULT_SIDE_M
    lat: str = "lat"
    lon: str = "lon"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.side_m) and 1 <= self.side_m <= 10_000_000):
            raise MisuseError(f"A cell of {self.side_m:g} m cannot be: give a side from 1 to 10,000,000 metres.")

    @abstractmethod
    def cells(self, latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> Cells:
        """Row and column of each place."""

    def named(self, row: pl.Series, column: pl.Series) -> pl.Expr:
        """What each cell is called."""
        return pl.format("{} {}", row, column)

    def places(self, table: pl.DataFrame, where: object) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Latitude and longitude of each row, NaN where it has none."""
        lat, lon = _degrees(table, self.lat, 90, where), _degrees(table, self.lon, 180, where)
        both = lat.is_not_null() & lon.is_not_null()
        return tuple(one.set(~both, None).cast(pl.Float64).fill_null(np.nan).to_numpy() for one in (lat, lon))  # type: ignore[return-value]

    def _values(self, table: pl.DataFrame, where: object) -> pl.Series:
        places = table.select(
            lat=_degrees(table, self.lat, 90, where), lon=_degrees(table, self.lon, 180, where)
        ).with_row_index()
        there = places.drop_nulls()
        row, column = self.cells(there["lat"].to_numpy(), there["lon"].to_numpy())
        named = there.select("index", cell=self.named(pl.Series("row", row), pl.Series("column", column)))
        return places.join(named, on="index", how="left", maintain_order="left")["cell"]


@dataclass(frozen=True)
class SquareBlocks(PlaceRule):
    """Blocks that are square in metres wherever they lie (`grids.square_blocks`)."""

    kind: ClassVar[str] = "square blocks"

    @property
    def title(self) -> str:
        return f"block of {self.side_m:g} m"

    def cells(self, latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> Cells:
        return square_blocks(latitude, longitude, self.side_m)


@dataclass(frozen=True)
class EqualAreaCells(PlaceRule):
    """Cells of the cylindrical equal-area grid, in aligned columns (`grids.equal_area_cells`)."""

    kind: ClassVar[str] = "equal-area cells"

    @property
    def title(self) -> str:
        return f"cell of {self.side_m:g} m"

    def cells(self, latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> Cells:
        return equal_area_cells(latitude, longitude, self.side_m)


@dataclass(frozen=True)
class Quadrats(PlaceRule):
    """Quadrats as the organizers of GeoLifeCLEF cut them (`grids.organizers_quadrats`), named as they name them.

    Shares count quadrats, and the draw is theirs as well: the permutation of the seed 1949.
    """

    kind: ClassVar[str] = "quadrats"
    seed: ClassVar[int] = ORGANIZERS_SEED
    counts_groups: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return f"quadrat of {self.side_m:g} m"

    def cells(self, latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> Cells:
        return organizers_quadrats(latitude, longitude, self.side_m)

    def named(self, row: pl.Series, column: pl.Series) -> pl.Expr:
        digits = [pl.lit(values).cast(pl.String).str.zfill(4) for values in (column, row)]
        return pl.concat_str(pl.lit("e"), digits[0], pl.lit("n"), digits[1])


RULES: Mapping[str, type[Rule]] = {
    rule.kind: rule for rule in (ByColumn, ByClass, ByDay, SquareBlocks, EqualAreaCells, Quadrats)
}


def rule_named(
    name: str,
    *,
    unit: str = "observation_id",
    label: str = "label",
    date: str = "date",
    lat: str = "lat",
    lon: str = "lon",
) -> Rule:
    """The rule that a person means: unit, day, class, block:METRES, cells:METRES, quadrats:METRES, or a column.

    Args:
        name: What was asked for.
        unit: The column of what is independent.
        label: The column of classes.
        date: The column of days.
        lat: The column of latitudes.
        lon: The column of longitudes.

    >>> rule_named("site"), rule_named("block:2500").side_m
    (ByColumn(column='site'), 2500.0)
    """
    word, colon, side = name.partition(":")
    grids: dict[str, type[PlaceRule]] = {"block": SquareBlocks, "cells": EqualAreaCells, "quadrats": Quadrats}
    if word in grids:
        return grids[word](_metres(name, side) if colon else DEFAULT_SIDE_M, lat, lon)
    plain: dict[str, Rule] = {"unit": ByColumn(unit), "day": ByDay(date), "class": ByClass(label)}
    return plain.get(name) or ByColumn(name)


def rule_from_data(data: Mapping[str, Any]) -> Rule:
    """The rule that `to_data` wrote.

    Raises:
        ValueError: For data that are no rule.
    """
    kind = RULES.get(str(data.get("rule")))
    given = {name: value for name, value in data.items() if name != "rule"}
    if kind is None or set(given) != {field.name for field in fields(kind)}:
        raise ValueError(f"{dict(data)} is no rule")
    return kind(**given)


def _metres(name: str, text: str) -> float:
    try:
        return parse_float(text)
    except ValueError as error:
        raise MisuseError(f"{name}: found {text!r}, expected a side in metres, such as block:5000.") from error


def _column(table: pl.DataFrame, name: str, where: object) -> pl.Series:
    if name not in table.columns:
        raise missing_column(where, name, table.columns)
    return table[name]


def _filled(values: pl.Series) -> pl.Series:
    """The values without the spaces around them; what is blank counts as missing."""
    stripped = values.str.strip_chars()
    return stripped.set(stripped == "", None)


def _degrees(table: pl.DataFrame, name: str, most: float, where: object) -> pl.Series:
    values = _column(table, name, where)
    if values.dtype == pl.String:
        values = parse_column(table, name, float, where)[name]
    values = values.cast(pl.Float64)
    wrong = (~(values.abs() <= most)).arg_true()  # not a number is wrong as well
    if len(wrong):
        row = int(wrong[0])
        expected = f"degrees from {-most:g} to {most:g}"
        raise InputError(where, line=row + 2, found=f"{values[row]} as {name}", expected=expected)
    return values
