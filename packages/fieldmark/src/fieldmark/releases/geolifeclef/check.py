"""A check of GeoLifeCLEF: counts beside those of the overview, ids, quadrats, points outside the rasters, patches."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Final

import numpy as np
import polars as pl
from PIL import Image

from fieldmark.releases.checks import CheckRun, Count, PartCount, Problems
from fieldmark.releases.geolifeclef.layers import LAYERS, CountryRasters, patch_layers, raster_folder, read_vectors
from fieldmark.releases.geolifeclef.quadrats import OLD_IDS, with_parts, with_quadrats
from fieldmark.releases.geolifeclef.tables import (
    COUNTRIES,
    EDITIONS,
    GeoEdition,
    has_old_ids,
    read_id_mapping,
    read_observations,
    read_species,
)
from fieldmark.releases.gridded import PatchFiles
from fieldmark.splits.quadrats import apart
from fieldmark.storage.release import Release

OVERVIEW, TABLES_2021 = "LifeCLEF 2020, section 4.2", "the tables of 2021"
# The overview says "over 1.9 million".
LEAST_OBSERVATIONS, SPECIES = 1_900_000, 31_435
PUBLISHED: Final[Mapping[int, Mapping[str, Mapping[str, Count]]]] = {
    2020: {
        "all": {OVERVIEW: Count(observations=LEAST_OBSERVATIONS, classes=SPECIES, countries=2)},
        "train": {TABLES_2021: Count(observations=1_878_718)},
        "test": {TABLES_2021: Count(observations=42_405)},
    },
    2021: {
        "train": {TABLES_2021: Count(observations=1_878_718 - 45_446)},
        "val": {TABLES_2021: Count(observations=45_446)},
        "test": {TABLES_2021: Count(observations=42_405)},
    },
    2022: {},
}
# Points of the Florida Keys that lie outside the rasters of the real release (an issue of the organizers' repository).
KNOWN_OUTSIDE: Final = "796 of train and 98 of test are known in the full release"
OUTSIDE = "outside_rasters"


def check_geolifeclef(check: CheckRun) -> list[PartCount]:
    """Checks what is there against the overview of 2020; the root may be the folder of the table that was named."""
    release, problems = check.release, check.problems
    edition = next(one for one in EDITIONS.values() if one.name == check.name)
    table = with_parts(with_quadrats(read_observations(release, edition)))
    table = table.with_columns(pl.col("parts").list.first().alias("part"))
    if check.real and edition.year == 2020 and len(table) < LEAST_OBSERVATIONS:
        problems.add("warning", f"there are {len(table):,} observations, and the overview says over 1.9 million")
    old = has_old_ids(table)
    if old:
        problems.add("warning", OLD_IDS.rstrip("."))
    _check_species(release, table, problems)
    _check_quadrats(table, problems)
    outside = _check_environment(release, edition, table, problems)
    if not old:
        _check_patches(release, edition, table, problems, media=check.media)
    handed_in = read_id_mapping(release)
    places = [f"{own} as {other}" for own, other in handed_in.items()]
    problems.at("note", "an observation of test is submitted under another id", places)
    if outside:
        check.lists[OUTSIDE] = outside
    return _counts(table, edition)


def _counts(table: pl.DataFrame, edition: GeoEdition) -> list[PartCount]:
    published = PUBLISHED[edition.year]

    def counted(rows: pl.DataFrame) -> Count:
        classes = rows["label"].drop_nulls().n_unique() or None
        return Count(
            observations=len(rows),
            classes=classes,
            quadrats=rows["quadrat"].n_unique(),
            countries=rows["country"].n_unique(),
        )

    counts = [PartCount("all", counted(table), dict(published.get("all", {})))]
    given = table.with_columns(pl.col("part").replace({"val": "train"})) if edition.year == 2020 else table
    for part in ("train", "val", "test"):
        own = given.filter(pl.col("part") == part)
        if len(own):
            counts.append(PartCount(part, counted(own), dict(published.get(part, {}))))
    for code in COUNTRIES:
        own = table.filter(pl.col("country") == code)
        if len(own):
            counts.append(PartCount(code, counted(own)))
    return counts


def _check_species(release: Release, table: pl.DataFrame, problems: Problems) -> None:
    listed, path = read_species(release)
    if not path:
        problems.add("note", "there is no table of species")
        return
    seen = table["label"].drop_nulls().unique()
    strange = seen.filter(~seen.is_in(listed["label"].implode())).sort().to_list()
    problems.at("error", f"a species is not listed in {path}", strange)
    unseen = listed["label"].filter(~listed["label"].is_in(seen.implode())).to_list()
    problems.at("note", f"a species of {path} has no observation here", unseen)


def _check_quadrats(table: pl.DataFrame, problems: Problems) -> None:
    """No quadrat may lie on both sides; how far test lies from train."""
    sides = table.group_by("quadrat").agg(pl.col("part").unique().sort())
    torn = sides.filter(pl.col("part").list.len() > 1).sort("quadrat")
    places = [f"{quadrat} in {' and '.join(parts)}" for quadrat, parts in torn.iter_rows()]
    problems.at("warning", "a quadrat of 5 km lies in more than one part", places)
    for part, found in apart(table["lat"].to_numpy(), table["lon"].to_numpy(), table["part"].to_numpy()).items():
        told = f"{part} lies {found.nearest_m:,.0f} m from the nearest place of train at least, {found.median_m:,.0f} m"
        problems.add("note", f"{told} in the middle")


def _check_environment(
    release: Release, edition: GeoEdition, table: pl.DataFrame, problems: Problems
) -> tuple[str, ...]:
    """What is missing of rasters and vectors; the observations outside the rasters."""
    if edition.year != 2020:
        vectors = read_vectors(release)
        if vectors is not None:
            without = table.filter(~pl.col("observation_id").is_in(vectors.ids.implode()))["observation_id"].to_list()
            problems.at("warning", "an observation has no vector of the environment", without)
    folder = raster_folder(release)
    rasters = CountryRasters.find(release, table)
    if rasters is None or folder is None:
        problems.add("note", "there are no rasters")
        return ()
    paths = [f"{folder}/{layer}/{layer}_{name}.tif".lstrip("/") for layer in LAYERS for name in COUNTRIES.values()]
    missing = [path for path in paths if not release.exists(path)]
    problems.at("warning", "a raster is missing", missing)
    beyond = table.filter(pl.Series(rasters.outside(table["observation_id"].to_list())))
    told = beyond.select("observation_id", "country", "part", "lat", "lon").iter_rows()
    places = tuple(f"{one} ({country}, {part}): {lat:.5f}, {lon:.5f}" for one, country, part, lat, lon in told)
    known = f" ({KNOWN_OUTSIDE})" if release.world is None and edition.year == 2020 else ""
    problems.at("warning", f"an observation lies outside the rasters of its country{known}; --json lists all", places)
    return places


def _check_patches(
    release: Release, edition: GeoEdition, table: pl.DataFrame, problems: Problems, *, media: bool
) -> None:
    layers = {name: layer for name, layer in patch_layers(release, edition).items() if isinstance(layer, PatchFiles)}
    if not layers:
        problems.add("note", "there are no patches")
        return
    ids = table["observation_id"].to_list()
    for layer in {one.suffix: one for one in layers.values()}.values():
        paths = [layer.path(one) for one in ids]
        there = release.sizes(paths)
        missing = [path for path in paths if path not in there]
        problems.at("warning", f"a patch is missing (*{layer.suffix})", missing)
        if media:
            read = zip(there, release.read_many(there), strict=True)
            broken = [f"{path}: {fault}" for path, data in read if (fault := _fault(data))]
            problems.at("error", f"a patch cannot be read (*{layer.suffix})", broken)


def _fault(data: bytes) -> str:
    """What is wrong with a patch; empty for one that can be read to its end."""
    try:
        if data.startswith(b"\x93NUMPY"):
            np.load(io.BytesIO(data), allow_pickle=False)
        else:
            with Image.open(io.BytesIO(data)) as picture:
                picture.load()
    except (ValueError, EOFError, OSError, SyntaxError) as error:
        return str(error) or type(error).__name__
    return ""
