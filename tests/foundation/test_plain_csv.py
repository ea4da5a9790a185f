from __future__ import annotations

import io

import pytest

from fieldmark.foundation import plain_csv as module
from fieldmark.foundation.plain_csv import plain_csv

ROWS = [f" photo {number}.jpg,{number % 7 or ''}, Amanita {'é' * (number % 3)}\n" for number in range(200)]
FILE = "".join(["id,label,note\n", *ROWS]).encode()


def rows_of(data: bytes) -> list[tuple[str | None, ...]] | None:
    frame = plain_csv(io.BytesIO(data))
    return None if frame is None else frame.rows()


@pytest.mark.parametrize("at_once", [1, 40, 1000, len(FILE)])
def test_a_file_reads_the_same_however_much_is_read_at_a_time(at_once, monkeypatch):
    monkeypatch.setattr(module, "BYTES_AT_ONCE", at_once)
    expected = [tuple(field.strip() or None for field in row.rstrip("\n").split(",")) for row in ROWS]
    assert rows_of(FILE) == rows_of(FILE.removesuffix(b"\n")) == expected


@pytest.mark.parametrize("at_once", [1, 40, len(FILE)])
@pytest.mark.parametrize("line", ["\n", "a\n", "a,b,c,d\n", 'a,"b",c\n', "a,b,c\r\n", "a,b,\x1fc\n", "\udcff,b,c\n"])
def test_one_line_that_is_not_plain_leaves_the_file_to_others(line, at_once, monkeypatch):
    monkeypatch.setattr(module, "BYTES_AT_ONCE", at_once)
    for place in (0, 100, len(ROWS)):
        lines = ["id,label,note\n", *ROWS[:place], line, *ROWS[place:]]
        assert rows_of("".join(lines).encode(errors="surrogateescape")) is None


@pytest.mark.parametrize(
    "data", [b"", b"id,label\n", b"id\na\n", b"id,id\na,b\n", b"id, label\na,b\n", b"\xef\xbb\xbfid,a\nb,c\n"]
)
def test_a_file_without_rows_or_with_an_unusual_header_is_not_plain(data):
    assert rows_of(data) is None
