"""A small world in the layout of SnakeCLEF 2020.

```
ROOT/
  round4_classes.csv                         scientific_name: every species as a slug
  train_labels.csv, train_images/<hashed_id>.jpg            scientific_name,country,hashed_id,continent
  validate_labels.csv, validate_images/<hashed_id>.jpg      the same
  test_metadata.csv, test_images/<hashed_id>.jpg            hashed_id,country,continent
  test_labels.csv                            hashed_id,scientific_name: what only the organizers have
  species_to_country.csv                     species by countries, 0 and 1, with gaps as tables in use have them
  venomous.csv                               scientific_name,venomous
  boxes.csv                                  photo,x,y,width,height: the box of every snake
  traits.parquet    file, label, sex, age, every trait: the truth behind the pixels, never read by a dataset
  WORLD.json        what this is, how it was made, and how much there is
```

As in the release, about a fifth of the photos have no place (`UNKNOWN`), every species has at least one photo in val,
test is twice as large, and each photo is of another snake. Species have a long tail, most photos come from few
countries, and pets are photographed where none of their kind lives. The table of presence lacks one species and some
countries of others; the last country of the map has no snakes at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.work.blocks import Executor
from fieldmark_worlds.layouts.release_files import Size, extent_of, finding_rng, world_mark
from fieldmark_worlds.nature.kingdom import Codes, Floats, Traits
from fieldmark_worlds.snakes.snake_nature import MORPHS, SnakeNature, SnakeSettings, grow_snakes
from fieldmark_worlds.snakes.snake_painter import PixelExtent, SnakePhotoJob, paint_snakes
from fieldmark_worlds.snakes.snakes_kingdom import SNAKES

# Counts up whenever the same size and seed would give other files than before.
GENERATOR_VERSION = 1
PHOTO_SIZE_PX = 160
UNKNOWN_PLACE = "UNKNOWN"
# Photos without any place, and with a continent alone.
PLACELESS, COUNTRYLESS = 0.17, 0.04
# Countries that the table of presence has forgotten.
TABLE_GAPS = 0.05
LEAST_TRAIN_PHOTOS = 3
PART_FILES = {"train": "train", "val": "validate", "test": "test"}


@dataclass(frozen=True)
class SnakeExtent:
    """How much of a world is written.

    Attributes:
        nature: How rich the nature is.
        photos: How many photos there are in train, val and test.
    """

    nature: SnakeSettings
    photos: tuple[int, int, int]


EXTENTS: dict[Size, SnakeExtent] = {
    "tiny": SnakeExtent(SnakeSettings(12, 5, continents=3, countries=4, zipf=0.5), (130, 40, 80)),
    "small": SnakeExtent(SnakeSettings(100, 32, continents=5, countries=9), (2_100, 330, 660)),
    "medium": SnakeExtent(SnakeSettings(500, 120, continents=6, countries=24), (15_000, 1_700, 3_400)),
}


@dataclass(frozen=True)
class SnakePhotos:
    """The photos of a world.

    Attributes:
        table: `part, hashed_id, species, country, continent, sex, age, file`; one row per photo.
        traits: The snakes on them.
        country: (n,) where each was taken, noted or not.
    """

    table: pl.DataFrame
    traits: Traits
    country: Codes


def write(
    out: Path, *, size: Size = "tiny", seed: int = 0, overwrite: bool = False, executor: Executor | None = None
) -> dict[str, object]:
    """Writes a world of the given size.

    Args:
        out: The root to be; it appears when complete.
        size: How much: about 250, 3,000 or 20,000 photos.
        seed: Another seed is another nature.
        overwrite: Whether an existing folder is replaced.
        executor: Who paints; all cores unless given.

    Returns:
        The content of `WORLD.json`.
    """
    return write_extent(out, extent_of(EXTENTS, size), size, seed=seed, overwrite=overwrite, executor=executor)


def write_extent(
    out: Path, extent: SnakeExtent, size: str, *, seed: int, overwrite: bool = False, executor: Executor | None = None
) -> dict[str, object]:
    """The same for an extent of one's own, under the name of a size."""
    nature = grow_snakes(extent.nature, seed)
    photos = take_photos(nature, extent, finding_rng(seed))
    with appearing_folder(Path(out), overwrite=overwrite) as root:
        jobs = [
            SnakePhotoJob(file, photos.traits.specimen(row), seed, row) for row, file in enumerate(photos.table["file"])
        ]
        boxes = paint_snakes(root, jobs, PHOTO_SIZE_PX, executor)
        _write_tables(root, nature, photos, boxes, finding_rng(seed, of=1))
        parts = {part: photos.table.filter(pl.col("part") == part) for part in PART_FILES}
        about = {
            "counts": {part: _counts(table) for part, table in parts.items()},
            "mimics": nature.taxa["model"].is_not_null().sum(),
            "best_possible": _best_possible(nature, photos),
        }
        mark = world_mark("snakeclef-2020", size=size, seed=seed, generator_version=GENERATOR_VERSION, about=about)
        write_json(root / "WORLD.json", mark)
    return mark


def take_photos(nature: SnakeNature, extent: SnakeExtent, rng: np.random.Generator) -> SnakePhotos:
    """Draws the snakes that are met, where, and what is noted of it."""
    species, parts = _met(nature, extent, rng)
    morph = rng.choice(len(MORPHS), size=len(species), p=[one.share for one in MORPHS])
    country = _drawn(nature.country_shares[species], rng)
    continent = nature.atlas.continent_of[country]
    chance = rng.random(len(species))
    countries = np.array([*nature.atlas.countries, UNKNOWN_PLACE], dtype=object)
    continents = np.array([*nature.atlas.continents, UNKNOWN_PLACE], dtype=object)
    noted_country = np.where(chance < PLACELESS + COUNTRYLESS, -1, country)
    noted_continent = np.where(chance < PLACELESS, -1, continent)
    ids = _hashes(rng, len(species))
    table = pl.DataFrame(
        {
            "part": parts,
            "hashed_id": ids,
            "species": species,
            "label": [_slug(nature.taxa["label"][int(one)]) for one in species],
            "country": countries[noted_country],
            "continent": continents[noted_continent],
            "sex": [MORPHS[one].sex for one in morph],
            "age": [MORPHS[one].age for one in morph],
        },
        schema_overrides={"country": pl.String, "continent": pl.String},
    )
    folder = pl.col("part").replace_strict(PART_FILES, return_dtype=pl.String)
    table = table.with_columns(pl.format("{}_images/{}.jpg", folder, "hashed_id").alias("file"))
    return SnakePhotos(table, _draw_traits(nature, species, morph, rng), country)


def _met(nature: SnakeNature, extent: SnakeExtent, rng: np.random.Generator) -> tuple[Codes, list[str]]:
    """The species of every photo and its part: the least that every part must have, and others by abundance."""
    species: list[Codes] = []
    parts: list[str] = []
    for part, number, least in zip(PART_FILES, extent.photos, (LEAST_TRAIN_PHOTOS, 1, 1), strict=True):
        sure = np.tile(np.arange(len(nature)), least)
        more = rng.choice(len(nature), size=number - len(sure), p=nature.abundance)
        species.append(rng.permutation(np.concatenate([sure, more])))
        parts += [part] * number
    return np.concatenate(species).astype(np.int64), parts


def _draw_traits(nature: SnakeNature, species: Codes, morph: Codes, rng: np.random.Generator) -> Traits:
    means = np.stack([nature.looks_of(one).means for one in MORPHS])[morph, species]
    latents = means + nature.tree.sds[species] * rng.standard_normal(means.shape)
    options = [_drawn(block[species], rng) for block in nature.tree.option_probabilities]
    return Traits(SNAKES, latents, np.column_stack(options))


def _drawn(shares: Floats, rng: np.random.Generator) -> Codes:
    """One column per row, in proportion to the shares of that row."""
    cumulative = np.cumsum(shares, axis=1)
    drawn = rng.random(len(shares))[:, None] * cumulative[:, -1:]
    columns: Codes = np.minimum((cumulative <= drawn).sum(axis=1), shares.shape[1] - 1)
    return columns


def _hashes(rng: np.random.Generator, count: int) -> list[str]:
    """Names of ten hexadecimal digits, as the release has them, none of them twice."""
    ids: dict[str, None] = {}
    while len(ids) < count:
        ids[rng.bytes(5).hex()] = None
    return list(ids)


def _slug(name: str) -> str:
    return name.lower().replace(" ", "-")


def _write_tables(
    root: Path, nature: SnakeNature, photos: SnakePhotos, boxes: list[PixelExtent], rng: np.random.Generator
) -> None:
    slugs = [_slug(name) for name in nature.taxa["label"]]
    pl.DataFrame({"scientific_name": sorted(slugs)}).write_csv(root / "round4_classes.csv")
    venomous = pl.DataFrame({"scientific_name": slugs, "venomous": nature.taxa["venomous"].cast(pl.Int8)})
    venomous.sort("scientific_name").write_csv(root / "venomous.csv")
    for part, stem in PART_FILES.items():
        rows = photos.table.filter(pl.col("part") == part)
        if part == "test":
            rows.select("hashed_id", "country", "continent").write_csv(root / "test_metadata.csv")
            rows.select("hashed_id", pl.col("label").alias("scientific_name")).write_csv(root / "test_labels.csv")
        else:
            columns = pl.col("label").alias("scientific_name"), "country", "hashed_id", "continent"
            rows.select(*columns).write_csv(root / f"{stem}_labels.csv")
    drawn = pl.DataFrame(boxes, schema=["x", "y", "width", "height"], orient="row")
    drawn.select(photos.table["file"].alias("photo"), "x", "y", "width", "height").write_csv(root / "boxes.csv")
    _presence(nature, slugs, rng).write_csv(root / "species_to_country.csv")
    traits = pl.DataFrame([photos.traits.specimen(row) for row in range(len(photos.traits))])
    identity = photos.table.select("file", "label", "sex", "age")
    pl.concat([identity, traits], how="horizontal").write_parquet(root / "traits.parquet")


def _presence(nature: SnakeNature, slugs: list[str], rng: np.random.Generator) -> pl.DataFrame:
    """The table of presence: one species is not listed, and some countries are forgotten."""
    listed_in: NDArray[np.bool_] = nature.lives & (rng.random(nature.lives.shape) >= TABLE_GAPS)
    listed_in = np.where(listed_in.any(axis=1, keepdims=True), listed_in, nature.lives)
    listed = np.delete(np.arange(len(nature)), int(rng.integers(len(nature))))
    names = [slug.replace("-", " ").capitalize() for slug in slugs]
    columns = {
        name.lower(): listed_in[listed, number].astype(np.int8) for number, name in enumerate(nature.atlas.countries)
    }
    return pl.DataFrame({"species": [names[one] for one in listed], **columns}).sort("species")


def _counts(photos: pl.DataFrame) -> dict[str, int]:
    return {
        "photos": photos.height,
        "classes": photos["label"].n_unique(),
        "located": photos.filter(pl.col("country") != UNKNOWN_PLACE).height,
    }


def _best_possible(nature: SnakeNature, photos: SnakePhotos) -> dict[str, float]:
    """What the exact posterior gets right on test, given the traits, and given the noted country as well."""
    rows = np.flatnonzero((photos.table["part"] == "test").to_numpy())
    truth = photos.table["species"].to_numpy()[rows]
    logs = nature.log_likelihood(photos.traits.take(rows)) + np.log(nature.abundance)
    noted = (photos.table["country"] != UNKNOWN_PLACE).to_numpy()[rows]
    by_country = np.log(nature.country_shares).T[photos.country[rows]]
    with_country = logs + np.where(noted[:, None], by_country, 0.0)
    return {
        "test_top_1": round(float((logs.argmax(axis=1) == truth).mean()), 4),
        "test_top_1_with_country": round(float((with_country.argmax(axis=1) == truth).mean()), 4),
    }
