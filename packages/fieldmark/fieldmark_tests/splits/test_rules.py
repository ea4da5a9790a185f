from __future__ import annotations

import datetime

import polars as pl
import pytest

from fieldmark.errors import InputError, MisuseError
from fieldmark.splits.rules import (
    ByClass,
    ByColumn,
    ByDay,
    EqualAreaCells,
    SquareBlocks,
    rule_from_data,
    rule_named,
)

TABLE = pl.DataFrame(
    {
        "site": ["a", " a ", "", None],
        "date": ["2021-09-30", "2021-09-30T10:00", None, "2021-10-01"],
        "lat": ["50.0", "50.0001", "60", None],
        "lon": ["14", "14.0001", "14", "14"],
    }
)


@pytest.mark.parametrize(
    "rule", [ByColumn("site"), ByClass("label"), ByDay("date"), SquareBlocks(2500), EqualAreaCells(1e4, "y", "x")]
)
def test_a_rule_is_data(rule):
    assert rule_from_data(rule.to_data()) == rule


def test_data_that_are_no_rule_are_refused():
    for data in ({"rule": "moon"}, {"rule": "column"}, {"rule": "column", "column": "a", "more": 1}, {}):
        with pytest.raises(ValueError, match="is no rule"):
            rule_from_data(data)


def test_rows_without_a_value_belong_to_nothing():
    assert ByColumn("site").keys(TABLE).to_list() == ["a", "a", None, None]
    assert ByDay().keys(TABLE).to_list() == ["2021-09-30", "2021-09-30", None, "2021-10-01"]
    blocks = SquareBlocks(5000).keys(TABLE).to_list()
    assert blocks[0] == blocks[1] != blocks[2] and blocks[3] is None


def test_dates_and_times_are_taken_by_their_day():
    times = pl.DataFrame({"date": [datetime.datetime(2021, 9, 30, 1), datetime.datetime(2021, 9, 30, 23)]})
    assert ByDay().keys(times).n_unique() == 1


@pytest.mark.parametrize(
    ("rule", "table", "sentence"),
    [
        (ByColumn("cite"), TABLE, "expected a column 'cite'. Did you mean site"),
        (ByColumn("site"), pl.DataFrame({"site": ["", None]}), "no row with a site"),
        (ByDay(), pl.DataFrame({"date": ["2021-09-30", "soon"]}), "line 3: found 'soon' as date"),
        (SquareBlocks(), pl.DataFrame({"lat": [91.0], "lon": [0.0]}), "line 2: found 91.0 as lat"),
        (SquareBlocks(), pl.DataFrame({"lat": [0.0], "lon": [float("nan")]}), "found nan as lon"),
    ],
)
def test_bad_tables_are_refused_with_column_and_line(rule, table, sentence):
    with pytest.raises(InputError, match=sentence):
        rule.keys(table, "t.csv")


def test_rules_are_found_by_the_words_people_use():
    assert rule_named("unit", unit="recording") == ByColumn("recording")
    assert rule_named("cells:100").to_data() == {
        "rule": "equal-area cells",
        "side_m": 100.0,
        "lat": "lat",
        "lon": "lon",
    }
    assert rule_named("block") == SquareBlocks(5000.0)
    with pytest.raises(MisuseError, match="expected a side in metres, such as block:5000"):
        rule_named("block:far")
    with pytest.raises(MisuseError, match="cannot be"):
        rule_named("block:0")
