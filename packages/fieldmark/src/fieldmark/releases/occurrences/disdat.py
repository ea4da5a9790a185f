"""Regions of the benchmark of Elith et al. (2006, 2020), as the R package disdat names its tables.

```
ROOT/
  <REGION>train_po            presence-only records: siteid, spid, x, y, occ, group, and the environment
  <REGION>train_bg            background: places drawn over the region, the same columns
  <REGION>test_pa[_<group>]   sites: group, siteid, x, y, and a column of 0 and 1 for each species
  <REGION>test_env[_<group>]  the environment of the sites
```

Each is a CSV or Parquet table. A folder with several regions is opened by naming a table of one: `SWItrain_po.csv`.

Quirks:

- Coordinates are degrees in some regions and metres of a local grid in others. The grid of SWI fits no published one
  (that of Switzerland, shifted), so that metres are placed around 0 degrees north and east: distances and blocks hold,
  places on Earth do not, and a remark says so.
- Where a region has several groups (birds, trees), each was looked for at its own sites only. Only the species of a
  site's own group are asked about there.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import polars as pl

from fieldmark.errors import InputError
from fieldmark.releases.occurrences.coordinates import OwnGrid, are_degrees
from fieldmark.releases.occurrences.site_tables import number, read_any_table
from fieldmark.storage.release import Release

TABLE: Final = re.compile(r"^([A-Za-z]+)(train_po|train_bg|test_pa|test_env)(_[A-Za-z0-9]+)?\.(csv|csv\.gz|parquet)$")
NOT_ENVIRONMENT: Final = ("siteid", "spid", "x", "y", "occ", "group", "line")
METRES: Final = (
    "Coordinates are metres of a local grid, placed around 0 degrees north and east: distances and blocks hold, "
    "places on Earth do not."
)


def region_of(release: Release) -> str:
    """The region that a release is about; empty where it is none of this benchmark.

    Raises:
        InputError: When a folder holds several, and no table of one was named.
    """
    if release.file:
        named = TABLE.match(release.file)
        return named[1] if named else ""
    tables = {match[1]: match[0] for one in release.files() if (match := TABLE.match(one)) and match[2] == "train_po"}
    regions = sorted(tables)
    if len(regions) > 1:
        hint = f"Name a table of one of them: {release.where(tables[regions[0]])}."
        raise InputError(release.root, found=f"the regions {', '.join(regions)}", expected="one", hint=hint)
    return regions[0] if regions else ""


def read_region(release: Release, region: str) -> tuple[pl.DataFrame, tuple[str, ...], list[str]]:
    """The places of a region, the names of its environment, and remarks.

    Returns:
        `observation_id, label, labels, asked, lat, lon, parts, kind` and the environment, one row per place.

    Raises:
        InputError: When a table is missing, or sites have no environment.
    """
    tables = {kind: _tables(release, region, kind) for kind in ("train_po", "train_bg", "test_pa", "test_env")}
    records, where = next(iter(tables["train_po"].values())), release.where(f"{region}train_po")
    environment = tuple(name for name in records.columns if name not in NOT_ENVIRONMENT)
    group_of = dict(records.select("spid", "group").unique(maintain_order=True).iter_rows())
    parts = [
        _placed(records, "record", environment, where).with_columns(
            pl.format("po-{}", pl.int_range(1, pl.len() + 1)).alias("observation_id"),
            label=records["spid"],
            labels=pl.concat_list(records["spid"]),
        )
    ]
    for table in tables["train_bg"].values():
        ids = pl.format("background-{}", pl.int_range(1, pl.len() + 1))
        empty = pl.lit([], dtype=pl.List(pl.String))
        parts.append(
            _placed(table, "background", environment, where).with_columns(ids.alias("observation_id"), labels=empty)
        )
    for name, sites in tables["test_pa"].items():
        parts.append(_sites(release, region, name, sites, tables["test_env"].get(name), environment, group_of))
    places = pl.concat(parts, how="diagonal")
    x, y = places["x"].to_numpy(), places["y"].to_numpy()
    remarks = []
    lat, lon = y, x
    if not are_degrees(x, y):
        lat, lon = OwnGrid.around(x, y).to_degrees(x, y)
        remarks.append(METRES)
    return places.drop("x", "y").with_columns(lat=lat, lon=lon), environment, remarks


def _tables(release: Release, region: str, kind: str) -> dict[str, pl.DataFrame]:
    """The tables of one kind by group, the empty text where there are no groups."""
    found = {}
    for name in release.files():
        match = TABLE.match(name)
        if match and (match[1], match[2]) == (region, kind):
            found[(match[3] or "").lstrip("_")] = read_any_table(release, name)
    if not found and kind != "train_bg":
        raise InputError(release.where(f"{region}{kind}.csv"), found="no such table", expected="CSV or Parquet")
    return found


def _placed(table: pl.DataFrame, kind: str, environment: tuple[str, ...], where: str) -> pl.DataFrame:
    numbers = [number(table, name, where).alias(name) for name in ("x", "y", *environment)]
    part = {"record": "train", "background": "background", "site": "test"}[kind]
    return pl.DataFrame(numbers).with_columns(kind=pl.lit(kind), parts=pl.lit([part]))


def _sites(
    release: Release,
    region: str,
    name: str,
    sites: pl.DataFrame,
    env: pl.DataFrame | None,
    environment: tuple[str, ...],
    group_of: dict[str, str],
) -> pl.DataFrame:
    where = release.where(f"{region}test_env{'_' * bool(name)}{name}")
    if env is None or env["siteid"].to_list() != sites["siteid"].to_list():
        raise InputError(where, found="other sites than in test_pa", expected="the same, in the same order")
    species = [one for one in sites.columns if one in group_of]
    values = np.column_stack([number(sites, one, where).to_numpy() for one in species]) > 0
    names = np.array(species, dtype=object)
    placed = _placed(env, "site", environment, where)
    groups = set(group_of.values())
    asked = None if len(groups) < 2 else [one for one in species if group_of[one] in set(sites["group"])]
    prefix = f"{name}-" if name else ""
    return placed.with_columns(
        observation_id=pl.Series([f"{prefix}{one}" for one in sites["siteid"]]),
        labels=pl.Series([names[row].tolist() for row in values], dtype=pl.List(pl.String)),
        asked=pl.Series([asked] * len(sites), dtype=pl.List(pl.String)),
    )
