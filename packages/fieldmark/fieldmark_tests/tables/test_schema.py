from __future__ import annotations

import datetime
import io

import polars as pl
import pytest

from fieldmark.errors import InputError
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import ITEMS, TAXA, parse_column, parse_places


def test_columns_that_may_be_missing_are_added_and_others_pass_through():
    items = pl.DataFrame({"item_id": ["a"], "observation_id": ["o"], "media_ids": [["m"]], "habitat": ["bog"]})
    checked = ITEMS.check(items, "items")
    assert checked.columns[: len(ITEMS.types)] == list(ITEMS.types)
    assert checked["date"].dtype == pl.Date and checked["habitat"][0] == "bog"


def test_a_missing_required_column_is_named_with_what_was_found():
    with pytest.raises(InputError, match=r"found the columns name, expected a column 'label'"):
        TAXA.check(pl.DataFrame({"name": ["x"]}), "taxa")


def test_a_null_in_a_required_column_is_named_with_its_line():
    with pytest.raises(InputError, match=r"line 3: found no value for label"):
        TAXA.check(pl.DataFrame({"label": ["x", None]}), "taxa")


def test_a_repeated_key_is_refused():
    with pytest.raises(InputError, match=r"label 'x' more than once"):
        TAXA.check(pl.DataFrame({"label": ["x", "x"]}), "taxa")


def test_csv_keeps_text_as_it_is_and_empty_fields_as_nulls():
    frame = read_csv(io.BytesIO('\ufeffid,n\r\n007,\r\n"a, b",1e3\r\n'.encode()), "t.csv", required=("id",))
    assert frame.rows() == [("007", None), ("a, b", "1e3")]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "found an empty file"),
        (b"a,b\n1,2\n1,2,3\n", "line 3: found 3 fields, expected 2"),
        (b"a,b\n1,2\n1\n2,3\n", "line 3: found 1 field, expected 2, as in the header"),
        (b"a,b\n1,2\n1,2,\n2,3\n", "line 3: found 3 fields, expected 2, as in the header"),
        (b'a,b\n1,"2\n\n3"\n1\n2,3\n', "line 5: found 1 field, expected 2, as in the header"),
        (b'a,b\n1,5" x\n\n2,3\n', "line 3: found an empty line, expected 2 fields, as in the header"),
        (b'a,b\n1,"x\n', "a quote that does not close"),
        (b"a,\xff,b\n1,2,3\n", "line 1: found bytes that are not UTF-8"),
        (b"a,b\n1,2\n\xff,2\n", "line 3: found bytes that are not UTF-8"),
        (b"a,c\n1,2\n", "expected a column 'b'"),
    ],
)
def test_a_broken_csv_is_refused_with_a_sentence(data, message):
    with pytest.raises(InputError, match=message):
        read_csv(io.BytesIO(data), "t.csv", required=("a", "b"))


def test_lines_are_even_whatever_stands_between_quotes_and_at_the_end():
    data = b'a;b\r\n"x; y";"two\r\n\r\nlines"\r\n5" x 6";"say ""so"""\r\n;\r\n\r\n\n'
    rows = [("x; y", "two\r\n\r\nlines"), ('5" x 6"', 'say "so"'), (None, None)]
    assert read_csv(io.BytesIO(data), "t.csv", separator=";").rows() == rows


def test_a_column_alone_may_have_blanks():
    assert read_csv(io.BytesIO(b"a\n1\n\n2\n"), "t.csv").rows() == [("1",), (None,), ("2",)]


@pytest.mark.parametrize(
    ("lat", "lon", "message"),
    [
        ("90.01", "0", r"line 3: found '90\.01' as lat, expected degrees from -90 to 90"),
        ("0", "-180.5", r"line 3: found '-180\.5' as lon, expected degrees from -180 to 180"),
        ("nan", "0", "line 3: found 'nan' as lat"),
        ("0", "-inf", "line 3: found '-inf' as lon"),
        ("north", "0", "line 3: found 'north' as lat, expected a number"),
    ],
)
def test_places_off_the_globe_are_refused_with_their_line_and_blanks_stay_blank(lat, lon, message):
    frame = pl.DataFrame({"lat": ["-90", lat, None], "lon": ["180", lon, " "]})
    with pytest.raises(InputError, match=f"t.csv, {message}"):
        parse_places(frame, "t.csv")
    kept = frame[[0, 2]]
    assert parse_places(kept, "t.csv").rows() == [(-90.0, 180.0), (None, None)]
    with pytest.raises(InputError, match=r"t\.csv, line 3: found no lat, expected degrees from -90 to 90"):
        parse_places(kept, "t.csv", required=True)


def test_dates_numbers_and_flags_are_parsed_and_the_first_wrong_line_is_named():
    frame = pl.DataFrame({"date": ["2021-09-30", None], "lat": ["55.5", " 1 "], "flag": ["yes", "0"]})
    for name, kind in (("date", datetime.date), ("lat", float), ("flag", bool)):
        frame = parse_column(frame, name, kind, "t.csv")
    assert frame.rows() == [(datetime.date(2021, 9, 30), 55.5, True), (None, 1.0, False)]
    with pytest.raises(InputError, match=r"t.csv, line 3: found 'x' as lat, expected a number"):
        parse_column(pl.DataFrame({"lat": ["1", "x"]}), "lat", float, "t.csv")
