"""A region with its environment: records of presence, sites where every species was looked for, places in between.

```
ROOT/
  occurrences.csv          records (`records.py`), optionally with columns of numbers that sites.csv has as well
  sites.csv, presences.csv optional: presence and absence (`site_tables.py`); without records, the only table
  background.csv           optional: places drawn over the region
  rasters/*.tif, *.grd     optional: maps of the environment; or beside the table
  occurrences.toml         optional: what cannot be told from names (`columns.py`)
  <REGION>train_po.csv     or the tables of a region of the benchmark of Elith et al. (`disdat.py`)
```

Records are `train`, sites `test`, the background is `background`; sites without any records are all `train`, from which
benchmarks draw whole blocks. Where there are rasters and no background, places with a value in every raster are drawn
over the extent of records and sites, evenly by area and always the same.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from fieldmark.errors import InputError
from fieldmark.releases.environment import EnvironmentColumns
from fieldmark.releases.gridded import Rasters, raster_paths
from fieldmark.releases.occurrences.darwin_core import archive_folder
from fieldmark.releases.occurrences.disdat import read_region, region_of
from fieldmark.releases.occurrences.site_tables import SiteTable, find_table, read_background, read_sites
from fieldmark.releases.occurrences.sources import (
    ENVIRONMENT_ROLE,
    OTHER_TABLES,
    SITES,
    USUAL_NAMES,
    is_table,
    plain_stem,
    table_of,
)
from fieldmark.splits.grids import authalic_latitude
from fieldmark.storage.release import Release
from fieldmark.tables.delimited import read_header
from fieldmark.tables.inputs import Layer
from fieldmark.tables.known_columns import TableSettings

# How many places are drawn over a region that comes without background, and with which seed.
BACKGROUND_PLACES, BACKGROUND_SEED = 10_000, 1949
# How far beyond the outermost records and sites they may lie, as a share of the extent.
MARGIN = 0.05
MOST_DRAWS = 40
COLUMNS: Final = ("observation_id", "label", "labels", "asked", "lat", "lon", "parts", "kind")


def has_records(release: Release, settings: TableSettings) -> bool:
    """Whether a release has a table of records, or sites alone."""
    if release.file:
        return plain_stem(release.file) != SITES
    if settings.file or archive_folder(release) is not None:
        return True
    stated = settings.sites.get("file", "")
    if not find_table(release, SITES, stated):
        return True
    tables = [plain_stem(one) for one in release.files() if is_table(one)]
    # Beside stated sites lie tables of all kinds; beside sites.csv, any other table holds the records.
    return any(one in USUAL_NAMES if stated else one not in OTHER_TABLES for one in tables)


def shared_environment(release: Release, settings: TableSettings) -> tuple[str, ...]:
    """The columns that the tables of records and of sites both have, where none are stated: the environment."""
    path = find_table(release, SITES, settings.sites.get("file", ""))
    if settings.environment or not path or path.endswith(".parquet") or archive_folder(release) is not None:
        return tuple(settings.environment)
    records = read_header(release, table_of(release, settings)).columns
    of_sites = read_header(release, path).columns
    roles = {"lat", "lon", "latitude", "longitude", "x", "y", "id", "site", "site_id", "siteid", "date", "group"}
    return tuple(name for name in records if name in of_sites and name.casefold() not in roles and name)


def read_places(
    release: Release, settings: TableSettings, records: pl.DataFrame
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The places of a release and the names of the columns of its environment.

    Args:
        release: The root.
        settings: What is stated.
        records: Records with coordinates (`observation_id, label, lat, lon` and what else is known); none where the
            release holds sites alone.

    Returns:
        Records, sites and background as one table with `COLUMNS` and the environment.
    """
    of_records = [name.removeprefix(ENVIRONMENT_ROLE) for name in records.columns if name.startswith(ENVIRONMENT_ROLE)]
    numbers = [_number(records, name).alias(name) for name in of_records]
    parts = []
    if len(records):
        kept = records.drop([f"{ENVIRONMENT_ROLE}{name}" for name in of_records]).with_columns(numbers)
        kept = kept.filter(pl.col("label").is_not_null())
        labels = pl.concat_list("label")
        parts.append(kept.with_columns(labels=labels, parts=pl.lit(["train"]), kind=pl.lit("record")))
    sites = read_sites(release, settings, records["label"].drop_nulls().unique().to_list() if len(records) else ())
    environment = tuple(of_records)
    if sites is not None:
        if of_records:
            _refuse_other_columns(release, sites, of_records)
        elif not len(records):
            environment = sites.environment
        part = "test" if len(records) else "train"
        table = sites.frame.select("observation_id", "lat", "lon", "labels", "asked", *environment)
        parts.append(table.with_columns(parts=pl.lit([part]), kind=pl.lit("site"), label=pl.col("labels").list.first()))
    background = read_background(release, settings, environment)
    if background is not None:
        empty = pl.lit([], dtype=pl.List(pl.String))
        parts.append(background.with_columns(parts=pl.lit(["background"]), kind=pl.lit("background"), labels=empty))
    return unique_ids(pl.concat(parts, how="diagonal")), environment


def environment_layer(
    release: Release, places: pl.DataFrame, environment: tuple[str, ...], folder: str = ""
) -> tuple[dict[str, Layer], pl.DataFrame]:
    """The layer of the environment, and the places with a background drawn from rasters where there was none."""
    if environment:
        return {"environment": EnvironmentColumns.of(places, environment)}, places.drop(environment)
    paths = raster_paths(release, folder)
    if not paths:
        return {}, places
    if "kind" in places.columns and not (places["kind"] == "background").any():
        drawn = draw_background(release, paths, places)
        places = pl.concat([places, drawn], how="diagonal")
    return {"environment": Rasters.of(release, paths, places)}, places


def draw_background(release: Release, paths: tuple[str, ...], places: pl.DataFrame) -> pl.DataFrame:
    """Places over the extent of others, evenly by area, where every raster has a value.

    Raises:
        InputError: When hardly any place of the extent has values: the rasters lie elsewhere.
    """
    rng = np.random.default_rng(BACKGROUND_SEED)
    low, high = (np.array([getattr(places[name], side)() for name in ("lat", "lon")]) for side in ("min", "max"))
    margin = np.maximum(MARGIN * (high - low), 0.01)
    south, west = np.maximum(low - margin, [-90, -180])
    north, east = np.minimum(high + margin, [90, 180])
    grid_lat = np.linspace(south, north, 2001)
    heights = np.sin(authalic_latitude(grid_lat))
    found: list[pl.DataFrame] = []
    wanted = BACKGROUND_PLACES
    for _ in range(MOST_DRAWS):
        lat = np.interp(rng.uniform(heights[0], heights[-1], wanted), heights, grid_lat)
        drawn = pl.DataFrame({"lat": lat, "lon": rng.uniform(west, east, wanted)})
        drawn = drawn.with_columns(observation_id=pl.format("{}", pl.int_range(pl.len())))
        values = Rasters.of(release, paths, drawn).numbers(drawn["observation_id"].to_list())
        found.append(drawn.filter(pl.Series(~np.isnan(values).any(axis=1))).select("lat", "lon"))
        if sum(map(len, found)) >= wanted:
            break
    table = pl.concat(found).head(wanted)
    if len(table) < wanted // 100:
        found_places = f"{len(table):,} of {MOST_DRAWS * wanted:,} places with a value in every raster"
        hint = "Do the rasters cover the region, and do they share one extent?"
        raise InputError(release.where(paths[0]), found=found_places, expected="more", hint=hint)
    return table.with_columns(
        observation_id=pl.format("background-{}", pl.int_range(1, pl.len() + 1)),
        parts=pl.lit(["background"]),
        kind=pl.lit("background"),
        labels=pl.lit([], dtype=pl.List(pl.String)),
    )


def open_region(release: Release) -> tuple[pl.DataFrame, tuple[str, ...], list[str]] | None:
    """The places of a region in the layout of disdat; None where the release is no such."""
    region = region_of(release)
    return read_region(release, region) if region else None


def unique_ids(places: pl.DataFrame) -> pl.DataFrame:
    """The places with records called after their kind where a site has the same id."""
    own = pl.col("observation_id")
    shared = own.is_duplicated() & (pl.col("kind") == "record")
    return places.with_columns(pl.when(shared).then(pl.format("record-{}", own)).otherwise(own).alias("observation_id"))


def region_remarks(places: pl.DataFrame, environment: Layer | None) -> list[str]:
    """What a reader should know about the places of a region, one sentence each."""
    kinds = dict(places["kind"].value_counts().iter_rows())
    told = [f"{kinds[kind]:,} {what}" for kind, what in (
        ("record", "record(s) of presence"), ("site", "site(s) with presence and absence"),
        ("background", "place(s) of background"),
    ) if kind in kinds]  # fmt: skip
    remarks = [f"The region has {', '.join(told)}."]
    names = getattr(environment, "names", ())
    if names:
        remarks.append(f"The environment of a place is {len(names)} number(s): {', '.join(names[:30])}.")
    return remarks


def _number(records: pl.DataFrame, name: str) -> pl.Series:
    return records[f"{ENVIRONMENT_ROLE}{name}"].cast(pl.Float64, strict=False)


def _refuse_other_columns(release: Release, sites: SiteTable, wanted: list[str]) -> None:
    missing = [name for name in wanted if name not in sites.environment]
    if missing:
        found = f"no numbers called {', '.join(missing)} in the table of sites"
        raise InputError(release.root, found=found, expected="the environment of the records")
