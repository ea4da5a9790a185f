"""The text of a table as it comes: unpacked, in UTF-8, and cut into blocks of whole rows.

Nothing is written out and no more than a few blocks are in memory, however long the table is.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.storage.release import Release

UTF8: Final = "utf-8"
COMPRESSIONS: Final[Mapping[str, Callable[[IO[bytes]], Any]]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
}
DAMAGED: Final = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile, OSError)
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Small enough that what a block becomes is still in the processor's cache when the next step reads it.
BLOCK_BYTES: Final = 8 << 20
# A row that is longer has a quote that does not close.
LONGEST_ROW_BYTES: Final = 64 << 20


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


class RowTooLongError(ValueError):
    """A block of text in which no row ends."""


def is_plain(path: str, encoding: str) -> bool:
    """Whether the bytes of a table are its text in UTF-8."""
    return codecs.lookup(encoding).name == UTF8 and Path(path).suffix.lower() not in COMPRESSIONS


def unpacked(file: IO[bytes], path: str) -> IO[bytes]:
    """The file without its compression, which its name tells."""
    opener = COMPRESSIONS.get(Path(path).suffix.lower())
    return file if opener is None else opener(file)


def told_encoding(release: Release, path: str) -> str:
    """The encoding that the first bytes of a table tell, by a byte order mark mostly; UTF-8 where they do not.

    Raises:
        InputError: When the table is compressed and damaged.
    """
    try:
        with release.open(path) as file, unpacked(file, path) as plain:
            start = bytes(plain.read(4))
    except DAMAGED as error:
        raise damaged(release.where(path), path) from error
    if len(start) == 4 and 0 in start and start.count(0) == 2:  # UTF-16 without a mark: every other byte of ASCII is 0
        return "utf-16-le" if start[0] else "utf-16-be"
    # The mark of UTF-32 begins with that of UTF-16.
    return next((encoding for mark, encoding in _MARKS if start.startswith(mark)), UTF8)


def first_other_line(release: Release, path: str) -> tuple[int, str] | None:
    """The first line of a table that is not UTF-8, and what it says in Windows-1252; None where all is.

    Raises:
        InputError: When the table is compressed and damaged.
    """
    try:
        with release.open(path) as file, unpacked(file, path) as plain:
            for number, line in enumerate(plain, 1):
                try:
                    line.decode(UTF8)
                except UnicodeDecodeError:
                    return number, line.decode("cp1252", "replace").strip()
    except DAMAGED as error:
        raise damaged(release.where(path), path) from error
    return None


def damaged(where: str, path: str) -> InputError:
    """The error for a compressed table that cannot be unpacked."""
    found, hint = f"a damaged {Path(path).suffix.lower()} file", "Was the download cut short?"
    return InputError(where, found=found, expected="a table", hint=hint)


def text_pieces(release: Release, path: str, encoding: str, piece_bytes: int) -> Iterator[bytes]:
    """The text of a table in UTF-8, a piece at a time; some pieces may be empty.

    Raises:
        UnicodeError: When the text is in another encoding. What is said to be UTF-8 is passed on as it is.
        OSError, EOFError, lzma.LZMAError, zlib.error: When it is compressed and damaged.
    """
    as_it_is = codecs.lookup(encoding).name == UTF8
    with release.open(path) as file, unpacked(file, path) as plain:
        decoder = codecs.getincrementaldecoder(encoding)()
        while piece := plain.read(piece_bytes):
            yield piece if as_it_is else decoder.decode(piece).encode(UTF8)
        if not as_it_is:
            yield decoder.decode(b"", final=True).encode(UTF8)


def row_blocks(pieces: Iterator[bytes], dialect: Dialect) -> Iterator[bytes]:
    r"""The same text cut at the ends of rows. The next block is unpacked while the last one is worked on.

    A line end between quotes ends no row.

    >>> list(row_blocks(iter([b"1,a\n2,", b'"b\nc"\n', b"3"]), Dialect()))
    [b'1,a\n', b'2,"b\nc"\n', b'3']

    Raises:
        RowTooLongError: When no row ends within `LONGEST_ROW_BYTES`.
    """
    blocks = _cut(pieces, dialect)
    with ThreadPoolExecutor(1, thread_name_prefix="fieldmark-unpacking") as thread:
        waiting = thread.submit(next, blocks, None)
        while (block := waiting.result()) is not None:
            waiting = thread.submit(next, blocks, None)
            yield block


def _cut(pieces: Iterator[bytes], dialect: Dialect) -> Iterator[bytes]:
    rest: list[bytes] = []
    inside, waiting = False, 0
    quote = None if dialect.quote is None else dialect.quote.encode()
    for piece in pieces:
        end = _end_of_rows(piece, dialect, inside=inside)
        if end:
            yield b"".join([*rest, memoryview(piece)[:end]])
            rest, inside, waiting = [], False, 0
        rest.append(piece[end:])
        inside ^= quote is not None and piece.count(quote, end) % 2 == 1
        waiting += len(rest[-1])
        if waiting > LONGEST_ROW_BYTES:
            raise RowTooLongError(waiting)
    if any(rest):
        yield b"".join(rest)


def _end_of_rows(text: bytes, dialect: Dialect, *, inside: bool) -> int:
    """Where the last row that ends in a text ends; 0 where none does. The text may begin inside of quotes."""
    mark = dialect.line_end.encode()
    end = text.rfind(mark)
    if dialect.quote is None or end < 0:
        return end + 1
    quote = dialect.quote.encode()
    quotes = text.count(quote, 0, end) + inside
    while quotes % 2 and end >= 0:
        before = text.rfind(mark, 0, end)
        quotes -= text.count(quote, max(before, 0), end)
        end = before
    return end + 1


def first_lines(block: bytes, dialect: Dialect) -> NDArray[np.int64]:
    r"""The line of a block, from 0, in which each of its rows begins.

    >>> first_lines(b'1,"b\nc"\n2,d\n3', Dialect()).tolist()
    [0, 2, 3]
    """
    text = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(text == ord(dialect.line_end))
    lines = np.arange(len(ends))
    if dialect.quote is not None and dialect.quote.encode() in block:
        quotes = np.flatnonzero(text == ord(dialect.quote))
        lines = lines[np.searchsorted(quotes, ends) % 2 == 0]
    starts = np.concatenate([[0], lines + 1])
    return starts[:-1] if block.endswith(dialect.line_end.encode()) else starts
