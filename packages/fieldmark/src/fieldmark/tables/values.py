"""Rows of a table of occurrences as clean values: places, flags and ids. What is wrong is emptied and noted.

Nothing is repaired by guessing: coordinates that look swapped stay as they are and are listed.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from fieldmark.tables.row_problems import RowProblems

# What databases and R write for nothing. "NA" is also a country, so that countries are let be.
EMPTY: Final = ("NA", "N/A", "NaN", "nan", "null", "NULL", "None", "\\N")
# A place is taken for swapped where it lies far from the middle of its country's records, and near it when swapped.
FAR_DEGREES, NEAR_DEGREES, ENOUGH_RECORDS = 15.0, 8.0, 5
# iNaturalist moves an obscured place within a cell of 0.2 by 0.2 degrees; no such place is known better than this.
OBSCURED_M: Final = 10_000
_BOOLEANS: Final = {
    "true": True,
    "t": True,
    "1": True,
    "yes": True,
    "false": False,
    "f": False,
    "0": False,
    "no": False,
}


def without_placeholders(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with nulls where a database wrote a word for nothing."""
    texts = [name for name in rows.columns if rows[name].dtype == pl.String and name not in ("country", "file")]
    there = rows.select(pl.col(name).is_in(EMPTY).any() for name in texts)
    columns = [name for name in texts if there[name].item()]
    return rows.with_columns(pl.when(~pl.col(name).is_in(EMPTY)).then(pl.col(name)).alias(name) for name in columns)


def without_absences(rows: pl.DataFrame, problems: RowProblems) -> pl.DataFrame:
    """The rows that say that something was there."""
    if "status" not in rows.columns:
        return rows
    absent = pl.col("status").str.to_lowercase().str.starts_with("absent").fill_null(False)
    problems.add("warning", "says that the taxon was absent, and is left out", rows.filter(absent))
    return rows.filter(~absent).drop("status")


def with_places(rows: pl.DataFrame, problems: RowProblems) -> pl.DataFrame:
    """Turns `lat`, `lon`, `coordinate_uncertainty_m` and `elevation_m` into numbers; what cannot be is emptied."""
    numbers = [name for name in ("lat", "lon", "coordinate_uncertainty_m", "elevation_m") if name in rows.columns]
    point = [with_decimal_point(rows[name]) for name in numbers]
    texts = [pl.col(name).alias(f"{name} text") for name in numbers]
    rows = rows.with_columns(texts).with_columns(column.cast(pl.Float64, strict=False) for column in point)
    for name in numbers:
        unread = (pl.col(name).is_null() & pl.col(f"{name} text").is_not_null()) | pl.col(name).is_nan()
        problems.add(
            "error",
            f"{name} is no number and is left empty",
            rows.filter(unread.fill_null(False)),
            pl.col(f"{name} text"),
        )
        rows = rows.with_columns(pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name))
    if "lat" in numbers:
        rows = _possible_places(rows, problems)
    else:
        rows = rows.with_columns(lat=pl.lit(None, pl.Float64), lon=pl.lit(None, pl.Float64))
    if "coordinate_uncertainty_m" in numbers:
        none = pl.col("coordinate_uncertainty_m") <= 0
        rows = rows.with_columns(coordinate_uncertainty_m=pl.when(~none).then(pl.col("coordinate_uncertainty_m")))
    return rows.drop([f"{name} text" for name in numbers])


def with_decimal_point(numbers: pl.Series) -> pl.Series:
    """Numbers as text with a point; a comma in its place is common in tables with semicolons."""
    if not numbers.str.contains(",", literal=True).any():
        return numbers
    return numbers.str.replace(r"^([-+]?[0-9]+),([0-9]+)$", "${1}.${2}")


def _possible_places(rows: pl.DataFrame, problems: RowProblems) -> pl.DataFrame:
    lat, lon = pl.col("lat"), pl.col("lon")
    shown = pl.concat_str(pl.col("lat text").fill_null("?"), pl.col("lon text").fill_null("?"), separator=", ")
    swapped = (lat.abs() > 90) & (lat.abs() <= 180) & (lon.abs() <= 90)
    outside = ((lat.abs() > 90) | (lon.abs() > 180)) & ~swapped
    null_island = (lat == 0) & (lon == 0)
    half = lat.is_null() != lon.is_null()
    for wrong, what in (
        (swapped, "latitude and longitude are swapped, by their size; both are left empty"),
        (outside, "coordinates are out of range and left empty"),
        (null_island, "coordinates are 0, 0, which stands for nothing; both are left empty"),
        (half, "latitude or longitude is missing; both are left empty"),
    ):
        problems.add("error", what, rows.filter(wrong.fill_null(False)), shown)
    kept = ~pl.any_horizontal(one.fill_null(False) for one in (swapped, outside, null_island, half))
    rows = rows.with_columns(pl.when(kept).then(pl.col(name)).alias(name) for name in ("lat", "lon"))
    if "country" in rows.columns:
        problems.add(
            "warning", "latitude and longitude look swapped, by the others of its country", _swapped(rows), shown
        )
    return rows


def _swapped(rows: pl.DataFrame) -> pl.DataFrame:
    lat, lon = pl.col("lat"), pl.col("lon")
    placed = rows.select("lat", "lon", "country").with_row_index("row").drop_nulls()  # a copy of what is needed alone
    middle = placed.group_by("country").agg(
        pl.len(), lat.median().name.prefix("middle "), lon.median().name.prefix("middle ")
    )
    placed = placed.join(middle.filter(pl.col("len") >= ENOUGH_RECORDS), on="country", maintain_order="left")
    middle_lat, middle_lon = pl.col("middle lat"), pl.col("middle lon")
    as_is = pl.max_horizontal((lat - middle_lat).abs(), (lon - middle_lon).abs())
    swapped = pl.max_horizontal((lon - middle_lat).abs(), (lat - middle_lon).abs())
    return rows[placed.filter((as_is > FAR_DEGREES) & (swapped < NEAR_DEGREES))["row"]]


def with_flags(rows: pl.DataFrame) -> pl.DataFrame:
    """Turns `captive` and `obscured` into true and false, under their full names.

    The accuracy of an obscured place speaks of the true place, not of the one that is given, so that it is emptied
    where it is smaller than obscuring makes it.
    """
    flags = {"captive": "captive", "obscured": "coordinates_obscured"}
    name_of = {name: new for name, new in flags.items() if name in rows.columns}
    lower = {new: pl.col(name).str.to_lowercase() for name, new in name_of.items()}
    rows = rows.with_columns(
        text.replace_strict(_BOOLEANS, default=None, return_dtype=pl.Boolean).alias(new) for new, text in lower.items()
    ).drop([name for name, new in name_of.items() if name != new])
    if "obscured" in name_of and "coordinate_uncertainty_m" in rows.columns:
        too_small = pl.col("coordinates_obscured") & (pl.col("coordinate_uncertainty_m") < OBSCURED_M)
        uncertainty = pl.when(~too_small.fill_null(False)).then(pl.col("coordinate_uncertainty_m"))
        rows = rows.with_columns(coordinate_uncertainty_m=uncertainty)
    return rows


def with_ids(rows: pl.DataFrame, problems: RowProblems) -> pl.DataFrame:
    """Names each row by `observation_id`; rows without an id are called after their file and line."""
    if "id" in rows.columns and rows["id"].null_count() == 0:
        return rows.rename({"id": "observation_id"})
    own = pl.col("id") if "id" in rows.columns else pl.lit(None, pl.String)
    file = pl.col("file").str.extract(r"([^/]+)$", 1)
    after_line = pl.concat_str(file, pl.lit(":"), pl.col("line").cast(pl.String))
    if "id" in rows.columns:
        problems.add("warning", "has no id and is called after its line", rows.filter(pl.col("id").is_null()))
    rows = rows.with_columns(observation_id=pl.coalesce(own, after_line))
    return rows.drop("id") if "id" in rows.columns else rows
