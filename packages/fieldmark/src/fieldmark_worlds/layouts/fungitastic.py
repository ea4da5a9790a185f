"""A small world in the layout of FungiTastic.

```
ROOT/
  metadata/FungiTastic/          FungiTastic-{Train,DNA-Test}.csv, FungiTastic-{ClosedSet,OpenSet}-{Val,Test}.csv
  metadata/FungiTastic-Mini/     FungiTastic-Mini-{Train,DNA-Test}.csv, and
                                 2024: FungiTastic-Mini-{ClosedSet,OpenSet}-{Val,Test}.csv
                                 2025: FungiTastic-Mini-{Val,Test}.csv
  metadata/FungiTastic-FewShot/  FungiTastic-FewShot-{Train,Val,Test}.csv
  FungiTastic[-Mini|-FewShot]/{train,val,test,dna-test}/{300p,fullsize}/<filename>
  masks/FungiTastic-Mini-{Train,Validation,Test}Masks.parquet
  captions/{train,val,test}/<filename>.json
  climaticData/FungiTastic-Climatic-Timeseries.csv
  satellite_RGB/<observationID>.png, satellite_NIR/<observationID>.png
  traits.parquet                 per photo: every trait, the class, and its id in each subset; never read by a dataset
  WORLD.json                     what this is, how it was made, and how much there is in every metadata file
```

In release 2024 the test files have 19 columns and tell no labels; `traits.parquet` keeps them. `fullsize` exists for
Mini only. Masks have the size of `fullsize`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.work.blocks import Executor, all_cores, blocks_of, map_blocks
from fieldmark.work.progress import progress
from fieldmark_worlds.layouts.fungitastic_finds import EXTENTS, TEST_YEAR, Finds, FungiTasticExtent, find
from fieldmark_worlds.layouts.fungitastic_photos import PublishedMask, ReleasePhoto, paint_release
from fieldmark_worlds.layouts.fungitastic_tables import (
    FEW_SHOT,
    FULL,
    MINI,
    UNKNOWN,
    ReleaseName,
    as_published,
    class_ids,
    counts_of,
    metadata_files,
    photo_table,
    rows_of,
)
from fieldmark_worlds.layouts.release_files import (
    Size,
    best_top_1,
    extent_of,
    finding_rng,
    photo_jobs,
    prior_over,
    trait_table,
    world_mark,
)
from fieldmark_worlds.nature.nature import Nature, grow_nature
from fieldmark_worlds.nature.nomenclature import name_species
from fieldmark_worlds.scenery.climate import climate_table
from fieldmark_worlds.scenery.landcover import Ground, photograph_grounds
from fieldmark_worlds.scenery.regions import divide

# Counts up whenever the same size, seed and release would give other files than before.
GENERATOR_VERSION = 1

MASKED_SHARES = {"train": 0.3, "val": 0.9, "test": 0.9}
MASK_NAMES = {"train": "Train", "val": "Validation", "test": "Test"}
_MASK_SCHEMA: dict[str, pl.DataType] = {
    "file_name": pl.String(),
    "label": pl.String(),
    "width": pl.Int64(),
    "height": pl.Int64(),
    "rle": pl.List(pl.Int64),
}
_PLACES_PER_BLOCK = 32


def write(
    out: Path,
    *,
    size: Size = "tiny",
    seed: int = 0,
    overwrite: bool = False,
    executor: Executor | None = None,
    release: ReleaseName = "2025",
) -> dict[str, object]:
    """Writes a world of the given size.

    Args:
        out: The root to be; it appears when complete.
        size: How much: about 300, 3,000 or 20,000 photos.
        seed: Another seed is another nature.
        overwrite: Whether an existing folder is replaced.
        executor: Who paints; all cores unless given.
        release: Which of the two ways to name and label the files; the observations are the same.

    Returns:
        The content of `WORLD.json`.
    """
    if release not in get_args(ReleaseName):
        raise MisuseError(f"There is no release {release!r}. {did_you_mean(release, get_args(ReleaseName))}")
    extent = extent_of(EXTENTS, size)
    return write_extent(out, extent, size, seed=seed, overwrite=overwrite, executor=executor, release=release)


def write_extent(
    out: Path,
    extent: FungiTasticExtent,
    size: str,
    *,
    seed: int,
    overwrite: bool = False,
    executor: Executor | None = None,
    release: ReleaseName = "2025",
) -> dict[str, object]:
    """The same for an extent of one's own, under the name of a size."""
    nature = grow_nature(extent.nature, seed)
    finds = find(nature, extent, seed)
    photos = describe(nature, finds, seed)
    with appearing_folder(Path(out), overwrite=overwrite) as root:
        counts = _write_metadata(root, photos, release)
        published = release_photos(nature, finds, photos, seed, release)
        masks = paint_release(root, published, executor)
        _write_masks(root, photos, masks)
        places = _write_climate(root, finds, photos, seed)
        _write_satellite(root, places, seed, executor)
        _truth(finds, photos).write_parquet(root / "traits.parquet")
        about = {
            "release": release,
            "counts": counts,
            "unlabeled": [file.stem for file in metadata_files(release) if not file.labeled_in(release)],
            "best_possible": best_possible(nature, finds),
        }
        world = world_mark("fungitastic", size=size, seed=seed, generator_version=GENERATOR_VERSION, about=about)
        write_json(root / "WORLD.json", world)
    return world


def describe(nature: Nature, finds: Finds, seed: int) -> pl.DataFrame:
    """Returns one row per photo, as `photo_table` does, and whether its masks are published as `masked`."""
    rng = finding_rng(seed, of=1)
    times = np.bincount(finds.seen.species[finds.split == "train"], minlength=len(nature))
    names = name_species(nature, times.astype(np.int64), rng)
    photos = photo_table(finds, names, divide(nature, rng), seed, rng)
    share = pl.col("split").replace_strict(MASKED_SHARES, return_dtype=pl.Float64)
    chosen = pl.Series(rng.random(photos.height)) < share
    # A photo of spores is known as such by its mask alone, so it always has one.
    masked = pl.col("mini") & pl.col("known") & (chosen | pl.col("microscopic"))
    return photos.with_columns(masked.alias("masked"))


def release_photos(
    nature: Nature, finds: Finds, photos: pl.DataFrame, seed: int, release: ReleaseName
) -> list[ReleasePhoto]:
    """Returns what is published of every photo."""
    places = [_places(row, release) for row in photos.iter_rows(named=True)]
    jobs = photo_jobs(
        nature, finds.seen, photos.with_columns(pl.Series("file", [small[0] for small, _ in places])), seed
    )
    flags = photos.select("split", "filename", "microscopic", "masked").iter_rows()
    return [
        ReleasePhoto(job, small[1:], large, f"captions/{split}/{filename}.json", microscopic, masked)
        for job, (small, large), (split, filename, microscopic, masked) in zip(jobs, places, flags, strict=True)
    ]


def _places(row: dict[str, object], release: ReleaseName) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns where the small and where the large copies of a photo go."""
    folders = [row["split"], *(["dna-test"] if row["dna"] else [])]
    in_mini = row["mini"] and (row["known"] or release == "2024")
    subsets = (FEW_SHOT,) if row["few_shot"] else (FULL, MINI) if in_mini else (FULL,)
    small = [f"{subset}/{folder}/300p/{row['filename']}" for subset in subsets for folder in folders]
    large = [f"{MINI}/{folder}/fullsize/{row['filename']}" for folder in folders if MINI in subsets]
    return tuple(small), tuple(large)


def _write_metadata(root: Path, photos: pl.DataFrame, release: ReleaseName) -> dict[str, dict[str, int]]:
    """Writes every metadata file and returns how much there is in each, whether the file lists it or not."""
    counts = {}
    for file in metadata_files(release):
        rows = rows_of(photos, file)
        (root / file.path).parent.mkdir(parents=True, exist_ok=True)
        as_published(rows, file, release).write_csv(root / file.path)
        counts[file.stem] = counts_of(rows)
    return counts


def _write_masks(root: Path, photos: pl.DataFrame, masks: Sequence[PublishedMask]) -> None:
    table = pl.DataFrame([asdict(row) for row in masks], schema=_MASK_SCHEMA)
    (root / "masks").mkdir()
    for split, name in MASK_NAMES.items():
        files = photos.filter(pl.col("split") == split)["filename"]
        here = table.filter(pl.col("file_name").is_in(files.implode()))
        here.write_parquet(root / f"masks/{MINI}-{name}Masks.parquet")


def _write_climate(root: Path, finds: Finds, photos: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Writes the climate of every observation, and returns the observations as they were seen with their ids."""
    ids = photos.select("row", "observationID").unique("row").sort("row")["observationID"]
    places = finds.seen.table.with_columns(ids).sort("observationID")
    (root / "climaticData").mkdir()
    table = climate_table(places, finding_rng(seed, of=2))
    table.write_csv(root / "climaticData/FungiTastic-Climatic-Timeseries.csv", float_precision=2)
    return places


def _write_satellite(root: Path, places: pl.DataFrame, seed: int, executor: Executor | None) -> None:
    for band in ("RGB", "NIR"):
        (root / f"satellite_{band}").mkdir()
    columns = ("observationID", "latitude", "longitude", "habitat", "observation_id")
    grounds = [
        Ground(f"{name}.png", latitude, longitude, habitat, seed, number)
        for name, latitude, longitude, habitat, number in places.select(columns).iter_rows()
    ]
    with progress("looking from above", len(grounds)) as tick:
        block = partial(photograph_grounds, root)
        for done in map_blocks(block, blocks_of(grounds, _PLACES_PER_BLOCK), executor or all_cores()):
            tick(done)


def _truth(finds: Finds, photos: pl.DataFrame) -> pl.DataFrame:
    """Returns what is behind every photo; ids are null in subsets that the photo is not in."""
    columns = photos.select("filename", "observationID", "split", "dna", "microscopic", "scientificName")
    ids = []
    for subset, column in ((FULL, "category_id"), (MINI, "mini_category_id"), (FEW_SHOT, "few_shot_category_id")):
        numbers = pl.col("scientificName").replace_strict(
            class_ids(photos, subset), default=None, return_dtype=pl.Int64
        )
        inside = pl.col("few_shot") if subset == FEW_SHOT else ~pl.col("few_shot") & (pl.col("mini") | (subset == FULL))
        ids.append(pl.when(inside).then(numbers.fill_null(UNKNOWN)).otherwise(None).alias(column))
    return pl.concat([columns, photos.select(ids), trait_table(finds.seen, photos)], how="horizontal")


def best_possible(nature: Nature, finds: Finds) -> dict[str, float]:
    """Returns what the exact posterior, which knows the traits and the abundances of the test year, gets right."""
    closed = finds.seen.take(finds.of("test", finds.known))
    prior_of_known = prior_over(nature, [TEST_YEAR], finds.known)
    reached, expected = best_top_1(nature, closed, prior_of_known)
    both = finds.seen.take(finds.of("test", ~finds.few_shot))
    share = len(closed) / len(both)
    prior = share * prior_of_known + (1 - share) * prior_over(nature, [TEST_YEAR], finds.unknown)
    open_reached, open_expected = best_top_1(nature, both, prior, unknown=finds.unknown)
    return {
        "test_top_1": reached,
        "expected_top_1": expected,
        "open_test_top_1": open_reached,
        "open_expected_top_1": open_expected,
    }
