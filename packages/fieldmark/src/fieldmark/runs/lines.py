"""Lines of run files: lenient where nothing can be misunderstood, strict everywhere else.

A byte-order mark, CRLF, quotes, spaces around fields, empty lines and gzip are accepted. A run may also be a table in
memory (`TableRun`), whose rows are read as the lines of a file would be.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import polars as pl

from fieldmark.errors import InputError
from fieldmark.runs.problems import RunProblems
from fieldmark.storage.files import open_input
from fieldmark.tables.frames import as_frame
from fieldmark.tables.reader import rows_of

SEPARATORS = {"\t": "tabs", ",": "commas", ";": "semicolons"}


class TableRun:
    """A run that is a table in memory (`tables.frames`).

    Args:
        table: One row per line of what would be the file, under the names of its columns.
    """

    suffix = ""

    def __init__(self, table: Any) -> None:
        self.frame = as_frame(table, "the run")

    def __str__(self) -> str:
        return "the run"

    @property
    def stripped(self) -> pl.DataFrame:
        """The table, whose first column is text without spaces around it."""
        return self.frame.with_columns(self.frame.to_series(0).cast(pl.String).str.strip_chars())

    def rows(self, *, header: bool) -> Iterator[tuple[int, list[str]]]:
        """The fields of each row as text, numbers with all their digits; the names of the columns first if asked."""
        if header:
            yield 1, list(self.frame.columns)
        for number, row in enumerate(self.frame.iter_rows(), 2 if header else 1):
            yield number, ["" if value is None else str(value) for value in row]


RunSource = Path | TableRun


def read_lines(
    source: RunSource,
    problems: RunProblems,
    *,
    columns: Sequence[str | Sequence[str]],
    separator: str = ",",
    header: bool = True,
    more_columns: bool = False,
) -> Iterator[tuple[int, list[str]]]:
    """Yields the number and the fields of each line after the header.

    Args:
        source: The file, or a table.
        problems: Where lines with another number of fields are noted; they are not yielded.
        columns: The columns, each by its name, or by all the names it goes by.
        separator: What stands between two fields.
        header: Whether the first line names the columns.
        more_columns: Whether there may be others, anywhere; they are skipped.

    Raises:
        InputError: When there is no such file, the header is another one, or the file breaks off.
    """
    names = [[column] if isinstance(column, str) else list(column) for column in columns]
    rows = _rows(source, separator, header=header)
    width, places = len(names), list(range(len(names)))
    if header:
        number, header_fields = next(rows, (1, []))
        places = _places(source, number, header_fields, names, separator, more_columns)
        width = len(header_fields) if more_columns else width
    for number, fields in rows:
        if len(fields) == width:
            yield number, [fields[place] for place in places]
        else:
            expected = f"{width} ({separator.join(name[0] for name in names)})"
            problems.add(number, f"{len(fields)} field{'s' if len(fields) != 1 else ''}", expected)


def read_header(source: RunSource, separator: str = ",") -> list[str]:
    """The fields of the first line that is not empty.

    Raises:
        InputError: When there is no such file, or it cannot be read.
    """
    return next(_rows(source, separator, header=True), (1, []))[1]


def _rows(source: RunSource, separator: str, *, header: bool) -> Iterator[tuple[int, list[str]]]:
    """Every line that is not empty: its number, and its fields without the spaces around them."""
    if isinstance(source, TableRun):
        yield from ((number, [field.strip() for field in row]) for number, row in source.rows(header=header))
        return
    with open_text(source) as text:
        yield from rows_of(text, source, separator=separator, strict=False)


def open_text(path: Path) -> io.TextIOWrapper:
    """Opens a file, plain or gzip, as text.

    Bytes that are not UTF-8 become a replacement character, which no label and no id of a benchmark contains.
    """
    with open_input(path, "a run file") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    opened = cast(IO[bytes], gzip.open(path) if zipped else path.open("rb"))  # noqa: SIM115  (closed with the wrapper)
    return io.TextIOWrapper(opened, encoding="utf-8-sig", errors="replace", newline="")


def _places(
    source: RunSource,
    line: int,
    header: Sequence[str],
    names: Sequence[Sequence[str]],
    separator: str,
    more_columns: bool,
) -> list[int]:
    """Where each column stands in the header."""
    found = [[place for place, field in enumerate(header) if field in spellings] for spellings in names]
    for own in found:
        if len(own) > 1:
            again = f"the column {header[own[1]]!r} again"
            again = again if header[own[0]] == header[own[1]] else f"{header[own[1]]!r} beside {header[own[0]]!r}"
            raise InputError(source, line=line, found=again, expected="each column once, by one of its names")
    places = [own[0] if own else -1 for own in found]
    if -1 in places or (not more_columns and places != list(range(len(header)))):
        expected = separator.join(name[0] for name in names)
        shown = f"the header {separator.join(header)!r}" if any(header) else "an empty file"
        hint = _header_hint(header, places, names, separator)
        raise InputError(source, line=line, found=shown, expected=f"the header {expected!r}", hint=hint)
    return places


def _header_hint(
    header: Sequence[str], places: Sequence[int], names: Sequence[Sequence[str]], separator: str
) -> str | None:
    """Says what is wrong with a header: another order, columns too many, or something else between its names."""
    if -1 not in places:
        if len(header) == len(places):
            return "The columns stand in another order: exchange them, in all lines."
        return f"Leave out the column {next(name for place, name in enumerate(header) if place not in places)!r}."
    for other, called in SEPARATORS.items():
        fields = [field.strip() for text in header for field in text.split(other)]
        if other != separator and all(any(name in fields for name in spellings) for spellings in names):
            return f"The fields are separated by {called}: write {SEPARATORS.get(separator, separator)} between them."
    return None
