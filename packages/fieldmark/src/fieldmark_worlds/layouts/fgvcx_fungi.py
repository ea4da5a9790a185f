"""A small world in the layout of FGVCx Fungi 2018.

```
ROOT/
  train.json, val.json     COCO's lists; images with size, license and rights holder
  test.json                images with nothing but file_name, license and id
  images/<taxon id>_<Genus>_<epithet>/<file>.JPG     photos of train and val
  test/<uuid>.JPG                                    photos of test
  solution.csv             id,expected,usage: what only the organizers have of the real release
  traits.parquet           file, label, every trait: the truth behind the pixels, never read by a dataset
  WORLD.json               what this is, how it was made, and how much there is
```

Val has 3 and test has 7 photos of every species, as the counts of the real release suggest, while train has a long
tail. As there, two categories bear one name, one name and its folder end in a space, another has dots, and ids of
images are sparse. Unlike there, maybe, every photo is of another specimen: the release does not say which photos
belong together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

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
    trait_table,
    world_mark,
)
from fieldmark_worlds.nature.kingdom import Codes
from fieldmark_worlds.nature.nature import Nature, NatureSettings, grow_nature
from fieldmark_worlds.nature.observations import Sightings, observe

# Counts up whenever the same size and seed would give other files than before.
GENERATOR_VERSION = 1
PHOTO_SIZE_PX = 192

VAL_PHOTOS, TEST_PHOTOS, LEAST_TRAIN_PHOTOS = 3, 7, 3
PUBLIC_SHARE = 0.3
LICENSE = {"id": 1, "name": "CC BY-NC 4.0", "url": "https://creativecommons.org/licenses/by-nc/4.0/"}
FIRST_IMAGE_ID, LAST_IMAGE_ID = 8_192, 146_022
TAXON_IDS = (10_000, 70_000)
SUPERCATEGORY = "Fungi"


@dataclass(frozen=True)
class FgvcxExtent:
    """How much of a world is written.

    Attributes:
        nature: How rich the nature is.
        finds: How many observations are made, most of which are not needed.
        train_photos: At most so many photos in train.
    """

    nature: NatureSettings
    finds: int
    train_photos: int


EXTENTS: dict[Size, FgvcxExtent] = {
    "tiny": FgvcxExtent(
        NatureSettings(species=16, genera=5, kingdom=FUNGI, zipf=0.4, year_walk=0.1, newcomers=0.0, observers=25),
        finds=1_200,
        train_photos=130,
    ),
    "small": FgvcxExtent(
        NatureSettings(species=120, genera=28, kingdom=FUNGI, newcomers=0.0, observers=80),
        finds=12_000,
        train_photos=1_900,
    ),
    "medium": FgvcxExtent(
        NatureSettings(species=500, genera=110, kingdom=FUNGI, newcomers=0.0, observers=300),
        finds=60_000,
        train_photos=15_000,
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
    extent = extent_of(EXTENTS, size)
    nature = grow_nature(extent.nature, seed)
    rng = finding_rng(seed)
    seen, parts = find(nature, extent, rng)
    categories = name_categories(nature, np.unique(seen.species), rng)
    photos = photo_table(seen, parts, categories, rng)
    with appearing_folder(Path(out), overwrite=overwrite) as root:
        paint_photos(root, photo_jobs(nature, seen, photos, seed), PHOTO_SIZE_PX, executor)
        _write_annotations(root, photos, categories)
        _write_solution(root, photos, rng)
        truth = pl.concat([photos.select("file", "category", "label"), trait_table(seen, photos)], how="horizontal")
        truth.write_parquet(root / "traits.parquet")
        about = {
            "counts": {part: _counts(photos.filter(pl.col("part") == part)) for part in ("train", "val", "test")},
            "best_possible": _best_possible(nature, seen.take(np.flatnonzero(parts == "test"))),
        }
        mark = world_mark("fgvcx-fungi-2018", size=size, seed=seed, generator_version=GENERATOR_VERSION, about=about)
        write_json(root / "WORLD.json", mark)
    return mark


def find(nature: Nature, extent: FgvcxExtent, rng: np.random.Generator) -> tuple[Sightings, Codes]:
    """Observations of one photo each, and the part that each goes to.

    The first finds are train; of the later ones, the first of each species are val and test. A species of which there
    are too few is left out altogether.
    """
    seen = observe(nature, nature.settings.years, extent.finds, rng)
    row = pl.int_range(pl.len())
    number = seen.table.select(number=row.over("species", row >= extent.train_photos))["number"].to_numpy()
    in_train = np.arange(len(seen)) < extent.train_photos
    parts = np.select(
        [in_train, number < VAL_PHOTOS, number < VAL_PHOTOS + TEST_PHOTOS], ["train", "val", "test"], "none"
    )
    taught = np.bincount(seen.species[parts == "train"], minlength=len(nature)) >= LEAST_TRAIN_PHOTOS
    tested = np.bincount(seen.species[parts == "test"], minlength=len(nature)) == TEST_PHOTOS
    kept = np.flatnonzero((taught & tested)[seen.species] & (parts != "none"))
    return seen.take(kept), parts[kept]


def name_categories(nature: Nature, species: Codes, rng: np.random.Generator) -> pl.DataFrame:
    """`species`, `category`, `taxon` and `name` of every species that is there, in the order of the categories."""
    names = nature.taxa["label"].gather(species).to_list()
    genus = nature.genus_of[species]
    siblings = np.flatnonzero(genus[1:] == genus[:-1]) + 1
    _spoil(names, siblings)
    taxa = np.sort(rng.choice(np.arange(*TAXON_IDS), size=len(species), replace=False))
    order = rng.permutation(len(species))
    return pl.DataFrame(
        {
            "species": species[order],
            "category": np.arange(len(species)),
            "taxon": taxa,
            "name": [names[place] for place in order],
        }
    )


def _spoil(names: list[str], siblings: Codes) -> None:
    """Gives one species the name of its sibling, one a form whose name ends in a space, and one a variety."""
    double = int(siblings[0])
    names[double] = names[double - 1]
    plain = [place for place in range(len(names)) if place not in (double, double - 1)]
    for place, rank, end in zip(plain, ("f.", "var."), (" ", ""), strict=False):
        names[place] = f"{names[place]} {rank} {names[place].split()[1]}{end}"


def photo_table(seen: Sightings, parts: Codes, categories: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """One row per photo: what `photo_jobs` needs, `part`, `category`, `image_id` and `rights_holder`."""
    one_each = seen.table.with_columns(pl.lit(1).alias("photos"), pl.Series("part", parts))
    photos = one_row_per_photo(one_each).join(categories, on="species", how="left", maintain_order="left")
    ids = rng.choice(np.arange(FIRST_IMAGE_ID, LAST_IMAGE_ID + 1), size=len(photos), replace=False)
    uuids = [str(UUID(bytes=rng.bytes(16), version=4)) for _ in range(len(photos))]
    folder = pl.format("images/{}_{}", "taxon", pl.col("name").str.replace(" ", "_"))
    number = pl.col("observation_id").cast(pl.String).str.zfill(6)
    initials = pl.Series("initials", [_initials(name) for name in photos["observer"]])
    labeled = pl.format("{}/{}{}-{}.JPG", folder, initials, "year", number)
    file = pl.when(pl.col("part") == "test").then(pl.format("test/{}.JPG", pl.Series("uuid", uuids))).otherwise(labeled)
    return photos.with_columns(
        file.alias("file"), pl.Series("image_id", ids), pl.col("observer").alias("rights_holder")
    )


def _initials(name: str) -> str:
    return "".join(word[0] for word in re.findall(r"\w+", name)).upper()


def _write_annotations(root: Path, photos: pl.DataFrame, categories: pl.DataFrame) -> None:
    info = {"year": 2018, "version": "0", "description": "Invented fungi in the layout of FGVCx Fungi 2018. Simulated."}
    listed = [
        {"id": number, "name": name, "supercategory": SUPERCATEGORY}
        for number, name in categories.select("category", "name").iter_rows()
    ]
    for part in ("train", "val", "test"):
        # In the order of their ids, as good as any: the order of the finds is nobody's business.
        rows = photos.filter(pl.col("part") == part).sort("image_id").to_dicts()
        data: dict[str, Any] = {"info": info, "images": [_image(row) for row in rows], "licenses": [LICENSE]}
        if part != "test":
            data["categories"] = listed
            data["annotations"] = [
                {"id": number, "image_id": row["image_id"], "category_id": row["category"]}
                for number, row in enumerate(rows, 1)
            ]
        write_json(root / f"{part}.json", data)


def _image(row: Mapping[str, Any]) -> dict[str, Any]:
    bare = {"file_name": row["file"], "license": LICENSE["id"], "id": row["image_id"]}
    if row["part"] == "test":
        return bare
    return {**bare, "width": PHOTO_SIZE_PX, "height": PHOTO_SIZE_PX, "rights_holder": row["rights_holder"]}


def _write_solution(root: Path, photos: pl.DataFrame, rng: np.random.Generator) -> None:
    test = photos.filter(pl.col("part") == "test").sort("image_id")
    usage = np.where(rng.random(len(test)) < PUBLIC_SHARE, "Public", "Private")
    rows = test.select(pl.col("image_id").alias("id"), pl.col("category").alias("expected"))
    rows.with_columns(pl.Series("usage", usage)).write_csv(root / "solution.csv")


def _counts(photos: pl.DataFrame) -> dict[str, int]:
    return {"photos": photos.height, "classes": photos["category"].n_unique()}


def _best_possible(nature: Nature, test: Sightings) -> dict[str, float]:
    """What the exact posterior given the traits gets right on test, where all species are equally common."""
    one_each = Sightings(test.table.with_columns(pl.lit(1).alias("photos")), test.observer_codes, test.traits)
    prior = np.isin(np.arange(len(nature)), test.species).astype(np.float64)
    reached, expected = best_top_1(nature, one_each, prior / prior.sum())
    return {"test_top_1": reached, "expected_top_1": expected}
