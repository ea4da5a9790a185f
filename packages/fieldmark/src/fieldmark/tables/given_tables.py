"""Tables of truth, classes and media as people hand them over: one strict reader for all of them.

Fields are stripped and empty lines passed over. Everything else that could be misunderstood is refused with file and
line: a column twice, a field too many, a blank where something must stand, the same thing twice, an impossible value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fieldmark.errors import InputError
from fieldmark.storage.files import open_input
from fieldmark.tables.codes import all_different
from fieldmark.tables.frames import as_frame
from fieldmark.tables.reader import decoded, even_rows, plain_csv
from fieldmark.tables.schema import missing_column, parse_column

LINE = "line"


@dataclass(frozen=True)
class GivenTable:
    """A table with text columns, blank fields as nulls, and the line of each row in the column `line`.

    Args:
        frame: The rows.
        where: What to call it in messages.
    """

    frame: pl.DataFrame
    where: str

    def __contains__(self, column: str) -> bool:
        return column in self.frame.columns

    def filled(self, *columns: str) -> GivenTable:
        """The table, whose rows all have something in these columns.

        Raises:
            InputError: Names the first line that has nothing.
        """
        for column in columns:
            blank = self.frame[column].is_null().arg_true()
            if len(blank):
                raise self.at(int(blank[0]), f"no {column}", "one in each row")
        return self

    def once(self, columns: Sequence[str], what: str, expected: str) -> GivenTable:
        """The table, in which no combination of these columns stands twice.

        Raises:
            InputError: Names the lines where one stands first and again; `what` may name the columns in braces.
        """
        one = self.frame[columns[0]] if len(columns) == 1 else None
        if one is not None and all_different(one):
            return self
        repeated = (~self.frame.select(pl.struct(columns).is_first_distinct()).to_series()).arg_true()
        if len(repeated):
            row = int(repeated[0])
            values = {column: self.frame[column][row] for column in columns}
            same = [pl.col(column).eq_missing(pl.lit(value, pl.String)) for column, value in values.items()]
            first = self.frame.filter(*same)[LINE][0]
            again = what.format(**{column: repr(value) for column, value in values.items()})
            raise self.at(row, f"{again} (first in line {first})", expected)
        return self

    def parsed(self, column: str, kind: type) -> GivenTable:
        """The table with a column of numbers, dates or flags; blanks stay blank.

        Raises:
            InputError: Names the first line that holds something else.
        """
        frame = self.frame.drop(LINE) if column not in self.frame.columns else self.frame
        try:
            return GivenTable(parse_column(frame, column, kind, self.where).with_columns(self.frame[LINE]), self.where)
        except InputError as error:
            if error.line is None:
                raise
            raise self.at(error.line - 2, error.found, error.expected or "") from error

    def bounded(self, column: str, low: float, high: float, expected: str) -> GivenTable:
        """The table with a column of finite numbers above `low` and up to `high`; none may be missing."""
        table = self.filled(column).parsed(column, float)
        for row, value in enumerate(table.frame[column]):
            if not (math.isfinite(value) and low < value <= high):
                raise table.at(row, f"{self.frame[column][row]!r} as {column}", expected)
        return table

    def at(self, row: int, found: str, expected: str) -> InputError:
        """The error about a row."""
        return InputError(self.where, line=int(self.frame[LINE][row]), found=found, expected=expected)


def read_given(source: Any, what: str, required: tuple[str, ...]) -> GivenTable:
    """A table from a file, a frame or a mapping of columns.

    Raises:
        InputError: When it is no table, or lacks a required column.
    """
    table = _of_file(Path(source), what) if isinstance(source, (str, Path)) else _of_frame(source, what)
    for name in required:
        if name not in table:
            raise missing_column(table.where, name, [name for name in table.frame.columns if name != LINE])
    return table


def _of_file(path: Path, what: str) -> GivenTable:
    with open_input(path, f"a CSV table of {what}") as file:
        if (plain := plain_csv(file)) is not None and LINE not in plain.columns:
            return GivenTable(plain.with_columns(pl.int_range(2, pl.len() + 2).alias(LINE)), str(path))
        file.seek(0)
        data = file.read()
    rows: list[list[str]] = []
    lines: list[int] = []
    for line, fields in even_rows(decoded(data, path), path):
        rows.append(fields)
        lines.append(line)
    if not rows:
        raise InputError(path, found="an empty file", expected="a CSV table")
    header, body = rows[0], rows[1:]
    _refuse_twice(header, path, lines[0])
    columns = {name: [row[place] or None for row in body] for place, name in enumerate(header)}
    frame = pl.DataFrame({**columns, LINE: lines[1:]}, schema={**dict.fromkeys(header, pl.String), LINE: pl.Int64})
    return GivenTable(frame, str(path))


def _of_frame(source: Any, what: str) -> GivenTable:
    frame = as_frame(source, what)
    try:
        text = frame.with_columns(pl.all().cast(pl.String).str.strip_chars()).with_columns(
            pl.when(pl.all() == "").then(None).otherwise(pl.all()).name.keep()
        )
    except (pl.exceptions.PolarsError, ValueError, TypeError) as error:
        raise InputError(what, found=f"no table of plain values ({error})", expected="columns of text") from error
    text = text.rename({name: name.strip() for name in text.columns}) if text.width else text
    return GivenTable(text.with_columns(pl.int_range(2, pl.len() + 2).alias(LINE)), what)


def _refuse_twice(header: Sequence[str], where: object, line: int) -> None:
    seen: set[str] = set()
    for name in header:
        if name in seen or name == LINE:
            raise InputError(where, line=line, found=f"the column {name!r} again", expected="each column once")
        seen.add(name)
