"""The reader of text tables: strict about whatever could be misunderstood, and with the line of what is wrong.

Tables of releases, truths, classes, checklists, lists of names and run files are all read here; only tables of other
encodings and of millions of rows take the blocks of `delimited`. Ways in, from the quickest to the most lenient:
`plain_csv` for files that can be read in one way only, `read_csv` for any whole table, `even_rows` where the line of
each row is needed, `listed_rows` for lists of names, and `rows_of` for run files, whose readers list all that is wrong.
"""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import zlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from fieldmark.errors import InputError
from fieldmark.storage.files import open_input
from fieldmark.tables.even_lines import count_separators, first_uneven
from fieldmark.tables.schema import missing_column

# How packed files begin.
GZIP_START, XZ_START = b"\x1f\x8b", b"\xfd7zXZ\x00"
# What stands for bytes that are no text.
REPLACED = "\ufffd"
# Quotes, carriage returns and zeros mean something to readers of CSV; Python alone takes the others for white space.
UNUSUAL = (b'"', b"\r", b"\0", b"\x1c", b"\x1d", b"\x1e", b"\x1f")
# White space of ASCII besides those; a text of ASCII without any has no spaces around its fields.
BLANKS = (b" ", b"\t", b"\v", b"\f")
LINE_FEED, COMMA = b"\n,"
# What is read of a file at a time: the next block takes the memory of the last one, which the system has to give once.
BYTES_AT_ONCE = 4 << 20


def decoded(data: bytes, where: object, expected: str = "a CSV table in UTF-8") -> str:
    """The text of a file in UTF-8, without a byte-order mark.

    Raises:
        InputError: Names the line that is in another encoding.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(where, line=line, found="bytes that are not UTF-8", expected=expected) from error


def rows_of(
    text: Iterable[str], where: object, *, separator: str = ",", strict: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """The number of the line and the fields of each row, without the spaces around them; empty lines are skipped.

    Args:
        text: An open text whose line ends are left as they are (`newline=""`).
        where: What to call it.
        separator: What stands between two fields.
        strict: Whether text behind a closing quote is refused.

    Raises:
        InputError: When it breaks off, or quotes do not close.
    """
    reader = csv.reader(text, delimiter=separator, skipinitialspace=True, strict=strict)
    try:
        for fields in reader:
            if fields and fields != [""]:
                yield reader.line_num, [field.strip() for field in fields]
    except (csv.Error, EOFError, OSError, zlib.error) as error:
        line = reader.line_num + (not strict)
        found = f"something unreadable ({error})"
        raise InputError(where, line=line, found=found, expected="a CSV table" if strict else "CSV text") from error


def even_rows(text: str, where: object, *, separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The same of a text whose rows all have as many fields as the first.

    Raises:
        InputError: Names the first line that has more or fewer.
    """
    width: int | None = None
    for line, fields in rows_of(io.StringIO(text, newline=""), where, separator=separator):
        width = len(fields) if width is None else width
        if len(fields) != width:
            found = f"{len(fields)} field{'s' if len(fields) > 1 else ''}"
            raise InputError(where, line=line, found=found, expected=f"{width}, as in the header")
        yield line, fields


def listed_rows(path: Path, names: Collection[str], expected: str) -> list[tuple[int, dict[str, str]]]:
    """The rows of a list of names: a table with a header, or one name on each line.

    Args:
        path: The file; tabs separate its fields where the first line has one, else commas.
        names: How columns of names are called, in small letters; where the header has none of them there is no header.
        expected: What the file should hold, for messages.

    Returns:
        The line of each row, and its fields by column, in small letters; of a list without a header, the first field as
        `name`.

    Raises:
        InputError: When it cannot be read, or a line of a table has more or fewer fields than its header.
    """
    with open_input(path, expected) as file:
        text = decoded(file.read(), path, f"{expected} in UTF-8")
    separator = "\t" if "\t" in text.partition("\n")[0] else ","
    first = next(rows_of(io.StringIO(text, newline=""), path, separator=separator), (1, []))[1]
    header = [name.lower() for name in first]
    if not set(header) & set(names):
        lenient = rows_of(io.StringIO(text, newline=""), path, separator=separator, strict=False)
        return [(line, {"name": fields[0]}) for line, fields in lenient]
    rows = list(even_rows(text, path, separator=separator))[1:]
    return [(line, dict(zip(header, fields, strict=True))) for line, fields in rows]


def read_csv(file: IO[bytes], where: object, *, required: Iterable[str] = (), separator: str = ",") -> pl.DataFrame:
    """Reads a CSV file, plain or packed by gzip or xz, with every column as text; empty fields become nulls.

    Empty lines at the end are skipped.

    Raises:
        InputError: When the file is not a table of UTF-8 text, a line has another number of fields than the header, or
            a required column is missing.
    """
    data = _unpacked(file.read(), where)
    if data.endswith((b"\n\n", b"\n\r\n")):
        data = data.rstrip(b"\r\n") + b"\n"
    try:
        frame = pl.read_csv(data, separator=separator, infer_schema=False)
    except pl.exceptions.NoDataError as error:
        raise InputError(where, found="an empty file", expected="a CSV table") from error
    except pl.exceptions.PolarsError as error:
        raise _unreadable(data, where, separator) from error
    if any(REPLACED in name for name in frame.columns):  # polars refuses other encodings in fields, not in the header
        decoded(data, where)
    refuse_uneven(data, where, frame, separator=separator)
    frame = frame.rename({name: name.strip().removeprefix("\ufeff") for name in frame.columns})
    for name in required:
        if name not in frame.columns:
            raise missing_column(where, name, frame.columns)
    return frame


def refuse_uneven(data: bytes, where: object, frame: pl.DataFrame, *, separator: str = ",") -> None:
    """Refuses a table in which a line has another number of fields than the header; one column may have blanks.

    Args:
        data: The text of the table.
        where: What to call it.
        frame: All of its columns as polars has read them: without a word about lines that are too short. Lines that are
            too long it refuses itself, so that the number of separators tells whether all have as many.
        separator: What stands between two fields.
    """
    if frame.width > 1 and count_separators(data, separator) != (frame.height + 1) * (frame.width - 1):
        error = _uneven(data, where, separator)
        if error is not None:
            raise error


def _unpacked(data: bytes, where: object) -> bytes:
    """The bytes of a file that may be packed, as its first bytes tell."""
    try:
        if data.startswith(GZIP_START):
            return gzip.decompress(data)
        return lzma.decompress(data) if data.startswith(XZ_START) else data
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        hint = "Was the download cut short?"
        raise InputError(where, found="a packed file that is damaged", expected="a CSV table", hint=hint) from error


def _unreadable(data: bytes, where: object, separator: str) -> InputError:
    """The error for a table that polars does not read."""
    line = decoded(data, where).count("\n")
    uneven = _uneven(data, where, separator)
    return uneven or InputError(where, line=line, found="a quote that does not close", expected="a CSV table")


def _uneven(data: bytes, where: object, separator: str) -> InputError | None:
    """The error for a table whose lines do not have as many fields as its header; None where they do."""
    text = decoded(data, where)
    try:
        width = len(next(csv.reader(io.StringIO(text, newline=""), delimiter=separator)))
        uneven = first_uneven(io.StringIO(text, newline=""), width, separator=separator)
    except csv.Error as error:
        return InputError(where, found=f"something unreadable ({error})", expected="a CSV table")
    if uneven is None:
        return None
    if not uneven.fields:
        return InputError(where, line=uneven.line, found="an empty line", expected=f"{width} fields, as in the header")
    found = f"{uneven.fields} field{'s' if uneven.fields > 1 else ''}"
    return InputError(where, line=uneven.line, found=found, expected=f"{width}, as in the header")


def plain_csv(file: IO[bytes]) -> pl.DataFrame | None:
    r"""The fields of a file as text, blank ones as null, without the spaces around them; None where it is not plain.

    Plain is UTF-8 with commas between fields, as many in every line as in the header, whose names are all different; no
    quotes, no empty lines, and line feeds alone at the ends of lines.

    >>> import io
    >>> plain_csv(io.BytesIO(b"id,label\na, 1\nb,\n")).rows()
    [('a', '1'), ('b', None)]
    >>> plain_csv(io.BytesIO(b"id,label\na,1\nb\n")) is None
    True
    """
    first = file.readline()
    header = first.decode(errors="replace").removesuffix("\n").split(",")
    if len(set(header)) < len(header) or any(name != name.strip() or not name for name in header):
        return None
    if first.startswith(b"\xef\xbb\xbf") or any(mark in first for mark in UNUSUAL):
        return None
    blocks = []
    while data := file.read(BYTES_AT_ONCE):
        block = _plain_lines(data + file.readline(), header)
        if block is None:
            return None
        blocks.append(block)
    return pl.concat(blocks, rechunk=False) if blocks else None


def _plain_lines(data: bytes, header: list[str]) -> pl.DataFrame | None:
    """The fields of whole lines; None where they are not plain."""
    if any(mark in data for mark in UNUSUAL):
        return None
    text = np.frombuffer(data, np.uint8)
    lines = np.count_nonzero(text == LINE_FEED) + (not data.endswith(b"\n"))
    # Of several columns an empty line has too few commas as well; a line that makes up for it, polars refuses.
    if np.count_nonzero(text == COMMA) != lines * (len(header) - 1):
        return None
    try:
        frame = pl.read_csv(data, quote_char=None, infer_schema=False, has_header=False, new_columns=header)
    except pl.exceptions.PolarsError:
        return None
    if frame.height != lines or frame.width != len(header):
        return None
    if not data.isascii() or any(mark in data for mark in BLANKS):
        frame = frame.with_columns(pl.all().str.strip_chars())
    blank = [name for name in frame.columns if (frame[name] == "").any()]
    if frame.width == 1 and (blank or frame.to_series().has_nulls()):
        return None  # empty lines are passed over
    return frame.with_columns(
        pl.when(pl.col(name) == "").then(None).otherwise(pl.col(name)).alias(name) for name in blank
    )
