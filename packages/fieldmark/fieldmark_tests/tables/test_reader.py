from __future__ import annotations

import io

import pytest

from fieldmark.errors import InputError
from fieldmark.identification.checklists import read_checklist
from fieldmark.identification.name_lists import read_names
from fieldmark.tables import reader as module
from fieldmark.tables.reader import plain_csv

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


@pytest.mark.parametrize("data", [b"", b"id,label\n", b"id,id\na,b\n", b"id, label\na,b\n", b"\xef\xbb\xbfid,a\nb,c\n"])
def test_a_file_without_rows_or_with_an_unusual_header_is_not_plain(data):
    assert rows_of(data) is None


def test_of_one_column_a_file_with_empty_lines_is_left_to_others():
    assert rows_of(b"id\na\n b\n") == rows_of(b"id\na\nb") == [("a",), ("b",)]
    for data in (b"id\n\na\n", b"id\na\n\nb\n", b"id\na\n  \n", b"id\na\n\n", b"id\na,b\n"):
        assert rows_of(data) is None


def test_a_checklist_with_a_short_line_is_refused_with_its_line(tmp_path):
    (tmp_path / "list.csv").write_text("scientificName,country\nAmanita muscaria,DK\n\nAmanita phalloides\n")
    with pytest.raises(InputError, match=r"list\.csv, line 4: found 1 field, expected 2"):
        read_checklist(tmp_path / "list.csv")


def test_line_separators_of_unicode_end_no_line(tmp_path):
    (tmp_path / "list.csv").write_text("name,country\nAmanita\u2028muscaria,DK\nBoletus edulis,DK\n", encoding="utf-8")
    assert read_names(tmp_path / "list.csv") == ["Amanita\u2028muscaria", "Boletus edulis"]
    assert len(read_checklist(tmp_path / "list.csv")) == 2


def test_a_list_without_a_header_has_a_name_on_each_line(tmp_path):
    (tmp_path / "list.txt").write_text("Amanita muscaria (L.) Lam., 1783\n\nBoletus edulis\n")
    assert read_names(tmp_path / "list.txt") == ["Amanita muscaria (L.) Lam.", "Boletus edulis"]
