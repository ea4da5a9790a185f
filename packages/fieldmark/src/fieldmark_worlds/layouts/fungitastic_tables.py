"""The metadata of FungiTastic: 31 columns, one row per photo, quirks included.

Quirks, all of them those of the real files: months and days are floats, years are floats in some files, `metaSubstrate`
holds an untranslated `jord` for most of `soil`, some cells are empty, indices of photos have gaps, ids of classes are
alphabetical within a subset and mean another class in another subset, and two classes may share a species.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from fieldmark_worlds.layouts.fungitastic_finds import Finds
from fieldmark_worlds.layouts.release_files import one_row_per_photo
from fieldmark_worlds.nature.kingdom import RANKS
from fieldmark_worlds.scenery.landcover import cover_at
from fieldmark_worlds.scenery.regions import COUNTRY_CODE, Regions

ReleaseName = Literal["2024", "2025"]

FULL, MINI, FEW_SHOT = "FungiTastic", "FungiTastic-Mini", "FungiTastic-FewShot"
UNKNOWN = -1

COLUMNS = (
    "eventDate",
    "year",
    "month",
    "day",
    "habitat",
    "countryCode",
    "scientificName",
    "kingdom",
    "phylum",
    "class",
    "order",
    "family",
    "genus",
    "specificEpithet",
    "hasCoordinate",
    "species",
    "iucnRedListCategory",
    "substrate",
    "latitude",
    "longitude",
    "coorUncert",
    "observationID",
    "region",
    "district",
    "filename",
    "category_id",
    "metaSubstrate",
    "poisonous",
    "elevation",
    "landcover",
    "biogeographicalRegion",
)

LABEL_COLUMNS = frozenset(
    (*RANKS, "scientificName", "specificEpithet", "iucnRedListCategory", "category_id", "poisonous")
)
# All that the test files had before 2025.
UNLABELED_COLUMNS = tuple(name for name in COLUMNS if name not in LABEL_COLUMNS)

_HABITATS = {
    "deciduous woodland": "Deciduous woodland",
    "mixed woodland": "Mixed woodland (with coniferous and deciduous trees)",
    "coniferous woodland": "coniferous woodland/plantation",
    "grassland": "natural grassland",
    "heath": "heath",
    "dunes": "dune",
    "park or garden": "park/churchyard",
    "bog": "bog",
}
_SUBSTRATES = {
    "soil": ("soil", "jord"),
    "dead wood": ("dead wood (including bark)", "wood"),
    "living wood": ("wood and roots of living trees", "wood"),
    "leaf litter": ("leaf or needle litter", "plant material"),
    "dung": ("faeces", "animals"),
    "moss": ("mosses", "mosses"),
}
_UNCERTAINTIES_M = (1.0, 5.0, 10.0, 15.0, 25.0, 50.0, 75.0, 100.0, 2500.0)
_TRANSLATED_SHARE = 0.15
_EMPTY_SHARES = {"habitat": 0.03, "substrate": 0.03, "landcover": 0.04, "elevation": 0.03}
_FLOAT_YEARS = frozenset(
    ("FungiTastic-ClosedSet-Val", "FungiTastic-OpenSet-Val", "FungiTastic-FewShot-Train", "FungiTastic-FewShot-Val")
)
_FIRST_ID, _LAST_ID = 2_200_000_000, 4_900_000_000
# Shares of photos before which no, one, two and three numbers are missing.
_GAP_SHARES = (0.88, 0.07, 0.03, 0.02)


@dataclass(frozen=True)
class MetadataFile:
    """One CSV of the release.

    Attributes:
        subset: FULL, MINI or FEW_SHOT.
        part: The rest of its name, such as "ClosedSet-Val".
        split: "train", "val", "test" or "dna-test"; the folder of its photos is called so too.
        open: Whether it has unknown species as well.
    """

    subset: str
    part: str
    split: str
    open: bool = False

    @property
    def stem(self) -> str:
        return f"{self.subset}-{self.part}"

    @property
    def path(self) -> str:
        return f"metadata/{self.subset}/{self.stem}.csv"

    def labeled_in(self, release: ReleaseName) -> bool:
        """Whether it says what the photos show."""
        return release == "2025" or self.split != "test"


def metadata_files(release: ReleaseName) -> Iterator[MetadataFile]:
    """Yields the files of a release."""
    for subset in (FULL, MINI):
        yield MetadataFile(subset, "Train", "train")
        for part, split in (("Val", "val"), ("Test", "test")):
            if subset == MINI and release == "2025":
                yield MetadataFile(subset, part, split)
            else:
                yield MetadataFile(subset, f"ClosedSet-{part}", split)
                yield MetadataFile(subset, f"OpenSet-{part}", split, open=True)
        yield MetadataFile(subset, "DNA-Test", "dna-test")
    for part, split in (("Train", "train"), ("Val", "val"), ("Test", "test")):
        yield MetadataFile(FEW_SHOT, part, split)


def photo_table(
    finds: Finds, names: pl.DataFrame, regions: Regions, seed: int, rng: np.random.Generator
) -> pl.DataFrame:
    """Returns one row per photo of the world, sorted as the files are.

    Args:
        finds: The observations.
        names: One row per species, from `name_species`.
        regions: The districts they lie in.
        seed: Seed of the world.
        rng: Chance in numbers, gaps and empty cells.

    Returns:
        The columns of the release but `category_id`, and for the writer: `row` (of the observation), `observation_id`,
        `photo`, `split`, `dna`, `microscopic`, `known`, `few_shot` and `mini`.
    """
    seen, species = finds.seen, finds.seen.species
    flags = {"known": finds.known, "few_shot": finds.few_shot, "mini": finds.mini}
    observations = pl.concat([_observation_columns(finds, regions, seed, rng), names[species]], how="horizontal")
    observations = observations.with_columns(
        pl.Series("split", finds.split.tolist()),
        pl.Series("dna", finds.dna),
        pl.Series("spores", finds.microscopic),
        *(pl.Series(name, flag[species]) for name, flag in flags.items()),
        seen.table["observation_id"],
        seen.table["photos"],
    )
    photos = one_row_per_photo(observations)
    steps = pl.Series("index", rng.choice(len(_GAP_SHARES), size=photos.height, p=_GAP_SHARES) + 1)
    index = pl.col("index").cum_sum().over("row") - 1
    return (
        photos.with_columns(steps)
        .with_columns(
            pl.format("{}-{}.JPG", index, "observationID").alias("filename"),
            (pl.col("spores") & (pl.col("photo") == pl.col("photos"))).alias("microscopic"),
        )
        .sort("observationID", "photo")
    )


def _observation_columns(finds: Finds, regions: Regions, seed: int, rng: np.random.Generator) -> pl.DataFrame:
    """Returns what is noted about each observation, in the order of the finds, without what identifies its species."""
    table, count = finds.seen.table, len(finds.seen)
    cells = table["cell"].to_list()
    soil = (table["substrate"] == "soil").to_numpy() & (rng.random(count) < _TRANSLATED_SHARE)
    height = np.maximum(table["elevation_m"].to_numpy() + rng.normal(0, 15, count), 0).round()
    place = table["latitude"].to_numpy(), table["longitude"].to_numpy()
    columns = table.select(
        pl.col("date").dt.to_string("%Y-%m-%d").alias("eventDate"),
        "year",
        pl.col("month").cast(pl.Float64),
        pl.col("date").dt.day().cast(pl.Float64).alias("day"),
        pl.col("habitat").replace_strict(_HABITATS),
        pl.lit(COUNTRY_CODE).alias("countryCode"),
        pl.lit("True").alias("hasCoordinate"),
        pl.col("substrate").replace_strict({name: noted for name, (noted, _) in _SUBSTRATES.items()}),
        "latitude",
        "longitude",
        pl.Series("coorUncert", rng.choice(_UNCERTAINTIES_M, size=count)),
        pl.Series("observationID", _FIRST_ID + rng.choice(_LAST_ID - _FIRST_ID, size=count, replace=False)),
        pl.Series("region", [regions.region[cell] for cell in cells]),
        pl.Series("district", [regions.district[cell] for cell in cells]),
        pl.when(pl.Series(soil))
        .then(pl.lit("soil"))
        .otherwise(pl.col("substrate").replace_strict({name: meta for name, (_, meta) in _SUBSTRATES.items()}))
        .alias("metaSubstrate"),
        pl.Series("elevation", height),
        pl.Series("landcover", cover_at(seed, *place, table["habitat"].to_list()), dtype=pl.Float64),
        pl.Series("biogeographicalRegion", [regions.zone[cell] for cell in cells]),
    )
    empty = {name: pl.Series(rng.random(count) < share) for name, share in _EMPTY_SHARES.items()}
    return columns.with_columns(
        pl.when(missing).then(None).otherwise(pl.col(name)).alias(name) for name, missing in empty.items()
    )


def class_ids(photos: pl.DataFrame, subset: str) -> dict[str, int]:
    """Returns the id of every class of a subset, in the order of the alphabet."""
    in_subset = pl.col("few_shot") if subset == FEW_SHOT else pl.col("known") & (pl.col("mini") | (subset == FULL))
    return {name: i for i, name in enumerate(photos.filter(in_subset)["scientificName"].unique().sort())}


def rows_of(photos: pl.DataFrame, file: MetadataFile) -> pl.DataFrame:
    """Returns the photos of one file with their ids in its subset as `category_id`."""
    split = pl.col("split") == "test" if file.split == "dna-test" else pl.col("split") == file.split
    wanted = split & (pl.col("few_shot") if file.subset == FEW_SHOT else ~pl.col("few_shot"))
    if file.subset == MINI:
        wanted &= pl.col("mini")
    if file.split == "dna-test":
        wanted &= pl.col("dna")
    if file.subset != FEW_SHOT and not file.open:
        wanted &= pl.col("known")
    ids = class_ids(photos, file.subset)
    category = pl.col("scientificName").replace_strict(ids, default=UNKNOWN, return_dtype=pl.Int64)
    return photos.filter(wanted).with_columns(category.alias("category_id"))


def as_published(rows: pl.DataFrame, file: MetadataFile, release: ReleaseName) -> pl.DataFrame:
    """Returns the rows of a file with the columns, and the kinds of numbers, that it is published with."""
    if file.stem in _FLOAT_YEARS:
        rows = rows.with_columns(pl.col("year").cast(pl.Float64))
    return rows.select(COLUMNS if file.labeled_in(release) else UNLABELED_COLUMNS)


def counts_of(rows: pl.DataFrame) -> dict[str, int]:
    """Returns how much there is in the rows of a file."""
    unknown = rows.filter(pl.col("category_id") == UNKNOWN)
    return {
        "observations": rows["observationID"].n_unique(),
        "images": rows.height,
        "classes": rows["scientificName"].n_unique(),
        "unknown_classes": unknown["scientificName"].n_unique(),
    }
