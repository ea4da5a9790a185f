"""Large delimited tables: read by column, with the line of each row, in any encoding and compression.

Only the columns that are asked for are held in memory. A table inside an archive, in another encoding or compressed is
first written out as a temporary file, so that its size in memory never depends on what else it holds.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import polars as pl

from fieldmark.errors import InputError
from fieldmark.release import Release

CHUNK_CHARACTERS = 1 << 20
HEADER_CHARACTERS = 1 << 20
SEPARATORS = ("\t", ",", ";", "|")
COMPRESSIONS: Mapping[str, Callable[[IO[bytes]], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
UTF8 = "utf-8"


@dataclass(frozen=True)
class Dialect:
    """How the lines and fields of a table are written.

    Args:
        separator: What stands between two fields.
        quote: What encloses a field; None where quotes are ordinary characters.
        line_end: What ends a line. A carriage return before a line feed is always part of the end.
        encoding: Of its text.
        header_lines: How many lines to pass over.
    """

    separator: str = ","
    quote: str | None = '"'
    line_end: str = "\n"
    encoding: str = UTF8
    header_lines: int = 1


@dataclass(frozen=True)
class TableHeader:
    """The first line of a table that names its own columns, and how it is written."""

    columns: tuple[str, ...]
    dialect: Dialect


def read_header(
    release: Release, path: str, *, separator: str | None = None, encoding: str = UTF8, required: str = "a table"
) -> TableHeader:
    """Reads the names of the columns, and finds the separator where it is not given: the one that makes most fields.

    Raises:
        InputError: When the file is empty, or is not text in that encoding.
    """
    with _as_utf8(release, path, encoding) as local, local.open(encoding="utf-8-sig", newline="") as file:
        try:
            text = file.read(HEADER_CHARACTERS)
        except UnicodeDecodeError as error:
            raise _not_text(release.where(path), local, encoding) from error
    if not text.strip():
        raise InputError(release.where(path), found="an empty file", expected=required)
    line_end = "\r" if "\r" in text and "\n" not in text else "\n"
    rows = {mark: _first_row(text, mark) for mark in ([separator] if separator else SEPARATORS)}
    best = max(rows, key=lambda mark: len(rows[mark]))
    columns = tuple(name.strip() for name in rows[best])
    return TableHeader(columns, Dialect(best, line_end=line_end, encoding=encoding))


def read_columns(
    release: Release, path: str, dialect: Dialect, columns: Mapping[str, int], *, width: int | None = None
) -> pl.DataFrame:
    """Reads some columns of a table as text; empty fields are nulls, and empty lines are passed over.

    Args:
        release: Where the table lies.
        path: Its path there.
        dialect: How it is written.
        columns: The place of each column, from 0, by the name that it gets.
        width: How many fields a line has; counted in the first line if not given.

    Returns:
        The columns, and `line`: the number of the line where each row begins.

    Raises:
        InputError: When a line has more fields than the first, the text is not in that encoding, or a column is not
            there.
    """
    where = release.where(path)
    with _as_utf8(release, path, dialect.encoding) as local:
        fields = width or _width(local, dialect)
        for name, place in columns.items():
            if place >= fields:
                found = f"{fields} fields in a line"
                raise InputError(where, found=found, expected=f"at least {place + 1}: {name} is the last of them")
        if fields == 0:
            return pl.DataFrame(schema={"line": pl.Int64, **dict.fromkeys(columns, pl.String)})
        schema = {str(place): pl.String() for place in range(fields)}
        try:
            table = pl.scan_csv(
                local,
                has_header=False,
                skip_rows=dialect.header_lines,
                separator=dialect.separator,
                quote_char=dialect.quote,
                eol_char=dialect.line_end,
                schema=schema,
                missing_columns="insert",
                row_index_name="line",
                row_index_offset=dialect.header_lines + 1,
                raise_if_empty=False,
                glob=False,
            )
            chosen = [pl.col("line").cast(pl.Int64), *(_stripped(str(place), name) for name, place in columns.items())]
            rows = table.select(chosen).collect()
        except pl.exceptions.PolarsError as error:
            raise _unreadable(where, local, dialect, fields) from error
        rows = _with_true_lines(rows, local, dialect)
    return rows.filter(~pl.all_horizontal(pl.exclude("line").is_null())) if columns else rows


def _stripped(column: str, name: str) -> pl.Expr:
    """A column of text without blanks around it; null where nothing is left."""
    strip = pl.col(column).str.strip_chars()
    return pl.when(strip != "").then(strip).alias(name)


@contextmanager
def _as_utf8(release: Release, path: str, encoding: str) -> Iterator[Path]:
    """The table as a local file in UTF-8."""
    suffix = Path(path).suffix.lower()
    with release.local_copy(path) as local:
        if codecs.lookup(encoding).name == UTF8 and suffix not in COMPRESSIONS:
            yield local
            return
        with tempfile.TemporaryDirectory(prefix="fieldmark-") as folder:
            copy = Path(folder) / "table"
            try:
                with local.open("rb") as raw:
                    _transcode(COMPRESSIONS[suffix](raw) if suffix in COMPRESSIONS else raw, copy, encoding)
            except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile, OSError) as error:
                found, hint = f"a damaged {suffix} file", "Was the download cut short?"
                raise InputError(release.where(path), found=found, expected="a table", hint=hint) from error
            except UnicodeError as error:
                found, expected = f"bytes that are not {encoding}", "text in the encoding that is stated"
                raise InputError(release.where(path), found=found, expected=expected) from error
            yield copy


def _transcode(plain: IO[bytes], copy: Path, encoding: str) -> None:
    with (
        io.TextIOWrapper(plain, encoding=encoding, newline="") as source,
        copy.open("w", encoding=UTF8, newline="") as target,
    ):
        while text := source.read(CHUNK_CHARACTERS):
            target.write(text)


def _reader(file: Any, dialect: Dialect, *, strict: bool = False) -> Any:
    """The rows of a table by Python's own reader, which is slow and tells where it is."""
    if dialect.quote is None:
        return csv.reader(file, delimiter=dialect.separator, quoting=csv.QUOTE_NONE, strict=strict)
    return csv.reader(file, delimiter=dialect.separator, quotechar=dialect.quote, strict=strict)


def _first_row(text: str, separator: str) -> list[str]:
    try:
        return list(next(_reader(io.StringIO(text, newline=""), Dialect(separator))))
    except csv.Error:
        return []


def _width(local: Path, dialect: Dialect) -> int:
    """How many fields the header or the first row after it has, whichever is longer."""
    with local.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = _reader(file, dialect)
        first: Sequence[str] = ()
        for number, row in enumerate(rows):
            first = max(first, row, key=len)
            if number >= dialect.header_lines and row:
                break
    return len(first)


def _with_true_lines(rows: pl.DataFrame, local: Path, dialect: Dialect) -> pl.DataFrame:
    """The rows with the lines where they begin, which are not their numbers where a field holds a line end."""
    if dialect.quote is None or _line_count(local, dialect.line_end) <= len(rows) + dialect.header_lines:
        return rows
    starts = [1]
    with local.open(encoding="utf-8-sig", newline="") as file:
        reader = _reader(file, dialect)
        try:
            starts += [reader.line_num + 1 for _ in reader]
        except csv.Error:  # a field beyond Python's limit: the numbers of the rows are the best there is
            return rows
    first = dialect.header_lines
    if len(starts) < first + len(rows):
        return rows
    return rows.with_columns(line=pl.Series(starts[first : first + len(rows)], dtype=pl.Int64))


def _line_count(local: Path, line_end: str) -> int:
    mark, lines, last = line_end.encode(), 0, b""
    with local.open("rb") as file:
        while chunk := file.read(CHUNK_CHARACTERS):
            lines, last = lines + chunk.count(mark), chunk[-1:]
    return lines + (last not in (mark, b""))


def _unreadable(where: str, local: Path, dialect: Dialect, width: int) -> InputError:
    """The sentence for a table that cannot be read: its first line with too many fields, or what else is wrong."""
    try:
        with local.open(encoding=UTF8, newline="") as file:
            rows = _reader(file, dialect, strict=True)
            for number, row in enumerate(rows):
                if number >= dialect.header_lines and len(row) > width:
                    found, line = f"{len(row)} fields", rows.line_num
                    return InputError(where, line=line, found=found, expected=f"{width}, as in the first line")
    except UnicodeDecodeError:
        return _not_text(where, local, UTF8)
    except csv.Error as error:
        return InputError(where, found=f"a table that cannot be parsed ({error})", expected="quotes that close")
    return InputError(where, found="a table that cannot be parsed", expected="lines with the same number of fields")


def _not_text(where: str, local: Path, encoding: str) -> InputError:
    hint = 'State its encoding in occurrences.toml, such as encoding = "cp1252".'
    found, expected = f"bytes that are not {encoding.upper()}", "text in that encoding"
    return InputError(where, line=_first_undecodable(local), found=found, expected=expected, hint=hint)


def _first_undecodable(local: Path) -> int | None:
    with local.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode(UTF8)
            except UnicodeDecodeError:
                return number
    return None
