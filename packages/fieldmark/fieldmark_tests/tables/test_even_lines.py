"""Lines are even for the quick count exactly where they are for Python's reader, however the text is cut."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from fieldmark.tables import even_lines
from fieldmark.tables.even_lines import EvenLines, UnevenLine, count_separators, first_uneven


def counted(data: bytes, width: int, piece_bytes: int, **dialect) -> bool:
    lines = EvenLines(width, **dialect)
    for start in range(0, len(data), piece_bytes):
        lines.feed(data[start : start + piece_bytes])
    return lines.are_even()


@pytest.mark.parametrize("piece_bytes", [5, 64, 1 << 20])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_even_and_uneven_lines_are_told_apart_however_a_text_is_cut(piece_bytes, quoting, end, monkeypatch):
    monkeypatch.setattr(even_lines, "PIECE_BYTES", 128)
    rng, fields = np.random.default_rng(0), ["", "a", "b, c", 'say "so"', "two\nlines", "x" * 70, "æ"]
    seen = set()
    for _ in range(40):
        width = int(rng.integers(2, 5))
        rows = [[fields[one] for one in rng.integers(0, len(fields), width)] for _ in range(rng.integers(1, 15))]
        if rng.random() < 0.6:
            row = rows[rng.integers(len(rows))]
            row.append("more") if rng.random() < 0.5 else row.pop()
        if rng.random() < 0.3:  # as many fields in all
            first, other = rng.integers(0, len(rows), 2)
            rows[first] = [*rows[first], ""]
            rows[other] = rows[other][:-1] or ["a"]
        text = io.StringIO()
        csv.writer(text, quoting=quoting, lineterminator=end).writerows(rows)
        data = text.getvalue()
        found = first_uneven(io.StringIO(data, newline=""), width)
        seen.add(found is None)
        assert counted(data.encode(), width, piece_bytes) == (found is None), (width, data)
        assert counted(data.rstrip("\r\n").encode(), width, piece_bytes) == (found is None)
    assert seen == {True, False}


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_separators_are_counted_outside_of_quotes(quoting, monkeypatch):
    monkeypatch.setattr(even_lines, "PIECE_BYTES", 128)
    rng, fields = np.random.default_rng(1), ["", "a", "b, c,,", 'say "so"', "two,\nlines", "x" * 70]
    rows = [[fields[one] for one in rng.integers(0, len(fields), rng.integers(1, 6))] for _ in range(200)]
    text = io.StringIO()
    csv.writer(text, quoting=quoting).writerows(rows)
    assert count_separators(text.getvalue().encode()) == sum(len(row) - 1 for row in rows)
    assert count_separators(b'"a\tb\n', "\t", None) == 1


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"a,b\n1,2\n3,4\n", None),
        (b"a,b\n1,2\n3,4", None),
        (b"a,b\n1,2\n\n\r\n\n", None),
        (b"a,b\n1,2\n3\n", (3, 1)),
        (b"a,b\n1,2,3\n4\n", (2, 3)),
        (b"a,b\n1\n2,3,4\n", (2, 1)),
        (b"a,b\n1,2\n3,4,", (3, 3)),
        (b"a,b\n1,2\n\n3,4\n", (3, 0)),
        (b'a,b\n1,"x\n\ny"\n2\n', (5, 1)),
        (b'a,b\n1,"x\n\ny",3\n', (2, 3)),
    ],
)
def test_the_first_uneven_line_is_named(data, found):
    assert counted(data, 2, 1 << 20) == (found is None)
    uneven = first_uneven(io.StringIO(data.decode(), newline=""), 2)
    assert uneven == (None if found is None else UnevenLine(*found))


def test_quotes_that_are_ordinary_characters_enclose_nothing():
    for data, even in ((b'a\tb\n5" x\t1\n', True), (b'a\tb\n"5\n', False), (b'a\tb\n"1\t2\t3"\n', False)):
        assert counted(data, 2, 64, separator="\t", quote=None) is even
        text = io.StringIO(data.decode(), newline="")
        assert (first_uneven(text, 2, separator="\t", quote=None) is None) is even


def test_very_many_fields_and_other_line_ends_are_counted():
    data = (",".join("x" * 1500) + "\r").encode() * 90
    assert counted(data, 1500, 1 << 20, line_end="\r")
    assert not counted(data + b"x\r", 1500, 1 << 20, line_end="\r")
