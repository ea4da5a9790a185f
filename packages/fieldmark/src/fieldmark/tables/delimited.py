"""Large delimited tables: read by column, with the line of each row, in any encoding and compression.

Only the columns that are asked for are held in memory. A plain file of this machine is read where it lies. A table
inside an archive, at an address, in another encoding or compressed is parsed block by block as it is unpacked
(`table_text.py`); it is written out as a temporary file only where something is wrong with it, to say in which line.
"""

from __future__ import annotations

import codecs
import csv
import io
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from fieldmark.errors import InputError
from fieldmark.storage.release import Release
from fieldmark.tables.even_lines import EvenLines, first_uneven
from fieldmark.tables.table_text import (
    BLOCK_BYTES,
    DAMAGED,
    UTF8,
    Dialect,
    RowTooLongError,
    damaged,
    first_lines,
    is_plain,
    row_blocks,
    text_pieces,
)

CHUNK_BYTES = 1 << 20
HEADER_CHARACTERS = 1 << 20
SEPARATORS = ("\t", ",", ";", "|")


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
    text = _header_text(release, path, encoding)
    if not text.strip():
        raise InputError(release.where(path), found="an empty file", expected=required)
    line_end = "\r" if "\r" in text and "\n" not in text else "\n"
    rows = {mark: _first_row(text, mark) for mark in ([separator] if separator else SEPARATORS)}
    best = max(rows, key=lambda mark: len(rows[mark]))
    columns = tuple(name.strip() for name in rows[best])
    return TableHeader(columns, Dialect(best, line_end=line_end, encoding=encoding))


def read_columns(
    release: Release,
    path: str,
    dialect: Dialect,
    columns: Mapping[str, int],
    *,
    width: int | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> pl.DataFrame:
    """Reads some columns of a table as text; empty fields are nulls, and empty lines are skipped.

    Args:
        release: Where the table lies.
        path: Its path there.
        dialect: How it is written.
        columns: The place of each column, from 0, by the name that it gets.
        width: How many fields a line has; counted in the first row after the header if not given.
        block_bytes: How much of a table is unpacked at a time, where it has to be.

    Returns:
        The columns, and `line`: the number of the line where each row begins.

    Raises:
        InputError: When a line has another number of fields, the text is not in that encoding, or a
            column is not there.
    """
    rows = _read_in_blocks(release, path, dialect, columns, width, block_bytes)
    if rows is None:
        rows = _read_whole(release, path, dialect, columns, width)
    return rows.filter(~pl.all_horizontal(pl.exclude("line").is_null())) if columns else rows


def _header_text(release: Release, path: str, encoding: str) -> str:
    """The beginning of a table, without the byte order mark."""
    decoder, text = codecs.getincrementaldecoder("utf-8-sig")(), ""
    try:
        for piece in text_pieces(release, path, encoding, CHUNK_BYTES):
            text += decoder.decode(piece)
            if len(text) >= HEADER_CHARACTERS:
                break
    except (UnicodeError, *DAMAGED):  # said with its line
        with _as_utf8(release, path, encoding) as local, local.open(encoding="utf-8-sig", newline="") as file:
            try:
                return file.read(HEADER_CHARACTERS)
            except UnicodeDecodeError as error:
                raise _not_text(release.where(path), local, encoding) from error
    return text


def _read_in_blocks(
    release: Release, path: str, dialect: Dialect, columns: Mapping[str, int], width: int | None, block_bytes: int
) -> pl.DataFrame | None:
    """The rows of a table that is no plain local file, parsed as it is unpacked; None where anything is unusual."""
    if is_plain(path, dialect.encoding) and release.local(path) is not None:
        return None
    frames: list[pl.DataFrame] = []
    lines: EvenLines | None = None
    passed_over, lines_before = dialect.header_lines, 0
    try:
        for block in row_blocks(text_pieces(release, path, dialect.encoding, block_bytes), dialect):
            width = width or _width(io.TextIOWrapper(io.BytesIO(block), "utf-8-sig", "replace", newline=""), dialect)
            if any(place >= width for place in columns.values()):
                return None
            lines = lines or _even_lines(width, dialect)
            lines.feed(block)
            rows = _scan(block, replace(dialect, header_lines=passed_over), columns, width)
            first, number_of_lines = _lines_of_rows(block, dialect, len(rows) + passed_over)
            if len(first) != len(rows) + passed_over:
                return None
            # Rechunked, columns give back the room that the parser had taken beyond their own size.
            frames.append(rows.with_columns(line=lines_before + 1 + first[passed_over:]).rechunk())
            lines_before, passed_over = lines_before + number_of_lines, 0
    except (pl.exceptions.PolarsError, RowTooLongError, UnicodeError, *DAMAGED):
        return None
    return _put_together(frames) if lines is not None and lines.are_even() else None


def _put_together(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all frames, each column in one piece. The frames are given up, so that no two copies are held."""
    columns = deque(zip(*(frame.get_columns() for frame in frames), strict=True))
    frames.clear()
    whole = []
    while columns:
        whole.append(pl.concat(columns.popleft(), rechunk=True))
    return pl.DataFrame(whole)


def _lines_of_rows(block: bytes, dialect: Dialect, rows: int) -> tuple[pl.Series, int]:
    """The line of a block, from 0, in which each of its rows begins, and how many lines it has."""
    end = dialect.line_end.encode()
    if dialect.quote is None:
        return pl.int_range(rows, eager=True), rows
    lines = block.count(end) + (not block.endswith(end))
    if dialect.quote.encode() in block:
        return pl.Series(first_lines(block, dialect)), lines
    return pl.int_range(lines, eager=True), lines


def _read_whole(
    release: Release, path: str, dialect: Dialect, columns: Mapping[str, int], width: int | None
) -> pl.DataFrame:
    """The rows of a table that is a local file, or is made one; what is wrong with it is said."""
    where = release.where(path)
    with _as_utf8(release, path, dialect.encoding) as local:
        if not width:
            with local.open(encoding="utf-8-sig", errors="replace", newline="") as file:
                width = _width(file, dialect)
        for name, place in columns.items():
            if place >= width:
                found = f"{width} fields in a line"
                raise InputError(where, found=found, expected=f"at least {place + 1}: {name} is the last of them")
        if width == 0:
            return pl.DataFrame(schema={"line": pl.Int64, **dict.fromkeys(columns, pl.String)})
        try:
            rows = _scan(local, dialect, columns, width)
        except pl.exceptions.PolarsError as error:
            raise _unreadable(where, local, dialect, width) from error
        lines = _even_lines(width, dialect)
        lines.feed(np.memmap(local, np.uint8, mode="r"))
        if not lines.are_even() and (uneven := _uneven(where, local, dialect, width)) is not None:
            raise uneven
        return _with_true_lines(rows, local, dialect)


def _even_lines(width: int, dialect: Dialect) -> EvenLines:
    return EvenLines(width, separator=dialect.separator, quote=dialect.quote, line_end=dialect.line_end)


def _scan(source: Path | bytes, dialect: Dialect, columns: Mapping[str, int], width: int) -> pl.DataFrame:
    """The columns of a text as polars reads them, stripped, and `line`: the number of each row after the header."""
    table = pl.scan_csv(
        source,
        has_header=False,
        skip_rows=dialect.header_lines,
        separator=dialect.separator,
        quote_char=dialect.quote,
        eol_char=dialect.line_end,
        schema={str(place): pl.String() for place in range(width)},
        missing_columns="insert",
        row_index_name="line",
        row_index_offset=dialect.header_lines + 1,
        raise_if_empty=False,
        glob=False,
    )
    stripped = [pl.col(str(place)).str.strip_chars().alias(name) for name, place in columns.items()]
    rows = table.select(pl.col("line").cast(pl.Int64), *stripped).collect()
    # Fields that are empty without quotes are nulls already; few columns have others with nothing in them.
    blank = rows.select((pl.col(*columns).str.len_bytes() == 0).any()) if columns else pl.DataFrame()
    emptied = [name for name in blank.columns if blank[name].item()]
    return rows.with_columns(pl.when(pl.col(name) != "").then(pl.col(name)).alias(name) for name in emptied)


@contextmanager
def _as_utf8(release: Release, path: str, encoding: str) -> Iterator[Path]:
    """The table as a local file in UTF-8."""
    with tempfile.TemporaryDirectory(prefix="fieldmark-") as folder:
        kept = release.local(path) if is_plain(path, encoding) else None
        if kept is not None:
            yield kept
            return
        copy = Path(folder) / "table"
        try:
            with copy.open("wb") as file:
                file.writelines(text_pieces(release, path, encoding, CHUNK_BYTES))
        except UnicodeError as error:
            found, expected = f"bytes that are not {encoding}", "text in the encoding that is stated"
            raise InputError(release.where(path), found=found, expected=expected) from error
        except DAMAGED as error:
            raise damaged(release.where(path), path) from error
        yield copy


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


def _width(file: IO[str], dialect: Dialect) -> int:
    """How many fields the first row after the header has; those of the header where none follows."""
    width = 0
    for number, row in enumerate(_reader(file, dialect)):
        width = len(row) or width
        if number >= dialect.header_lines and row:
            break
    return width


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
        while chunk := file.read(CHUNK_BYTES):
            lines, last = lines + chunk.count(mark), chunk[-1:]
    return lines + (last not in (mark, b""))


def _unreadable(where: str, local: Path, dialect: Dialect, width: int) -> InputError:
    """The sentence for a table that cannot be read: its first uneven line, or what else is wrong."""
    try:
        with local.open(encoding=UTF8, newline="") as file:
            for _ in _reader(file, dialect, strict=True):
                pass
    except UnicodeDecodeError:
        return _not_text(where, local, UTF8)
    except csv.Error as error:
        return InputError(where, found=f"a table that cannot be parsed ({error})", expected="quotes that close")
    found, expected = "a table that cannot be parsed", "lines with the same number of fields"
    return _uneven(where, local, dialect, width) or InputError(where, found=found, expected=expected)


def _uneven(where: str, local: Path, dialect: Dialect, width: int) -> InputError | None:
    """The sentence for the first line that has another number of fields than it should; None where there is none."""
    try:
        with local.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            uneven = first_uneven(
                file,
                width,
                separator=dialect.separator,
                quote=dialect.quote,
                header_lines=dialect.header_lines,
                empty_lines=True,
            )
    except csv.Error as error:
        return InputError(where, found=f"a table that cannot be parsed ({error})", expected="quotes that close")
    if uneven is None:
        return None
    found = f"{uneven.fields} field{'s' if uneven.fields > 1 else ''}"
    return InputError(where, line=uneven.line, found=found, expected=f"{width}, as in the first line")


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
