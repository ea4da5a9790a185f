from __future__ import annotations

import datetime

import polars as pl
import pytest

from fieldmark.tables.dates import add_dates
from fieldmark.tables.row_problems import RowProblems


def read(columns, **options):
    problems = RowProblems()
    rows = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    rows = rows.with_columns(file=pl.lit("t.csv"), line=pl.int_range(pl.len()) + 2)
    return add_dates(rows, problems, **options), {problem.what: problem.places() for problem in problems.listed}


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("2020-05-01", ("2020-05-01", 2020, 5, "day")),
        ("2020-05-01T10:30:00Z", ("2020-05-01", 2020, 5, "day")),
        ("2020-05-01 10:30", ("2020-05-01", 2020, 5, "day")),
        ("2020/5/1", ("2020-05-01", 2020, 5, "day")),
        ("2020:05:01 10:30:00", ("2020-05-01", 2020, 5, "day")),
        ("20200501", ("2020-05-01", 2020, 5, "day")),
        ("1 May 2020", ("2020-05-01", 2020, 5, "day")),
        ("1-may-20", ("2020-05-01", 2020, 5, "day")),
        ("May 1st, 2020", ("2020-05-01", 2020, 5, "day")),
        ("May 2020", (None, 2020, 5, "month")),
        ("2020-05", (None, 2020, 5, "month")),
        ("2020", (None, 2020, None, "year")),
        ("2020-05-01/2020-05-03", (None, 2020, 5, "month")),
        ("2020-05-01/03", (None, 2020, 5, "month")),
        ("2020-05-01/06-03", (None, 2020, None, "year")),
        ("2020-05-01T08:00/2020-05-01T09:00", ("2020-05-01", 2020, 5, "day")),
        ("2019-12-30/2020-01-02", (None, None, None, None)),
    ],
)
def test_a_date_is_kept_as_exactly_as_it_is_known(text, known):
    rows, problems = read({"date": [text]})
    day = None if known[0] is None else datetime.date.fromisoformat(known[0])
    assert rows.select("date", "year", "month", "date_precision").row(0) == (day, *known[1:])
    assert rows["event_date"].to_list() == [text] and not any("left empty" in what for what in problems)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2021-02-30", "cannot be read"),
        ("2020-13", "cannot be read"),
        ("last summer", "cannot be read"),
        ("31 June 2020", "cannot be read"),
        ("20201301", "cannot be read"),
        ("2999-01-01", "lies in the future"),
        ("2999", "lies in the future"),
        ("0020-05-01", "lies before 1600"),
    ],
)
def test_a_date_that_cannot_be_is_emptied_and_listed(text, reason):
    rows, problems = read({"date": ["2020-01-01", text]})
    assert rows.select("date", "year", "month", "date_precision").row(1) == (None, None, None, None)
    ((what, places),) = problems.items()
    assert reason in what and places == [f"t.csv, line 3: {text}"]


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["9/1/24", "8/25/25"], "2024-09-01"),
        (["9/1/24", "25/8/25"], "2024-01-09"),
        (["1.9.1999"], "1999-09-01"),
        (["9-1-70", "8-25-70"], "1970-09-01"),
        (["9/1/24", "8/2/25"], None),
        (["13/1/24", "1/13/24"], None),
    ],
)
def test_days_and_months_are_told_apart_by_the_column_or_not_at_all(texts, first):
    rows, problems = read({"date": texts})
    assert rows["date"][0] == (None if first is None else datetime.date.fromisoformat(first))
    assert bool(problems) == (first is None)


def test_a_stated_format_decides():
    rows, problems = read({"date": ["1/2/2020", "2020-03-04", "x"]}, date_format="%d/%m/%Y")
    assert rows["date"].to_list() == [datetime.date(2020, 2, 1), datetime.date(2020, 3, 4), None]
    assert list(problems.values()) == [["t.csv, line 4: x"]]


def test_year_month_and_day_stand_in_for_a_date():
    columns = {"date": [None, None, None, "2020-01-02"], "year": ["2020", "2020", "2021.0", "1999"]}
    rows, _ = read({**columns, "month": ["5", None, "0", "1"], "day": ["3", None, None, "1"]})
    assert rows["event_date"].to_list() == ["2020-05-03", "2020", "2021", "2020-01-02"]
    assert rows["date"].to_list() == [datetime.date(2020, 5, 3), None, None, datetime.date(2020, 1, 2)]
