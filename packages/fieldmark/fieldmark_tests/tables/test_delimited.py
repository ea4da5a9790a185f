"""Tables in archives and compressed files are read block by block as they would be from a plain file."""

from __future__ import annotations

import csv
import gzip
import io
import random
import zipfile
from pathlib import Path

import pytest

from fieldmark.errors import InputError
from fieldmark.storage.release import Release
from fieldmark.tables.delimited import read_columns, read_header
from fieldmark.tables.table_text import Dialect

COLUMNS = {"id": 0, "name": 1, "remark": 3}


def zipped(folder: Path, data: bytes) -> Release:
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("a.csv", data)
    return Release(folder / "a.zip", single_file=True)


def plain(folder: Path, data: bytes, name="a.csv") -> Release:
    (folder / "plain").mkdir()
    (folder / "plain" / name).write_bytes(data)
    return Release(folder / "plain")


def table(seed: int, dialect: Dialect) -> bytes:
    """Forty rows with blanks, empty fields and lines, and, between quotes, separators and line ends."""
    rng = random.Random(seed)
    fields = ["", " ", "Alba alba", " x ", "Bøz", "-", "a longer text that is kept apart"]
    if dialect.quote:
        fields += [f"a{dialect.separator} b", "two\nlines", f"say {dialect.quote}so{dialect.quote}", "\n"]
    text = io.StringIO()
    quoting = csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE
    writer = csv.writer(
        text,
        delimiter=dialect.separator,
        quotechar=dialect.quote,
        lineterminator=dialect.line_end,
        quoting=quoting,
    )
    writer.writerow(["id", "name", "other", "remark"])
    for number in range(40):
        writer.writerow([number, *rng.choices(fields, k=3)])
        if rng.random() < 0.1:
            text.write(dialect.line_end)
    last = dialect.line_end if rng.random() < 0.5 else ""
    return (text.getvalue().rstrip(dialect.line_end) + last).encode(dialect.encoding)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "dialect",
    [
        Dialect(),
        Dialect("\t", None),
        Dialect(";", "'", "\r\n"),
        Dialect("\t", None, "\r"),
        Dialect(encoding="latin-1"),
        Dialect(encoding="utf-16"),
    ],
    ids=str,
)
def test_a_table_in_an_archive_has_the_rows_and_lines_of_a_plain_file_however_it_is_cut(tmp_path, dialect, seed):
    data = table(seed, dialect)
    dialect = Dialect(dialect.separator, dialect.quote, dialect.line_end[-1], dialect.encoding)
    from_file = read_columns(plain(tmp_path, data), "a.csv", dialect, COLUMNS)
    release = zipped(tmp_path, data)
    for size in (7, 64, 1 << 20):
        assert read_columns(release, "a.csv", dialect, COLUMNS, block_bytes=size).equals(from_file)
    if dialect.encoding == "utf-8":  # and as Python's own reader has them
        text = io.StringIO(data.decode(), newline="")
        options = {"quotechar": dialect.quote} if dialect.quote else {"quoting": csv.QUOTE_NONE}
        theirs = [row for row in csv.reader(text, delimiter=dialect.separator, **options) if row][1:]
        expected = [(row[0], row[1].strip() or None, row[3].strip() or None) for row in theirs]
        assert from_file.select("id", "name", "remark").rows() == expected and len(expected) == 40


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"i,n,r\n1,a,c\n2,a,c,d\n", r"a\.csv, line 3: found 4 fields, expected 3"),
        (b"i,n,r\n1,a,c\n2,\xe9,c\n", r"a\.csv, line 3: found bytes that are not UTF-8"),
        (b"i,n\n1,a\n", r"a\.csv: found 2 fields in a line, expected at least 3: remark"),
    ],
)
def test_what_is_wrong_with_a_table_in_an_archive_is_said_with_its_line(tmp_path, data, sentence):
    for size in (5, 1 << 20):
        with pytest.raises(InputError, match=sentence):
            columns = {"id": 0, "name": 1, "remark": 2}
            read_columns(zipped(tmp_path, data), "a.csv", Dialect(), columns, block_bytes=size)


@pytest.mark.parametrize("read_places", [[0], [2], [0, 1, 2]])
@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"i,n,r\n1,a,b\n2,a,b,c\n", "line 3: found 4 fields, expected 3"),
        (b"i,n,r\n1,a,b\n2,a,b,\n", "line 3: found 4 fields, expected 3"),
        (b"i,n,r\n1,a,b\n2,a\n3,a,b\n", "line 3: found 2 fields, expected 3"),
        (b"i,n,r\n1,a,b\n2,a\n3,a,b,\n", "line 3: found 2 fields, expected 3"),  # as many in all
        (b'i,n,r\n1,"a\n\n,",b\n2,a\n', "line 5: found 2 fields, expected 3"),
        (b"i,n,r\n1,a,b\n\n2\n", "line 4: found 1 field, expected 3"),
    ],
)
def test_an_uneven_line_is_refused_whichever_columns_are_read(tmp_path, data, sentence, read_places):
    columns = {str(place): place for place in read_places}
    for release in (plain(tmp_path, data), zipped(tmp_path, data)):
        for size in (5, 1 << 20):
            with pytest.raises(InputError, match=rf"a\.csv, {sentence}"):
                read_columns(release, "a.csv", Dialect(), columns, block_bytes=size)


def test_empty_lines_and_quotes_within_a_field_are_not_uneven(tmp_path):
    data = b'i,n,r\n1,5" x 6",b\n\n2,"a, ""b""",c\n3,5" x, 6" y\n\n'
    for release in (plain(tmp_path, data), zipped(tmp_path, data)):
        rows = read_columns(release, "a.csv", Dialect(), {"i": 0, "r": 2})
        assert rows.select("i", "r").rows() == [("1", "b"), ("2", "c"), ("3", '6" y')]


def test_the_header_of_a_packed_table_is_read_without_the_rest(tmp_path):
    lines = b"".join(b"%d;%d\n" % (one, one * 7919**4) for one in range(120_000))
    packed = gzip.compress(b"id;name\n" + lines, compresslevel=1)
    release = plain(tmp_path, packed[: len(packed) // 2], "a.csv.gz")
    assert read_header(release, "a.csv.gz").columns == ("id", "name")
    with pytest.raises(InputError, match=r"a damaged \.gz file.*Was the download cut short"):
        read_columns(release, "a.csv.gz", Dialect(";"), {"id": 0})


@pytest.mark.parametrize("line", [b'1,2" long,b,c', b'1,"2 long,b,c'])
def test_a_quote_that_stands_alone_is_refused_in_an_archive_as_in_a_plain_file(tmp_path, line):
    data = b"i,n,o,r\n" + line + b"\n2,a,b,c\n3,a,b,c\n"
    with pytest.raises(InputError) as of_file:
        read_columns(plain(tmp_path, data), "a.csv", Dialect(), COLUMNS)
    with pytest.raises(InputError) as of_archive:
        read_columns(zipped(tmp_path, data), "a.csv", Dialect(), COLUMNS, block_bytes=16)
    assert str(of_archive.value).partition("a.csv")[2] == str(of_file.value).partition("a.csv")[2]
