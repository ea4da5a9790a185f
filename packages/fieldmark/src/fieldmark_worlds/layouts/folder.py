"""A small world in the layout that a researcher's own photos have.

```
ROOT/
  train|val|test/<Genus epithet>/<observation>-<n>.jpg
  observations.csv   file, observation, date, latitude, longitude, habitat, substrate, observer
  taxa.csv           label, kingdom, phylum, class, order, family, genus, species, poisonous
  traits.parquet     file, label, every trait: the truth behind the pixels, never read by a method
  WORLD.json         what this is, how it was made, and how much there is
```

Splits are years: the first three train, the fourth validates, the fifth tests. Species that are too rare in train, or
appear only later, have no place in such a layout; they are left out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.work.blocks import Executor
from fieldmark_worlds.fungi.fungi_kingdom import FUNGI
from fieldmark_worlds.fungi.photos import paint_photos
from fieldmark_worlds.layouts.release_files import (
    Size,
    best_top_1,
    extent_of,
    finding_rng,
    one_row_per_photo,
    photo_jobs,
    prior_over,
    trait_table,
    within_budget,
    world_mark,
)
from fieldmark_worlds.nature.kingdom import RANKS
from fieldmark_worlds.nature.nature import Nature, NatureSettings, grow_nature
from fieldmark_worlds.nature.observations import Sightings, observe

# Counts up whenever the same size and seed would give other files than before.
GENERATOR_VERSION = 1
PHOTO_SIZE_PX = 192

SPLIT_YEARS = {"train": (2018, 2019, 2020), "val": (2021,), "test": (2022,)}


@dataclass(frozen=True)
class FolderExtent:
    """How much of a world is written.

    Attributes:
        nature: How rich the nature is.
        photos: At most so many photos in each split.
        least_train_photos: A species with fewer photos in train is too rare for this layout.
    """

    nature: NatureSettings
    photos: Mapping[str, int]
    least_train_photos: int


EXTENTS: dict[Size, FolderExtent] = {
    "tiny": FolderExtent(
        NatureSettings(species=27, genera=7, kingdom=FUNGI, zipf=0.2, year_walk=0.1, observers=25),
        {"train": 165, "val": 50, "test": 84},
        least_train_photos=3,
    ),
    "small": FolderExtent(
        NatureSettings(species=150, genera=32, kingdom=FUNGI, zipf=1.0, observers=80),
        {"train": 1900, "val": 450, "test": 650},
        least_train_photos=3,
    ),
    "medium": FolderExtent(
        NatureSettings(species=520, genera=110, kingdom=FUNGI, zipf=1.0, observers=300),
        {"train": 13_000, "val": 3_000, "test": 4_000},
        least_train_photos=3,
    ),
}


def write(
    out: Path, *, size: Size = "tiny", seed: int = 0, overwrite: bool = False, executor: Executor | None = None
) -> dict[str, object]:
    """Writes a world of the given size.

    Args:
        out: The root to be; it appears when complete.
        size: How much: about 300, 3,000 or 20,000 photos.
        seed: Another seed is another nature.
        overwrite: Whether an existing folder is replaced.
        executor: Who paints; all cores unless given.

    Returns:
        The content of `WORLD.json`.
    """
    nature = nature_of(size, seed)
    splits, dropped = observe_splits(nature, EXTENTS[size], seed)
    photos = {split: photo_table(split, seen) for split, seen in splits.items()}
    with appearing_folder(Path(out), overwrite=overwrite) as root:
        jobs = [job for split, seen in splits.items() for job in photo_jobs(nature, seen, photos[split], seed)]
        paint_photos(root, jobs, PHOTO_SIZE_PX, executor)
        write_tables(root, nature, splits, photos)
        about = {
            "counts": {split: _counts(photos[split]) for split in splits},
            "dropped": dropped,
            "best_possible": _best_possible(nature, splits),
        }
        world = world_mark("folder", size=size, seed=seed, generator_version=GENERATOR_VERSION, about=about)
        write_json(root / "WORLD.json", world)
    return world


def nature_of(size: Size, seed: int) -> Nature:
    """Returns the nature that a world of this size and seed is written from."""
    return grow_nature(extent_of(EXTENTS, size).nature, seed)


def observe_splits(nature: Nature, extent: FolderExtent, seed: int) -> tuple[dict[str, Sightings], dict[str, int]]:
    """Draws the observations of each split and leaves out species that train does not teach."""
    rng = finding_rng(seed)
    splits: dict[str, Sightings] = {}
    first_id, taught = 1, np.zeros(len(nature), dtype=np.bool_)
    dropped = {"species_too_rare": 0, "species_new_after_train": 0}
    for split, years in SPLIT_YEARS.items():
        most = extent.photos[split]
        # Every observation has a photo, so these are enough even when half of them are left out.
        seen = observe(nature, years, 2 * most, rng, first_id=first_id)
        first_id += len(seen)
        if split == "train":
            seen = seen.take(within_budget(seen, np.ones(len(seen), dtype=np.bool_), most))
            photos = np.bincount(seen.species, weights=seen.table["photos"].to_numpy(), minlength=len(nature))
            taught = photos >= extent.least_train_photos
            newcomers = nature.taxa["first_year"].to_numpy() > max(years)
            dropped["species_too_rare"] = int((~taught & ~newcomers).sum())
            dropped["species_new_after_train"] = int((~taught & newcomers).sum())
        wanted = taught[seen.species]
        kept = within_budget(seen, wanted, most)
        last = len(seen) if split == "train" else int(kept.max(initial=-1)) + 1
        dropped[f"{split}_observations"] = int((~wanted[:last]).sum())
        splits[split] = seen.take(kept)
    return splits, dropped


def photo_table(split: str, seen: Sightings) -> pl.DataFrame:
    """Returns one row per photo: `file`, `row` (of the observation), `photo`, and the columns of the observation."""
    photos = one_row_per_photo(seen.table).with_columns(
        pl.col("observation_id").cast(pl.String).str.zfill(6).alias("observation")
    )
    path = pl.format("{}/{}/{}-{}.jpg", pl.lit(split), "label", "observation", "photo")
    return photos.with_columns(path.alias("file"))


def write_tables(
    root: Path, nature: Nature, splits: Mapping[str, Sightings], photos: Mapping[str, pl.DataFrame]
) -> None:
    """Writes the tables of a world: `observations.csv`, `taxa.csv` and `traits.parquet`."""
    columns = ("file", "observation", "date", "latitude", "longitude", "habitat", "substrate", "observer")
    pl.concat([table.select(columns) for table in photos.values()]).write_csv(root / "observations.csv")
    taught = photos["train"]["label"].unique()
    taxa = nature.taxa.filter(pl.col("label").is_in(taught.implode()))
    taxa.select("label", *RANKS, "poisonous").write_csv(root / "taxa.csv")
    truth = [_truth(splits[split], photos[split]) for split in splits]
    pl.concat(truth).write_parquet(root / "traits.parquet")


def _truth(seen: Sightings, photos: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([photos.select("file", "label"), trait_table(seen, photos)], how="horizontal")


def _counts(photos: pl.DataFrame) -> dict[str, int]:
    return {
        "observations": photos["observation_id"].n_unique(),
        "photos": photos.height,
        "classes": photos["label"].n_unique(),
    }


def _best_possible(nature: Nature, splits: Mapping[str, Sightings]) -> dict[str, float]:
    """Returns what the exact posterior, which knows the traits and the abundances of the test year, gets right."""
    taught = np.isin(np.arange(len(nature)), splits["train"].species)
    reached, expected = best_top_1(nature, splits["test"], prior_over(nature, SPLIT_YEARS["test"], taught))
    return {"test_top_1": reached, "expected_top_1": expected}
