"""Sites: places where every species of a list was looked for, so that what was not found was absent.

```
sites.csv (or .parquet)     a row for each site: its id, lat, lon, numbers of its environment, and either
                            a column for each species: 0 absent, 1 (or a count) present, blank where nobody looked ...
presences.csv               ... or a table with a row for each species that was found at a site: site, species; a site
                            where nothing was found has a row without a species, one without any row was not visited
background.csv              places drawn over the region, where nobody looked: lat, lon and the same numbers
```

Which columns are which is told by their names, or by `[sites]` in `occurrences.toml` (`columns.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from fieldmark.errors import InputError
from fieldmark.releases.occurrences.coordinates import are_degrees, to_degrees
from fieldmark.releases.occurrences.sources import BACKGROUND, PRESENCES, SITES, is_table, plain_stem
from fieldmark.storage.parquet import read_texts
from fieldmark.storage.release import Release
from fieldmark.tables.delimited import read_columns, read_header
from fieldmark.tables.known_columns import NAMES, SETTINGS_FILE, TableSettings
from fieldmark.tables.schema import missing_column
from fieldmark.tables.values import EMPTY

SITE_IDS: Final = ("site_id", "siteid", "site", "plot_id", "plot", "route", "id")
LATITUDES, LONGITUDES = (*NAMES["lat"], "y"), (*NAMES["lon"], "x")
SPECIES_COLUMNS: Final = ("label", "species", "scientificName", "taxon", "name", "species_id")
LINE: Final = "line"


@dataclass(frozen=True)
class SiteTable:
    """Sites as they were read.

    Args:
        frame: `observation_id, lat, lon, labels, asked` and the numbers of the environment, one row per site.
        environment: The names of the numbers.
        labels: The species that were looked for, in the order of the table.
    """

    frame: pl.DataFrame
    environment: tuple[str, ...]
    labels: tuple[str, ...]


def read_any_table(release: Release, path: str) -> pl.DataFrame:
    """A table as text, CSV (plain or packed) or Parquet, with `line`; blanks and words for nothing are nulls."""
    where = release.where(path)
    if path.endswith(".parquet"):
        frame = read_texts(release.read(path), where).with_row_index(LINE, offset=2)
    else:
        header = read_header(release, path)
        if len(set(header.columns)) < len(header.columns):
            again = next(name for name in header.columns if header.columns.count(name) > 1)
            raise InputError(where, line=1, found=f"the column {again!r} again", expected="each name once")
        places = {name: place for place, name in enumerate(header.columns) if name}
        frame = read_columns(release, path, header.dialect, places, width=len(header.columns))
    texts = [name for name in frame.columns if name != LINE]
    return frame.with_columns(
        pl.when(~pl.col(name).is_in(EMPTY)).then(pl.col(name)).alias(name) for name in texts
    ).with_columns(pl.col(LINE).cast(pl.Int64))


def find_table(release: Release, stem: str, stated: str = "") -> str:
    """The path of a table with a usual name, or of the stated one; empty where there is none."""
    if stated:
        if not release.exists(stated):
            hint = f"{SETTINGS_FILE} states it."
            raise InputError(release.where(stated), found="no such file", expected="a table", hint=hint)
        return stated
    fits = [name for name in release.files() if plain_stem(name) == stem]
    return next((name for name in fits if is_table(name) or name.endswith(".parquet")), "")


def read_sites(release: Release, settings: TableSettings, known: Collection[str]) -> SiteTable | None:
    """Reads the sites of a release.

    Args:
        release: The root.
        settings: What is stated.
        known: The labels of the records: columns of these names are species.

    Returns:
        The sites; None where the release has none.

    Raises:
        InputError: When columns are missing, or a value cannot be.
    """
    stated = settings.sites
    path = find_table(release, SITES, stated.get("file", ""))
    if not path:
        return None
    where = release.where(path)
    frame = read_any_table(release, path)
    named = _column(frame, SITE_IDS, stated.get("id", ""), "id", where)
    frame = frame.rename({named: "observation_id"})
    _refuse_repeated(frame, named, where)
    frame = with_degrees(frame, settings.crs, where)
    own_columns = frame.columns if stated.get("tables") else []  # a state or a route is a number and no environment
    for further in stated.get("tables", ()):
        frame = _joined(release, frame, further, named)
    presences = find_table(release, PRESENCES, stated.get("presences", ""))
    if presences:
        found = _listed(release, presences, named, stated.get("species", ""), frame)
    else:
        found = _wide(frame, settings, known, where)
    labels, table, species = found
    others = [*species, *own_columns, "observation_id", "lat", "lon"]
    environment = numeric_columns(frame, others, settings, where)
    numbers = frame.select("observation_id", "lat", "lon", *(pl.col(name).cast(pl.Float64) for name in environment))
    visited = numbers.with_columns(table).filter(pl.col("labels").is_not_null())
    return SiteTable(visited, environment, labels)


def read_background(release: Release, settings: TableSettings, environment: Sequence[str]) -> pl.DataFrame | None:
    """The places over a region, where a table holds them: `observation_id, lat, lon` and the environment."""
    path = find_table(release, BACKGROUND)
    if not path:
        return None
    where = release.where(path)
    frame = with_degrees(read_any_table(release, path), settings.crs, where)
    for name in environment:
        if name not in frame.columns:
            raise missing_column(where, name, frame.columns)
    ids = pl.format("background-{}", pl.int_range(1, pl.len() + 1))
    return frame.select(
        ids.alias("observation_id"), "lat", "lon", *(number(frame, name, where) for name in environment)
    )


def number(frame: pl.DataFrame, name: str, where: object) -> pl.Series:
    """A column of text as numbers, nulls where it is blank.

    Raises:
        InputError: Names the first line that holds something else.
    """
    if frame[name].dtype.is_numeric():
        return frame[name].cast(pl.Float64)
    values = frame[name].cast(pl.Float64, strict=False)
    wrong = (values.is_null() & frame[name].is_not_null()).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise InputError(where, line=frame[LINE][row], found=f"{frame[name][row]!r} as {name}", expected="a number")
    return values


def with_degrees(frame: pl.DataFrame, crs: str, where: object) -> pl.DataFrame:
    """The rows with `lat` and `lon` in degrees.

    Raises:
        InputError: When there are no coordinates, or when they are no degrees and no system is stated.
    """
    lat, lon = _column(frame, LATITUDES, "", "latitude", where), _column(frame, LONGITUDES, "", "longitude", where)
    y, x = number(frame, lat, where).to_numpy(), number(frame, lon, where).to_numpy()
    if crs:
        y, x = to_degrees(x, y, crs, where)
    elif not are_degrees(x, y):
        far = int(np.flatnonzero((np.abs(np.nan_to_num(y)) > 90) | (np.abs(np.nan_to_num(x)) > 180))[0])
        hint = f'State the coordinate system in {SETTINGS_FILE}: crs = "EPSG:...".'
        found = f"{x[far]:g}, {y[far]:g} as {lon} and {lat}"
        raise InputError(where, line=frame[LINE][far], found=found, expected="degrees", hint=hint)
    return frame.drop([name for name in {lat, lon} if name not in ("lat", "lon")]).with_columns(
        pl.Series("lat", y, nan_to_null=True), pl.Series("lon", x, nan_to_null=True)
    )


def numeric_columns(
    frame: pl.DataFrame, others: Collection[str], settings: TableSettings, where: object
) -> tuple[str, ...]:
    """The columns of the environment: those that are stated, or all others that hold nothing but numbers."""
    for name in settings.environment:
        if name not in frame.columns:
            raise missing_column(where, name, frame.columns)
    if settings.environment:
        return tuple(settings.environment)
    left = [name for name in frame.columns if name not in others and name != LINE]
    numbers = [name for name in left if frame[name].cast(pl.Float64, strict=False).null_count() < len(frame)]
    return tuple(
        name for name in numbers
        if frame[name].cast(pl.Float64, strict=False).null_count() == frame[name].null_count()
    )  # fmt: skip


Found = tuple[tuple[str, ...], list[pl.Series], list[str]]


def _wide(frame: pl.DataFrame, settings: TableSettings, known: Collection[str], where: str) -> Found:
    """Labels, what was found and looked for, and the columns of species, of a table with a column for each."""
    passed = {"observation_id", "lat", "lon", LINE, *settings.environment}
    if known:
        species = [name for name in frame.columns if name in set(known) - passed]
    else:
        species = [name for name in frame.columns if name not in passed and _is_presence(frame[name])]
    if not species:
        hint = (
            f"Name columns after the species of the records, or state presences = ... under [sites] in {SETTINGS_FILE}."
        )
        listed = f"the columns {', '.join(name for name in frame.columns if name != LINE)}"
        raise InputError(where, line=1, found=listed, expected="a column of 0 and 1 for each species", hint=hint)
    values = np.column_stack([number(frame, name, where).to_numpy() for name in species])
    if (values < 0).any():
        row, column = (int(one) for one in np.argwhere(values < 0)[0])
        found = f"{values[row, column]:g} as {species[column]}"
        raise InputError(where, line=frame[LINE][row], found=found, expected="0 for absent, or how many")
    names = np.array(species, dtype=object)
    labels = pl.Series("labels", [names[row > 0].tolist() for row in np.nan_to_num(values)], dtype=pl.List(pl.String))
    asked = pl.Series("asked", [None] * len(frame), dtype=pl.List(pl.String))
    if np.isnan(values).any():
        asked = pl.Series("asked", [names[~np.isnan(row)].tolist() for row in values], dtype=pl.List(pl.String))
    return tuple(species), [labels, asked], species


def _is_presence(column: pl.Series) -> bool:
    values = column.drop_nulls()
    return len(values) > 0 and bool(values.is_in(["0", "1", "0.0", "1.0"]).all())


def _listed(release: Release, path: str, site: str, species: str, frame: pl.DataFrame) -> Found:
    """The same of a table with a row for each species at each site."""
    where = release.where(path)
    rows = read_any_table(release, path)
    own = _column(rows, (site, *SITE_IDS), "", "site", where)
    name = _column(rows, SPECIES_COLUMNS, species, "species", where)
    strange = rows.filter(~pl.col(own).is_in(frame["observation_id"].implode()))
    pairs = rows.select(observation_id=own, label=name).drop_nulls().unique(maintain_order=True)
    kept = pairs.join(frame, on="observation_id", how="semi", maintain_order="left")
    if kept.is_empty():
        found = f"the site {strange[own][0]!r}" if len(strange) else "no row"
        raise InputError(where, found=found, expected="sites of the table of sites")
    visits = rows.select(observation_id=own, label=name).unique(maintain_order=True)
    grouped = visits.group_by("observation_id").agg(pl.col("label").drop_nulls().alias("labels"))
    lists = frame.select("observation_id").join(grouped, on="observation_id", how="left", maintain_order="left")
    labels = lists["labels"]
    asked = pl.Series("asked", [None] * len(frame), dtype=pl.List(pl.String))
    return tuple(kept["label"].unique().sort()), [labels, asked], []


def _joined(release: Release, frame: pl.DataFrame, path: str, site: str) -> pl.DataFrame:
    """The sites with the columns of a further table."""
    if not release.exists(path):
        hint = f"{SETTINGS_FILE} states it."
        raise InputError(release.where(path), found="no such file", expected="a table", hint=hint)
    table = read_any_table(release, path).drop(LINE)
    own = _column(table, (site, *SITE_IDS), "", "site", release.where(path))
    new = [name for name in table.columns if name not in frame.columns and name != own]
    once = table.unique(own, keep="first", maintain_order=True).select(pl.col(own).alias("observation_id"), *new)
    return frame.join(once, on="observation_id", how="left", maintain_order="left")


def _refuse_repeated(frame: pl.DataFrame, named: str, where: str) -> None:
    blank = frame["observation_id"].is_null().arg_true()
    if len(blank):
        raise InputError(where, line=frame[LINE][int(blank[0])], found=f"no {named}", expected="one in each row")
    again = (~frame["observation_id"].is_first_distinct()).arg_true()
    if len(again):
        row = int(again[0])
        found = f"{frame['observation_id'][row]!r} again as {named}"
        raise InputError(where, line=frame[LINE][row], found=found, expected="each site once")


def _column(frame: pl.DataFrame, names: Sequence[str], stated: str, role: str, where: object) -> str:
    """The column of a role: the stated one, or the first with a usual name."""
    if stated:
        if stated not in frame.columns:
            raise missing_column(where, stated, frame.columns)
        return stated
    plain = {name.casefold().replace("_", ""): name for name in reversed(frame.columns)}
    found = next(
        (plain[name.casefold().replace("_", "")] for name in names if name.casefold().replace("_", "") in plain), None
    )
    if found is None:
        listed = f"the columns {', '.join(name for name in frame.columns if name != LINE)}"
        expected = f"one with the {role}, such as {names[0]}"
        raise InputError(where, line=1, found=listed, expected=expected)
    return found
