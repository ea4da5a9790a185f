"""Lines of run files: lenient where nothing can be misunderstood, strict everywhere else.

A byte-order mark, CRLF, quotes, spaces around fields, empty lines and gzip are accepted.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from fieldmark.errors import InputError
from fieldmark.runs.problems import Problems

# A file without line breaks, or without a header, would fill the screen.
SHOWN_HEADER = 100
SEPARATORS = {"\t": "tabs", ",": "commas", ";": "semicolons"}


def read_lines(
    path: Path,
    problems: Problems,
    *,
    columns: Sequence[str | Sequence[str]],
    separator: str = ",",
    header: bool = True,
    more_columns: bool = False,
) -> Iterator[tuple[int, list[str]]]:
    """Yields the number and the fields of each line after the header.

    Args:
        path: The file.
        problems: Where lines with another number of fields are noted; they are not yielded.
        columns: The columns, each by its name, or by all the names it goes by.
        separator: What stands between two fields.
        header: Whether the first line names the columns.
        more_columns: Whether there may be others, anywhere; they are passed over.

    Raises:
        InputError: When there is no such file, the header is another one, or the file breaks off.
    """
    names = [[column] if isinstance(column, str) else list(column) for column in columns]
    with open_text(path) as text:
        reader = csv.reader(text, delimiter=separator, skipinitialspace=True)
        try:
            width, places = len(names), list(range(len(names)))
            if header:
                found = [field.strip() for field in next(reader, [])]
                width, places = (
                    len(found) if more_columns else width,
                    _places(path, found, names, separator, more_columns),
                )
            for fields in reader:
                if len(fields) == width:
                    yield reader.line_num, [fields[place].strip() for place in places]
                elif fields:
                    expected = f"{width} ({separator.join(name[0] for name in names)})"
                    problems.add(reader.line_num, f"{len(fields)} field{'s' if len(fields) != 1 else ''}", expected)
        except (csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
            line = reader.line_num + 1
            raise InputError(path, line=line, found=f"something unreadable ({error})", expected="CSV text") from error


def open_text(path: Path) -> io.TextIOWrapper:
    """Opens a file, plain or gzip, as text.

    Bytes that are not UTF-8 become a replacement character, which no label and no id of a benchmark contains.
    """
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
    except (FileNotFoundError, IsADirectoryError) as error:
        raise InputError(path, found="no such file", expected="a run file") from error
    opened = cast(IO[bytes], gzip.open(path) if zipped else path.open("rb"))  # noqa: SIM115  (closed with the wrapper)
    return io.TextIOWrapper(opened, encoding="utf-8-sig", errors="replace", newline="")


def _places(
    path: Path, found: Sequence[str], names: Sequence[Sequence[str]], separator: str, more_columns: bool
) -> list[int]:
    """Where each column stands in the header."""
    places = [next((place for place, field in enumerate(found) if field in known), -1) for known in names]
    if -1 in places or (not more_columns and places != list(range(len(found)))):
        expected = separator.join(name[0] for name in names)
        first = separator.join(found)
        cut = first if len(first) <= SHOWN_HEADER else f"{first[:SHOWN_HEADER]}..."
        shown = f"the header {cut!r}" if any(found) else "an empty file"
        hint = _other_separator(found, names, separator)
        raise InputError(path, line=1, found=shown, expected=f"the header {expected!r}", hint=hint)
    return places


def _other_separator(found: Sequence[str], names: Sequence[Sequence[str]], separator: str) -> str | None:
    """Says that the names of the columns are there, but something else stands between them."""
    for other, called in SEPARATORS.items():
        fields = [field.strip() for text in found for field in text.split(other)]
        if other != separator and all(any(name in fields for name in known) for known in names):
            return f"The fields are separated by {called}: write {SEPARATORS.get(separator, separator)} between them."
    return None
