"""The land of a world, surveyed: GeoLifeCLEF 2023 to 2025.

```
ROOT/  (2023)
  Presence_Absence_surveys/, Presence_only_occurrences/, For_submission/    as `releases.geolifeclef.surveys` reads them
ROOT/  (2024, 2025)
  GLCYY_PA_metadata_{train,test}.csv, GLCYY_P0_metadata_train.csv
  Environmental{Rasters,Values}/GLCYY-PA-{train,test}-bioclimatic.csv     surveyId and the 27 layers at the place
  test_labels.csv, WORLD.json
```

Surveys lie in the first country, at places where somebody has noted a plant. A plot holds each species with the chance
that the niches of the world give it, each by itself. Test lies in blocks of its own.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.splits.grids import equal_area_cells
from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.work.blocks import Executor
from fieldmark_worlds.land.terrain import LAYERS
from fieldmark_worlds.land.whole_land import Notes, WholeLand
from fieldmark_worlds.layouts.release_files import Size, extent_of, finding_rng, world_mark

GENERATOR_VERSION = 1
BLOCK_M = 60_000.0
TEST_SHARE = 0.25
# How much of a place a survey sees: about seven species of 120 at a place.
EFFORT = 3.0
# Species, surveys and records of each size.
EXTENTS: dict[Size, tuple[int, int, int]] = {
    "tiny": (120, 240, 400),
    "small": (400, 2_000, 6_000),
    "medium": (3_000, 20_000, 60_000),
}


def write(
    out: Path,
    *,
    year: int,
    size: Size = "tiny",
    seed: int = 0,
    overwrite: bool = False,
    executor: Executor | None = None,
) -> dict[str, object]:
    """Writes a world of the given size.

    Args:
        out: The root to be; it appears when complete.
        year: Whose layout: 2023, 2024 or 2025.
        size: How much: 240, 2,000 or 20,000 surveys.
        seed: Another seed is another land.
        overwrite: Whether an existing folder is replaced.
        executor: Taken for the sake of other worlds.

    Returns:
        The content of `WORLD.json`.
    """
    return write_extent(out, extent_of(EXTENTS, size), size, year=year, seed=seed, overwrite=overwrite)


def write_extent(
    out: Path, extent: tuple[int, int, int], size: str, *, year: int, seed: int, overwrite: bool = False
) -> dict[str, object]:
    """The same for an extent of one's own, under the name of a size."""
    species, number, records = extent
    land = WholeLand.grown(species=species, towns=(24, 2), seed=seed)
    rng = finding_rng(seed)
    visited, noted = land.noted(number, 0, rng), land.noted(records, 0, rng)
    found = rng.random((number, species)) < land.presence(visited.latitude, visited.longitude, 0, EFFORT)
    in_test = _test_blocks(visited, rng)
    with appearing_folder(Path(out), overwrite=overwrite) as root:
        table = _surveys(land, visited, found, in_test)
        (_write_2023 if year == 2023 else partial(_write_later, year=year))(root, table, noted)
        counts = {
            part: {"surveys": rows.height, "species": rows["species"].explode().n_unique()}
            for part, rows in (("train", table.filter(~pl.col("test"))), ("test", table.filter("test")))
        }
        about = {"counts": {**counts, "records": {"surveys": records}}, "effort": EFFORT}
        name = f"geolifeclef-{year}"
        mark = world_mark(name, size=size, seed=seed, generator_version=GENERATOR_VERSION, about=about)
        write_json(root / "WORLD.json", mark)
    return mark


def _test_blocks(visited: Notes, rng: np.random.Generator) -> NDArray[np.bool_]:
    row, column = equal_area_cells(visited.latitude, visited.longitude, BLOCK_M)
    cells, cell = np.unique(np.column_stack([row, column]), axis=0, return_inverse=True)
    drawn = rng.permutation(len(cells))[: max(1, round(TEST_SHARE * len(cells)))]
    return np.isin(cell.ravel(), drawn)


def _surveys(land: WholeLand, visited: Notes, found: NDArray[np.bool_], in_test: NDArray[np.bool_]) -> pl.DataFrame:
    """One row per survey: place, day, species, part and the 27 layers; those that found nothing are left out."""
    layers = land.terrains[0].at(visited.latitude, visited.longitude).layers()
    day = 100 + np.arange(len(visited)) % 180
    table = pl.DataFrame(
        {
            "surveyId": 1_000_000 + np.arange(len(visited)),
            "lat": visited.latitude,
            "lon": visited.longitude,
            "dayOfYear": day,
            "year": 2017 + np.arange(len(visited)) % 5,
            "test": in_test,
            "species": [np.flatnonzero(row).tolist() for row in found],
            **{name: np.round(layers[number], 2) for number, name in enumerate(LAYERS)},
        },
        schema_overrides={"species": pl.List(pl.Int64)},
    )
    return table.filter(pl.col("species").list.len() > 0)


def _write_later(root: Path, table: pl.DataFrame, noted: Notes, *, year: int) -> None:
    short = f"GLC{year % 100}"
    folder = root / ("EnvironmentalRasters" if year == 2024 else "EnvironmentalValues")
    folder.mkdir()
    facts = ("surveyId", "lon", "lat", "year", pl.lit("ATLANTIC").alias("region"), pl.lit("France").alias("country"))
    for part, rows in (("train", table.filter(~pl.col("test"))), ("test", table.filter("test"))):
        shown = rows.select(*facts, pl.lit("inf").alias("areaInM2"), "species")
        path = root / f"{short}_PA_metadata_{part}.csv"
        if part == "train":
            each = shown.explode("species").with_columns(pl.format("{}.0", "species").alias("speciesId"))
            each.drop("species").write_csv(path)
        else:
            shown.drop("species").write_csv(path)
            hidden = rows.select("surveyId", speciesId="species").explode("speciesId")
            hidden.write_csv(root / "test_labels.csv")
        rows.select("surveyId", *LAYERS).write_csv(folder / f"{short}-PA-{part}-bioclimatic.csv")
    _records(noted).rename({"glcID": "surveyId"}).write_csv(root / f"{short}_P0_metadata_train.csv")


def _write_2023(root: Path, table: pl.DataFrame, noted: Notes) -> None:
    for name in ("Presence_Absence_surveys", "Presence_only_occurrences", "For_submission"):
        (root / name).mkdir()
    table = table.with_columns(patchID=pl.col("surveyId") + 2_000_000)
    train, test = table.filter(~pl.col("test")), table.filter("test")
    visit = ("dayOfYear", "year", "lon", "lat")
    each = train.select(*visit, "patchID", speciesId="species").explode("speciesId")
    surveys = root / "Presence_Absence_surveys"
    each = each.with_row_index("glcID", offset=5_000_000)
    each.write_csv(surveys / "Presences_Absences_train.csv", separator=";")
    train.select("patchID", *visit, *LAYERS).write_csv(surveys / "enviroTab_pa_train.csv", separator=";")
    asked = test.with_columns(Id="surveyId")
    asked.select("Id", *visit, "patchID").write_csv(root / "For_submission/test_blind.csv", separator=";")
    asked.select("Id", *visit, *LAYERS).write_csv(surveys / "enviroTab_pa_test.csv", separator=";")
    asked.select("Id", speciesId="species").explode("speciesId").write_csv(root / "test_labels.csv")
    _records(noted).write_csv(root / "Presence_only_occurrences/Presences_only_train.csv", separator=";")


def _records(noted: Notes) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "glcID": 100 + np.arange(len(noted)),
            "year": 2017 + np.arange(len(noted)) % 5,
            "lon": noted.longitude,
            "lat": noted.latitude,
            "speciesId": noted.species,
        }
    )


WRITE_2023, WRITE_2024, WRITE_2025 = (partial(write, year=year) for year in (2023, 2024, 2025))
