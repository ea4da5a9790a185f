"""The tables of GeoLifeCLEF: where they lie in each year, and what their columns are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from fieldmark.errors import InputError
from fieldmark.storage.release import Release
from fieldmark.tables.codes import all_different
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import missing_column, parse_places
from fieldmark.tables.scientific_names import parse_name

COUNTRIES: Final = {"fr": "FR", "us": "USA"}
# The first digit of an id tells the country.
DIGIT_OF: Final = {"fr": "1", "us": "2"}
EXAMPLE_FILE: Final = "example_occurrences.csv"
TEST_LABELS: Final = "test_labels.csv"
ID_MAPPING: Final = "test_observation_ids_mapping.csv"
SPECIES_TABLES: Final = ("species_metadata.csv", "metadata/species_metadata.csv", "metadata/species_details.csv")
# An observation that every edition has: its place, its old id and the one that it has had since 28 April 2020.
ANCHOR_PLACE, ANCHOR_OLD_ID, ANCHOR_NEW_ID = (45.705116, 1.424622), "10000000", "10561949"
ENOUGH_IDS = 20


@dataclass(frozen=True)
class GeoEdition:
    """How one year names its tables and columns.

    Args:
        year: The year.
        folder, stem: `FOLDER/STEM_fr_train.csv`.
        id, lat, lon: The names of the columns.
        patches: Where the patches of each country lie, by its code; the first that exists counts.
    """

    year: int
    folder: str
    stem: str
    id: str
    lat: str
    lon: str
    patches: Mapping[str, tuple[str, ...]]

    def path(self, country: str, part: str) -> str:
        """The path of the table of a country and a part."""
        return f"{self.folder}{self.stem}_{country}_{part}.csv"

    @property
    def name(self) -> str:
        return f"geolifeclef-{self.year}"


_NEWER_COLUMNS = {"id": "observation_id", "lat": "latitude", "lon": "longitude"}
EDITIONS: Final = {
    2020: GeoEdition(
        2020, "", "occurrences", "id", "lat", "lon",
        {code: (f"patches_{code}", f"patches/{code}", "patches", "") for code in COUNTRIES},
    ),
    2021: GeoEdition(
        2021, "observations/", "observations", **_NEWER_COLUMNS,
        patches={code: (f"patches/{code}", f"patches-{code}") for code in COUNTRIES},
    ),
    2022: GeoEdition(
        2022, "observations/", "observations", **_NEWER_COLUMNS,
        patches={code: (f"patches-{code}", f"patches/{code}") for code in COUNTRIES},
    ),
}  # fmt: skip


def read_observations(release: Release, edition: GeoEdition) -> pl.DataFrame:
    """All observations of a release: `observation_id, lat, lon, label, country, part, subset, path`.

    Raises:
        InputError: When there is no table, an id stands twice, or a place cannot be.
    """
    tables = []
    for country in COUNTRIES:
        for part in ("train", "test"):
            path = edition.path(country, part)
            if release.exists(path):
                tables.append(_read_table(release, path, edition, country, part))
    example = release.file or EXAMPLE_FILE
    if not tables and edition.year == 2020 and release.exists(example):
        tables.append(_read_table(release, example, edition, "", "train"))
    if not tables:
        found = f"no {edition.path('fr', 'train')} and no {edition.path('us', 'train')}"
        raise InputError(
            release.root,
            found=found,
            expected=f"the root of GeoLifeCLEF {edition.year}",
            hint=_other_year(release, edition),
        )
    table = pl.concat(tables)
    if not all_different(table["observation_id"]):
        again = table.filter(pl.col("observation_id").is_duplicated())
        found = f"the id {again['observation_id'][0]} in {again['path'][0]} and {again['path'][1]}"
        raise InputError(release.root, found=found, expected="each id once")
    return _with_hidden_labels(release, table)


def _other_year(release: Release, edition: GeoEdition) -> str:
    others = [one.name for one in EDITIONS.values() if release.exists(one.path("fr", "train")) and one != edition]
    return f"It looks like {' or '.join(others)}." if others else ""


def _read_table(release: Release, path: str, edition: GeoEdition, country: str, part: str) -> pl.DataFrame:
    where = release.where(path)
    with release.open(path) as file:
        table = read_csv(file, where, required=(edition.id, edition.lat, edition.lon), separator=";")
    if part == "train" and "species_id" not in table.columns:
        raise missing_column(where, "species_id", table.columns)
    table = parse_places(table, where, lat=edition.lat, lon=edition.lon, required=True)
    of_digit = pl.col(edition.id).str.slice(0, 1).replace_strict({"1": "fr", "2": "us"}, default=None)
    strange = table.select(of_digit.is_null() | pl.col(edition.id).is_null()).to_series().arg_true()
    if len(strange):
        row = int(strange[0])
        expected = "eight digits, the first 1 for France or 2 for the United States"
        raise InputError(where, line=row + 2, found=f"the id {table[edition.id][row]!r}", expected=expected)
    label = pl.col("species_id") if "species_id" in table.columns else pl.lit(None, pl.String)
    subset = pl.col("subset") if "subset" in table.columns else pl.lit(None, pl.String)
    return table.select(
        pl.col(edition.id).alias("observation_id"),
        pl.col(edition.lat).alias("lat"),
        pl.col(edition.lon).alias("lon"),
        label.alias("label"),
        (pl.lit(country) if country else of_digit).alias("country"),
        pl.lit(part).alias("part"),
        subset.alias("subset"),
        pl.lit(path).alias("path"),
    )


def _with_hidden_labels(release: Release, table: pl.DataFrame) -> pl.DataFrame:
    """The observations with the labels of test, where the organizers' own table is there (in worlds)."""
    if not release.exists(TEST_LABELS):
        return table
    where = release.where(TEST_LABELS)
    with release.open(TEST_LABELS) as file:
        hidden = read_csv(file, where, required=("id", "species_id"), separator=";")
    joined = table.join(
        hidden.select(observation_id="id", hidden="species_id"), on="observation_id", how="left", maintain_order="left"
    )
    return joined.with_columns(pl.coalesce("label", "hidden").alias("label")).drop("hidden")


def read_species(release: Release) -> tuple[pl.DataFrame, str]:
    """The species that a release lists, with their names where it has them; and the path of the table.

    Returns:
        `label` and, where they are known, `scientific_name, genus, species, gbif_id, kingdom`; empty without a table.
    """
    path = next((one for one in SPECIES_TABLES if release.exists(one)), "")
    if not path:
        return pl.DataFrame(schema={"label": pl.String}), ""
    where = release.where(path)
    with release.open(path) as file:
        table = read_csv(file, where, required=("species_id",), separator=";")
    again = table["species_id"].is_duplicated().arg_true()
    if len(again):
        row = int(again[-1])
        raise InputError(where, line=row + 2, found=f"species {table['species_id'][row]} again", expected="each once")
    columns: list[pl.Expr | pl.Series] = [pl.col("species_id").alias("label")]
    if "GBIF_species_name" in table.columns:
        parsed = [parse_name(name or "") for name in table["GBIF_species_name"]]
        columns += [
            pl.col("GBIF_species_name").alias("scientific_name"),
            pl.Series("genus", [one.genus for one in parsed], dtype=pl.String),
            pl.Series("species", [one.species for one in parsed], dtype=pl.String),
        ]
    renamed = {"GBIF_species_id": "gbif_id", "GBIF_kingdom_name": "kingdom"}
    columns += [pl.col(name).alias(new) for name, new in renamed.items() if name in table.columns]
    return table.select(columns), path


def read_id_mapping(release: Release) -> dict[str, str]:
    """Under which id an observation of test is submitted, where that is another one (2021)."""
    if not release.exists(ID_MAPPING):
        return {}
    where = release.where(ID_MAPPING)
    with release.open(ID_MAPPING) as file:
        table = read_csv(file, where, required=("observation_id", "Id"), separator=";")
    return dict(table.filter(pl.col("observation_id") != pl.col("Id")).select("observation_id", "Id").iter_rows())


def has_old_ids(table: pl.DataFrame) -> bool:
    """Whether observations bear the ids from before 28 April 2020, which counted the rows.

    Old ids rise from row to row, almost without gaps; the new ones are drawn. Where an observation that every edition
    has is there, its id decides.
    """
    lat, lon = ANCHOR_PLACE
    anchor = table.filter(((pl.col("lat") - lat).abs() < 1e-5) & ((pl.col("lon") - lon).abs() < 1e-5))
    ids = anchor["observation_id"].to_list()
    if ANCHOR_OLD_ID in ids or ANCHOR_NEW_ID in ids:
        return ANCHOR_OLD_ID in ids
    for _, own in table.filter(pl.col("part") == "train").group_by("country"):
        numbers = own["observation_id"].cast(pl.Int64, strict=False).drop_nulls().to_numpy()
        steps = np.diff(numbers)
        if len(numbers) >= ENOUGH_IDS and (steps > 0).all() and steps.mean() < 1.5:
            return True
    return False
