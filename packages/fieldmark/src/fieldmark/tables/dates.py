"""Dates of occurrences as people and databases write them, with how much of each is known.

- ISO 8601 to the day, month or year, with or without a time of day: 2020-05-01, 2020-05-01T10:30Z, 2020-05, 2020.
- A range (2020-05-01/2020-05-03, or 2020-05-01/03) keeps what both ends share: here the month.
- Days first or months first (1.9.2024, 9/1/24) where the column tells which: one number above 12 is enough, and dots
  always mean days first. Otherwise somebody has to state `date_format`.
- With the English name of the month (3 May 2021, May 3, 2021, 3-May-21), in one piece (20210503), and as cameras write
  them (2021:05:03 10:30:00).
- Separate columns for year, month and day stand in where there is no date.

`date` is null unless the day is known; `year` and `month` are kept as far as they are known.
"""

from __future__ import annotations

import datetime

import polars as pl

from fieldmark.tables.row_problems import RowProblems

FIRST_YEAR = 1600
# Two digits stand for a year of this century up to here, and for one of the last above, as POSIX has it.
LAST_SHORT_YEAR = 68
_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: f"{number:02}" for number, name in enumerate(_NAMES, 1)}
_TIME = r"(?:[T ][^/]*)?"
_POINT = r"[0-9]{4}(?:-[0-9]{1,2}(?:-[0-9]{1,2})?)?"
_PARTS = r"^([0-9]{1,2})([./-])([0-9]{1,2})[./-]([0-9]{2}|[0-9]{4})(?:[T ].*)?$"


def add_dates(rows: pl.DataFrame, problems: RowProblems, *, date_format: str | None = None) -> pl.DataFrame:
    """Turns the text columns `date`, `year`, `month` and `day` into `date`, `year`, `month` and `date_precision`.

    Args:
        rows: The table, with any of those columns.
        problems: Where dates that cannot be read, or cannot be, are noted; those are left empty.
        date_format: How dates are written, as `strptime` takes it.

    Returns:
        The rows with `event_date` (the text as it was), `date`, `year`, `month` and `date_precision` (day, month,
        year).
    """
    given = [name for name in ("date", "year", "month", "day") if name in rows.columns]
    text = _text(rows)
    # A table has far fewer dates than rows; each is parsed once.
    distinct = text.unique(maintain_order=True).drop_nulls()
    iso = _as_iso(distinct, date_format)
    unread = iso.is_null() & distinct.str.contains(_PARTS)
    if bool(unread.any()) and date_format is None:
        iso = iso.zip_with(~unread, _reordered(distinct, unread))
    parts = _parts(pl.DataFrame({"event_date": distinct, "iso": iso}))
    of_rows = text.to_frame("event_date").join(parts, on="event_date", how="left", maintain_order="left")
    parsed = rows.drop(given).hstack(of_rows)  # a join of all columns would copy them
    today = datetime.date.today()
    later = (pl.col("date") > today) | (pl.col("year") > today.year)
    empty = pl.col("event_date").is_not_null() & pl.col("year").is_null() & ~pl.col("spans_years")
    hint = "" if date_format else "; date_format in occurrences.toml may help"
    problems.add("error", f"a date cannot be read and is left empty{hint}", parsed.filter(empty), pl.col("event_date"))
    problems.add("error", "a date lies in the future and is left empty", parsed.filter(later), pl.col("event_date"))
    early = pl.col("year") < FIRST_YEAR
    problems.add(
        "error", f"a date lies before {FIRST_YEAR} and is left empty", parsed.filter(early), pl.col("event_date")
    )
    coarse = pl.col("date").is_null() & pl.col("year").is_not_null() & ~(later | early).fill_null(False)
    problems.add("note", "a date is known to the month or year only", parsed.filter(coarse), pl.col("event_date"))
    kept = (later | early).fill_null(False)
    cleared = [pl.when(~kept).then(pl.col(name)).alias(name) for name in ("date", "year", "month", "date_precision")]
    return parsed.with_columns(cleared).drop("iso", "spans_years")


def _text(rows: pl.DataFrame) -> pl.Series:
    """The date as text: as it stands, or put together from year, month and day."""
    if "date" in rows.columns and (rows["date"].null_count() == 0 or "year" not in rows.columns):
        return rows["date"].alias("text")

    def number(name: str, digits: int) -> pl.Expr:
        if name not in rows.columns:
            return pl.lit(None, pl.String)
        whole = pl.col(name).str.extract(r"^([0-9]+)(?:\.0+)?$", 1)
        return pl.when(whole.cast(pl.Int64, strict=False) > 0).then(whole.str.zfill(digits))

    year, month, day = number("year", 4), number("month", 2), number("day", 2)
    composed = (
        pl.when(month.is_null())
        .then(year)
        .when(day.is_null())
        .then(pl.concat_str(year, month, separator="-"))
        .otherwise(pl.concat_str(year, month, day, separator="-"))
    )
    stated = pl.col("date") if "date" in rows.columns else pl.lit(None, pl.String)
    return rows.select("line", text=pl.coalesce(stated, composed))["text"]


def _as_iso(text: pl.Series, date_format: str | None) -> pl.Series:
    """Dates and ranges that are ISO 8601, or fit the stated format; null for the others."""
    frame = text.to_frame("text")
    value = pl.col("text")
    slashes = value.str.extract(r"^([0-9]{4}[/:.][0-9]{1,2}[/:.][0-9]{1,2})(?:[T ].*)?$", 1).str.replace_all(
        "[/:.]", "-"
    )
    whole = value.str.extract(r"^((?:1[6-9]|20)[0-9]{6})$", 1).str.replace(
        r"([0-9]{4})([0-9][0-9])([0-9][0-9])", "$1-$2-$3"
    )
    iso = value.str.extract(rf"^({_POINT}{_TIME}(?:/[^/]*)?)$", 1)
    if date_format is None:
        return frame.select(pl.coalesce(slashes, whole, _with_month_names(value), iso)).to_series()
    stated = value.str.to_date(date_format, strict=False).dt.strftime("%Y-%m-%d")
    return frame.select(pl.coalesce(stated, slashes, iso)).to_series()


def _with_month_names(value: pl.Expr) -> pl.Expr:
    """Dates such as 3 May 2021, May 3rd, 2021 and 3-May-21 as ISO dates, those without a day as months."""
    lower, month = value.str.to_lowercase(), "(" + "|".join(_MONTHS) + ")[a-z]*"
    gap = r"[\s.,/-]+"
    day_first = rf"^(?P<d>[0-9]{{1,2}})(?:st|nd|rd|th)?{gap}{month}{gap}(?P<y>[0-9]{{4}}|[0-9]{{2}})(?:\s.*)?$"
    month_first = rf"^{month}{gap}(?P<d>[0-9]{{1,2}})(?:st|nd|rd|th)?{gap}(?P<y>[0-9]{{4}})(?:\s.*)?$"
    alone = rf"^{month}{gap}(?P<y>[0-9]{{4}})$"

    def iso(pattern: str, month_place: int, day_place: int | None, year_place: int) -> pl.Expr:
        number = lower.str.extract(pattern, month_place).replace_strict(_MONTHS, default=None, return_dtype=pl.String)
        short = lower.str.extract(pattern, year_place).cast(pl.Int64)
        year = pl.when(short > 99).then(short).otherwise(short + _century(short)).cast(pl.String)
        days = [] if day_place is None else [lower.str.extract(pattern, day_place).str.zfill(2)]
        return pl.concat_str([year, number, *days], separator="-")

    return pl.coalesce(iso(day_first, 2, 1, 3), iso(month_first, 1, 2, 3), iso(alone, 1, None, 2))


def _century(short: pl.Expr) -> pl.Expr:
    return pl.when(short <= LAST_SHORT_YEAR).then(2000).otherwise(1900)


def _reordered(text: pl.Series, chosen: pl.Series) -> pl.Series:
    """Dates such as 9/1/24 as ISO dates; null where nothing tells days from months."""
    frame = text.to_frame("text").with_columns(chosen=chosen)
    groups = {name: pl.col("text").str.extract(_PARTS, place) for place, name in enumerate("a-by", 1)}
    frame = frame.with_columns(
        first=groups["a"].cast(pl.Int64),
        dotted=groups["-"] == ".",
        second=groups["b"].cast(pl.Int64),
        year_text=groups["y"],
    )
    rows = frame.filter("chosen")
    days_first = bool((rows["first"] > 12).any() or rows["dotted"].all())
    months_first = bool((rows["second"] > 12).any())
    if days_first == months_first:
        return pl.Series(text.name, [None] * len(text), dtype=pl.String)
    short = pl.col("year_text").cast(pl.Int64)
    year = pl.when(pl.col("year_text").str.len_chars() == 4).then(short).otherwise(short + _century(short))
    day, month = ("first", "second") if days_first else ("second", "first")
    padded = [year.cast(pl.String), *(pl.col(name).cast(pl.String).str.zfill(2) for name in (month, day))]
    return frame.select(pl.when("chosen").then(pl.concat_str(padded, separator="-"))).to_series()


def _parts(rows: pl.DataFrame) -> pl.DataFrame:
    """`date`, `year`, `month` and `date_precision` from ISO dates and ranges; `spans_years` for long ranges."""
    value = pl.col("iso")
    start = value.str.extract(rf"^({_POINT})", 1)
    tail = value.str.extract(r"/([0-9-]+)(?:[T ].*)?$", 1)
    # 2020-05-01/03 and 2020-05-01/06-03 leave out what both ends share.
    short = tail.str.len_chars() < 4
    middle = tail.str.contains(r"^[0-9]{2}-[0-9]{2}$")
    end = (
        pl.when(tail.is_null())
        .then(start)
        .when(short)
        .then(pl.concat_str(start.str.extract(r"^([0-9]{4}-[0-9]{1,2})", 1), tail, separator="-"))
        .when(middle)
        .then(pl.concat_str(start.str.slice(0, 4), tail, separator="-"))
        .otherwise(tail)
    )
    split = rows.with_columns(start=start, end=end)
    ends = {
        side: [pl.col(side).str.extract(pattern, 1).cast(pl.Int32) for pattern in _LEVELS] for side in ("start", "end")
    }
    (y1, m1, d1), (y2, m2, d2) = ends["start"], ends["end"]
    years = pl.when(y1 == y2).then(y1)
    months = pl.when((y1 == y2) & (m1 == m2)).then(m1)
    days = pl.when((y1 == y2) & (m1 == m2) & (d1 == d2)).then(d1)
    parts = split.with_columns(year=years, month=months, day=days, spans_years=((y1 != y2).fill_null(False)))
    iso = pl.concat_str(
        pl.col("year").cast(pl.String),
        pl.col("month").cast(pl.String).str.zfill(2),
        pl.col("day").cast(pl.String).str.zfill(2),
        separator="-",
    )
    parts = parts.with_columns(date=iso.str.to_date("%Y-%m-%d", strict=False))
    # A day or month that no calendar has makes the whole date unreadable.
    wrong = (pl.col("day").is_not_null() & pl.col("date").is_null()) | ~pl.col("month").is_between(1, 12)
    kept = ~wrong.fill_null(False)
    parts = parts.with_columns(pl.when(kept).then(pl.col(name)).alias(name) for name in ("year", "month", "date"))
    precision = (
        pl.when(pl.col("date").is_not_null())
        .then(pl.lit("day"))
        .when(pl.col("month").is_not_null())
        .then(pl.lit("month"))
        .when(pl.col("year").is_not_null())
        .then(pl.lit("year"))
    )
    return parts.with_columns(date_precision=precision).drop("start", "end", "day")


_LEVELS = (r"^([0-9]{4})", r"^[0-9]{4}-([0-9]{1,2})", r"^[0-9]{4}-[0-9]{1,2}-([0-9]{1,2})")
