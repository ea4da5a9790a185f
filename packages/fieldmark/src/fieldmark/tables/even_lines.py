"""Whether all lines of a delimited text have the same number of fields, from its bytes and at their speed.

Parsers that read some columns pass over fields that are too many, and they fill up lines that are too short. Here the
separators outside of quotes are counted: bytes are compared by vector instructions, and the results are worked on as
bits, 64 at a time. Where that finds a line uneven, Python's own reader decides and says which one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Small enough for the processor's cache, large enough that calls of NumPy do not count.
PIECE_BYTES = 1 << 20
WIDE = 1000
LINE_ENDS = b"\r\n"
ONE = np.uint64(1)
# The steps in which each bit of a word takes in all bits below it.
DOUBLING = tuple(np.uint64(1 << step) for step in range(6))
Words = NDArray[np.uint64]


class UnevenLine(NamedTuple):
    """A line with another number of fields than it should have; 0 for an empty line that others follow."""

    line: int
    fields: int


class _Quotes:
    """Which bytes of a text that comes in pieces lie between quotes: those with an odd number of quotes before them."""

    def __init__(self, quote: str | None) -> None:
        self._quote = None if quote is None else ord(quote)
        self.open = False

    def outside(self, piece: NDArray[np.uint8]) -> Words | None:
        """The bits of a piece that lie outside; None where all do."""
        if self._quote is None:
            return None
        marks = piece == self._quote
        if not self.open and not marks.any():
            return None
        bits = _bits(marks)
        for shift in DOUBLING:
            bits ^= bits << shift
        odd = np.bitwise_xor.accumulate(bits >> np.uint64(63)).astype(bool) ^ self.open
        before = np.concatenate(([self.open], odd[:-1]))
        self.open = bool(odd[-1])
        return bits ^ (before.astype(np.uint64) - ONE)


def count_separators(data: bytes, separator: str = ",", quote: str | None = '"') -> int:
    r"""How many separators a text has outside of quotes.

    >>> count_separators(b'a,b\n1,"x, y"\n')
    2
    """
    text, quotes, number = np.frombuffer(data, np.uint8), _Quotes(quote), 0
    for start in range(0, len(text), PIECE_BYTES):
        piece = text[start : start + PIECE_BYTES]
        marks, outside = piece == ord(separator), quotes.outside(piece)
        number += int(np.count_nonzero(marks) if outside is None else np.bitwise_count(_bits(marks) & outside).sum())
    return number


class EvenLines:
    r"""Counts the fields of the lines of a text that comes in pieces.

    Quotes within a field that do not enclose it, and empty lines before the end, make lines uneven here that may be
    allowed: `first_uneven` decides.

    Args:
        width: How many fields each line should have.
        separator, quote, line_end: Single characters; no quote where quotes are ordinary characters.

    >>> lines = EvenLines(2)
    >>> lines.feed(b'a,b\n1,"x, y\nz"\n1,')
    >>> lines.feed(b"2\n")
    >>> lines.are_even()
    True
    """

    def __init__(self, width: int, *, separator: str = ",", quote: str | None = '"', line_end: str = "\n") -> None:
        self._per_line = width - 1
        # What is counted in a piece has a place in 32 bits, unless lines have very many fields.
        self._kind: Any = np.int32 if width < WIDE else np.int64
        self._separator, self._line_end, self._quotes = ord(separator), ord(line_end), _Quotes(quote)
        self._uneven = False
        self._separators = 0  # of the line that the text has come to
        self._held_back = b""

    def feed(self, text: bytes | memoryview | NDArray[np.uint8]) -> None:
        """Takes the next piece of the text; line ends at its end are held back, since they may be the last."""
        piece = np.frombuffer(text, np.uint8)
        length = len(piece)
        while length and int(piece[length - 1]) in LINE_ENDS:
            length -= 1
        if not length:
            self._held_back += piece.tobytes()
            return
        if self._held_back:
            self._take(np.frombuffer(self._held_back, np.uint8))
        for start in range(0, length, PIECE_BYTES):
            self._take(piece[start : min(start + PIECE_BYTES, length)])
        self._held_back = piece[length:].tobytes()

    def are_even(self) -> bool:
        """Whether each line so far has the right number of fields."""
        return not self._uneven and not self._quotes.open and self._separators == self._per_line

    def _take(self, piece: NDArray[np.uint8]) -> None:
        if self._uneven:
            return
        separators, ends = _bits(piece == self._separator), _bits(piece == self._line_end)
        if (outside := self._quotes.outside(piece)) is not None:
            separators &= outside
            ends &= outside
        number_of_ends = np.bitwise_count(ends)
        gained: NDArray[Any] = np.bitwise_count(separators).astype(self._kind)
        gained -= number_of_ends.astype(self._kind) * self._per_line
        counted: NDArray[Any] = np.cumsum(gained, dtype=self._kind)
        counted += self._separators  # of the line in which each word of bits ends
        self._separators = int(counted[-1])
        first = _lowest(ends)
        counted -= gained
        counted += np.bitwise_count(separators & (first - ONE))  # up to the first line end of each word
        several = np.flatnonzero(number_of_ends > 1)
        self._uneven = (
            self._separators > self._per_line
            or bool(((counted != self._per_line) & (number_of_ends > 0)).any())
            or _uneven_within(separators[several], ends[several], first[several], self._per_line)
        )


def _uneven_within(separators: Words, ends: Words, previous: Words, per_line: int) -> bool:
    """Whether a line that begins and ends in one word has another number of separators; `previous` ends the one before.

    Each round looks at one more line of every word.
    """
    while len(ends := ends ^ previous):
        more = ends != 0
        separators, ends, previous = separators[more], ends[more], previous[more]
        following = _lowest(ends)
        if (np.bitwise_count(separators & (following - ONE) & ~(previous - ONE)) != per_line).any():
            return True
        previous = following
    return False


def _lowest(words: Words) -> Words:
    """The lowest bit of each word alone."""
    return words & (~words + ONE)


def _bits(marks: NDArray[np.bool_]) -> Words:
    """A bit for each byte, the first one lowest."""
    bits = np.packbits(marks, bitorder="little")
    if len(bits) % 8:
        bits = np.concatenate([bits, np.zeros(-len(bits) % 8, np.uint8)])
    return bits.view("<u8")


def first_uneven(
    text: Iterable[str],
    width: int,
    *,
    separator: str = ",",
    quote: str | None = '"',
    header_lines: int = 0,
    empty_lines: bool = False,
) -> UnevenLine | None:
    """The first line with another number of fields, as Python's reader of CSV finds it.

    Args:
        text: The lines of the text, with their ends as they are.
        width: How many fields each line should have.
        separator: What stands between two fields.
        quote: What encloses a field; None where quotes are ordinary characters.
        header_lines: How many rows at the beginning are not looked at.
        empty_lines: Whether lines may be empty; otherwise only those at the end.

    Raises:
        csv.Error: When the text cannot be read.

    >>> first_uneven(["a,b", '1,5" x', "", "2"], 2), first_uneven(["a,b", "2"], 2)
    (UnevenLine(line=3, fields=0), UnevenLine(line=2, fields=1))
    """
    if quote is None:
        reader = csv.reader(text, delimiter=separator, quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(text, delimiter=separator, quotechar=quote)
    line, empty = 1, None
    for number, fields in enumerate(reader):
        if number >= header_lines:
            if not fields:
                empty = empty or line
            elif empty and not empty_lines:
                return UnevenLine(empty, 0)
            elif len(fields) != width:
                return UnevenLine(line, len(fields))
        line = reader.line_num + 1
    return None
