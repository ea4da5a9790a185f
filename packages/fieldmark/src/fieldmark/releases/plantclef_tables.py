"""PlantCLEF 2022 and 2023 (all plants), and 2024 to 2026 (photos of plots), as their tables describe them.

```
ROOT/  (2022, 2023)                                       fields between semicolons
  PlantCLEF2022_trusted_training_metadata.csv             classid;image_path;gbif_occurrence_id;species;genus;family;...
  PlantCLEF2022_web_training_metadata.csv                 classid;image_path;species;...: photos found by a search
  PlantCLEF2022_test_metadata.csv                         obsid;image_name;...
  trusted/images/, web/images/, test/images/              photos as `image_path` or `image_name` says; also images/
ROOT/  (2024, 2025, 2026)
  PlantCLEF2024_single_plant_training_metadata.csv        image_name;organ;species_id;obs_id;latitude;longitude;species;
                                                          genus;family;learn_tag;...
  images_max_side_800/<species_id>/<image_name>           single plants; also in train/, or directly in train/
  PlantCLEF2025_test_images/<quadrat>.jpg                 photos of plots; also in images/ below that
  test_labels.csv                                         quadrat_id,species_ids,transect: what only the organizers have
```

Quirks:

- The names of files and columns come from the pages and from the code of participants.
- 2022: trusted photos and those of the web are both `train`; 2022 and 2023 ask about the same test.
- 2024: `learn_tag` cuts the single plants into train, val and test. The last part is called `single-test` here, because
  the test of the challenge is the photos of plots, each of which may show many species.
- A plot is called by the name of its photo without the ending. Which transect it lies on is not published: each is one
  of its own unless `test_labels.csv` says it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

import polars as pl

from fieldmark.errors import InputError
from fieldmark.releases.checks import CHALLENGE_PAGE, Count, ReleaseCheck
from fieldmark.releases.citations import preprint, working_note
from fieldmark.releases.photo_tables import TEST_LABELS, PhotoTable, TableLayout, open_photo_tables
from fieldmark.releases.record import PublishedSize, ReleaseRecord, World
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.media import PHOTO
from fieldmark.tables.reader import read_csv

PLACE = {"lat": ("latitude", "lat"), "lon": ("longitude", "lon")}
TAXON = {"scientific_name": ("species",), "genus": ("genus",), "family": ("family",)}


def _of_2022(part: str, kind: str, columns_in: str) -> PhotoTable:
    name = f"PlantCLEF2022_{columns_in}_metadata.csv"
    roots = (f"{kind}/", f"train/{kind}/", "")
    return PhotoTable(part, tuple(f"{root}{name}" for root in roots), tuple(f"{root}images" for root in roots))


PLANTS_2022 = TableLayout(
    "plantclef-2022",
    (
        _of_2022("train", "trusted", "trusted_training"),
        _of_2022("train", "web", "web_training"),
        _of_2022("test", "test", "test"),
    ),
    {
        "observation_id": ("obsid", "gbif_occurrence_id"),
        "photo": ("image_path", "image_name"),
        "label": ("classid",),
        "organ": ("organ",),
        **PLACE,
        **TAXON,
    },
    separator=";",
)
SINGLE_PLANTS = TableLayout(
    "plantclef-2024",
    (
        PhotoTable(
            "train",
            ("PlantCLEF2024_single_plant_training_metadata.csv", "PlantCLEF2024singleplanttrainingdata.csv"),
            ("images_max_side_800", "train/images_max_side_800", "train", "images"),
            by_class=True,
        ),
    ),
    {
        "observation_id": ("obs_id",),
        "photo": ("image_name",),
        "label": ("species_id",),
        "organ": ("organ",),
        **PLACE,
        **TAXON,
    },
    separator=";",
    part_column="learn_tag",
    part_names={"train": "train", "val": "val", "test": "single-test"},
)
PLOT_FOLDERS = ("PlantCLEF2025_test_images", "PlantCLEF2024_test_images", "test_images", "quadrat")
PLOT_COLUMNS = ("quadrat_id", "plot_id")


def open_plots(release: Release, subset: str = "all") -> Dataset:
    """Opens single plants to learn from and photos of plots to answer; there are no subsets.

    Raises:
        InputError: When there is no table of single plants, or when the labels of plots are no lists.
    """
    plants = open_photo_tables(release, subset, layout=SINGLE_PLANTS)
    plots = _plots(release)
    own = plants.observations.with_columns(labels=pl.concat_list("label"), transect="observation_id")
    found = plots.select("observation_id", "labels", "transect")
    missing = found["labels"].is_null().sum()
    remarks = list(plants.remarks)
    if plots.is_empty():
        remarks.append(f"There are no photos of plots here ({PLOT_FOLDERS[0]}/).")
    elif missing:
        remarks.append(f"{missing:,} photos of plots have no list of species: a run can be written, not scored.")
    return replace(
        plants,
        observations=pl.concat([own, found], how="diagonal_relaxed"),
        media=pl.concat([plants.media.select("media_id", "observation_id", "path", "parts"), plots.select(
            pl.col("observation_id").alias("media_id"), "observation_id", "path", "parts"
        )]),
        remarks=tuple(remarks),
    )  # fmt: skip


def plot_folder(release: Release) -> str:
    """The folder with the photos of plots; empty where there is none."""
    below = [f"{folder}{inner}" for folder in PLOT_FOLDERS for inner in ("", "/images")]
    return next((folder for folder in below if any(PHOTO.owns(name) for name in release.files(folder))), "")


def _plots(release: Release) -> pl.DataFrame:
    """One row per photo of a plot: `observation_id, path, parts, labels, transect`."""
    folder = plot_folder(release)
    names = [name for name in release.files(folder) if PHOTO.owns(name)] if folder else []
    ids = [PurePosixPath(name).stem for name in names]
    table = pl.DataFrame(
        {"observation_id": ids, "path": [f"{folder}/{name}" for name in names]},
        schema={"observation_id": pl.String, "path": pl.String},
    ).with_columns(parts=pl.lit(["test"], pl.List(pl.String)))
    lists = _species_lists(release)
    table = table.join(lists, on="observation_id", how="left", maintain_order="left")
    return table.with_columns(pl.coalesce("transect", "observation_id").alias("transect"))


def _species_lists(release: Release) -> pl.DataFrame:
    """The species of each plot, where somebody has them: `observation_id, labels, transect`."""
    if not release.exists(TEST_LABELS):
        return pl.DataFrame(schema={"observation_id": pl.String, "labels": pl.List(pl.String), "transect": pl.String})
    where = release.where(TEST_LABELS)
    with release.open(TEST_LABELS) as file:
        rows = read_csv(file, where, required=("species_ids",))
    named = next((one for one in PLOT_COLUMNS if one in rows.columns), None)
    if named is None:
        raise InputError(where, line=1, found=f"the columns {', '.join(rows.columns)}", expected="quadrat_id")
    lists = rows["species_ids"].fill_null("").str.strip_chars("[] ")
    wrong = (~lists.str.contains(r"^([0-9]+(,\s*[0-9]+)*)?$")).arg_true()
    if len(wrong):
        found = f"{rows['species_ids'][int(wrong[0])]!r} as species_ids"
        raise InputError(where, line=int(wrong[0]) + 2, found=found, expected="a list such as [1395807, 1392608]")
    transect = pl.col("transect") if "transect" in rows.columns else pl.lit(None, pl.String)
    return rows.select(
        pl.col(named).alias("observation_id"),
        lists.str.extract_all(r"[0-9]+").alias("labels"),
        transect.alias("transect"),
    ).unique("observation_id", keep="first", maintain_order=True)


RECORDS = (
    ReleaseRecord(
        name="plantclef-2022",
        about="PlantCLEF 2022 and 2023: trusted photos and those of the web, 80,000 species",
        open=partial(open_photo_tables, layout=PLANTS_2022),
        check=ReleaseCheck(
            published={
                "train": {CHALLENGE_PAGE: Count(classes=80_000)},
                "test": {CHALLENGE_PAGE: Count(observations=26_868, photos=55_306)},
            },
            note="published in rounded figures: 4 million photos, 2.9 million of them trusted",
        ),
        world=World(
            "fieldmark_worlds.layouts.relaid_plots:WRITE_PLANTS_2022",
            "the plants of the world of PlantCLEF 2020 as PlantCLEF 2022 is released: trusted photos, web photos",
        ),
        homepage="https://www.imageclef.org/LifeCLEF2022",
        size=PublishedSize(photos=4_000_000, rounded=True),
        citation=working_note(
            "goeau2022plantclef",
            "Overview of PlantCLEF 2022: Image-based plant identification at global scale",
            "Goëau, Hervé and Bonnet, Pierre and Joly, Alexis",
            2022,
            pages="1916--1928",
        )
        + "\n"
        + preprint(
            "goeau2023plantclef",
            "Overview of PlantCLEF 2023: Image-based Plant Identification at Global Scale",
            "Goëau, Hervé and Bonnet, Pierre and Joly, Alexis",
            2025,
            "2509.17622",
        ),
    ),
    ReleaseRecord(
        name="plantclef-2024",
        about="PlantCLEF 2024 to 2026: single plants to learn from, photos of plots to answer",
        open=open_plots,
        check=ReleaseCheck(
            published={"test": {f"{CHALLENGE_PAGE} of 2025": Count(photos=2_105)}},
            note="published in rounded figures: 1.7 million single plants (2024), 1.4 million (2025)",
        ),
        world=World(
            "fieldmark_worlds.layouts.relaid_plots:WRITE_PLOTS",
            "the plants of the world of PlantCLEF 2020: single plants, and photos of plots put together of them",
        ),
        size=PublishedSize(photos=1_400_000, rounded=True),
        citation=preprint(
            "goeau2024plantclef",
            "Overview of PlantCLEF 2024: multi-species plant identification in vegetation plot images",
            "Goëau, Hervé and others",
            2025,
            "2509.15768",
        )
        + "\n"
        + preprint(
            "martellucci2025plantclef",
            "Overview of PlantCLEF 2025: Multi-Species Plant Identification in Vegetation Quadrat Images",
            "Martellucci, Giulio and Goëau, Hervé and Bonnet, Pierre and Vinatier, Fabrice and Joly, Alexis",
            2025,
            "2509.17602",
        ),
    ),
)
