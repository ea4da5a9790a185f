"""Small worlds in the layouts of Semi-iNat 2021 and Semi-Aves 2020.

```
ROOT/ (semi-inat-2021)
  l_train/<class id>/<n>.jpg, val/<class id>/<n>.jpg, u_train/<hash>.jpg, test/<hash>.jpg
  annotation_v2.json                 the species, and kingdom and phylum of every unlabeled photo
  labels/all_taxa_info.json, label2taxaid.json, l_train.txt, val.txt, test.txt, u_train_in.txt, u_train_out.txt
ROOT/ (semi-aves-2020)
  anno_{l_train,val,test,u_train_in,u_train_out}.json, solution.csv, semi_aves_class_names.txt
  trainval_images/<class id>/<n>.jpg, u_train_in/<n>.jpg, u_train_out/<n>.jpg, test/<n>.jpg
  u_train_in_oracle.txt, u_train_out_oracle.txt
both:
  traits.parquet    file, label, every trait: the truth behind the pixels, never read by a dataset
  WORLD.json        what this is, how it was made, and how much there is
```

The parts are drawn by the recipe of the document (`splits.semi_supervised`), with fewer photos of each species in small
worlds. Photos of a species have a long tail, and every photo has a contributor of its own. The species of Semi-Aves are
called birds and painted as snakes: no painter knows birds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fieldmark.releases.semi.aves import NAME as AVES
from fieldmark.releases.semi.aves import RANKS_OF_BIRDS
from fieldmark.releases.semi.check import PHYLA
from fieldmark.releases.semi.inat import NAME as INAT
from fieldmark.splits.semi_supervised import SemiSupervised, draw_semi_supervised
from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.tables.schema import RANKS
from fieldmark.work.blocks import Executor
from fieldmark_worlds.layouts.release_files import Size, extent_of, finding_rng, world_mark
from fieldmark_worlds.nature.kingdom import Codes, Specimen
from fieldmark_worlds.semi.kingdoms import LivingThings, OrganismPhoto, grow_phyla, paint_organisms

# Counts up whenever the same size and seed would give other files than before.
GENERATOR_VERSION = 1
PHOTO_SIZE_PX = 160


@dataclass(frozen=True)
class SemiExtent:
    """How much of a world is written.

    Attributes:
        species: How many species of each phylum there are at least: a share of table 1, rounded up to this.
        share: The share of table 1 that is grown.
        most_photos: How many photos the most common species has.
        recipe: How the parts are drawn.
        birds: How many species the world of birds has.
    """

    species: int
    share: float
    most_photos: int
    recipe: SemiSupervised
    birds: int


EXTENTS: dict[Size, SemiExtent] = {
    "tiny": SemiExtent(
        2, 0.007, 20, SemiSupervised(val=2, public=2, private=2, least_labeled=3, most_out_of_class=6), birds=12
    ),
    "small": SemiExtent(
        3, 0.03, 60, SemiSupervised(val=5, public=5, private=5, least_labeled=5, most_out_of_class=40), birds=60
    ),
    "medium": SemiExtent(6, 0.12, 120, SemiSupervised(most_out_of_class=100), birds=240),
}


@dataclass(frozen=True)
class SemiWorld:
    """What there is to write.

    Attributes:
        living: The species.
        photos: `species`, `label` (its number as a class, in-class ones first), `inside`, `part`, `usage`, one row per
            photo that is used, in random order.
        specimens: What they show.
        in_class: The species that are asked about, in the order of their numbers.
    """

    living: LivingThings
    photos: pl.DataFrame
    specimens: list[Specimen]
    in_class: Codes


def write_inat(
    out: Path, *, size: Size = "tiny", seed: int = 0, overwrite: bool = False, executor: Executor | None = None
) -> dict[str, object]:
    """Writes a world of Semi-iNat 2021: three kingdoms, eight phyla in the proportions of table 1.

    Args:
        out: The root to be; it appears when complete.
        size: How much: about 300, 3,000 or 25,000 photos.
        seed: Another seed is another nature.
        overwrite: Whether an existing folder is replaced.
        executor: Who paints; all cores unless given.

    Returns:
        The content of `WORLD.json`.
    """
    extent = extent_of(EXTENTS, size)
    counts = {
        name: (kingdom, max(extent.species, round(extent.share * (inside + outside))))
        for name, (kingdom, inside, outside) in PHYLA.items()
    }
    return _write(INAT, out, counts, _inat_files, _write_inat_tables, size, seed, overwrite, executor)


def write_aves(
    out: Path, *, size: Size = "tiny", seed: int = 0, overwrite: bool = False, executor: Executor | None = None
) -> dict[str, object]:
    """Writes a world of Semi-Aves 2020; the arguments are those of `write_inat`."""
    counts = {RANKS_OF_BIRDS["phylum"]: (RANKS_OF_BIRDS["kingdom"], extent_of(EXTENTS, size).birds)}
    return _write(AVES, out, counts, _aves_files, _write_aves_tables, size, seed, overwrite, executor)


def _write(
    name: str,
    out: Path,
    counts: Mapping[str, tuple[str, int]],
    files: Callable[[SemiWorld, np.random.Generator], list[str]],
    tables: Callable[[Path, SemiWorld], None],
    size: Size,
    seed: int,
    overwrite: bool,
    executor: Executor | None,
) -> dict[str, object]:
    world = make_world(counts, extent_of(EXTENTS, size), seed)
    world = SemiWorld(
        world.living,
        world.photos.with_columns(file=pl.Series(files(world, finding_rng(seed, of=1)), dtype=pl.String)),
        world.specimens,
        world.in_class,
    )
    kingdom = world.living.taxa["kingdom"]
    with appearing_folder(Path(out), overwrite=overwrite) as root:
        jobs = [
            OrganismPhoto(file, kingdom[species], specimen, seed, number)
            for number, (file, species, specimen) in enumerate(
                zip(world.photos["file"], world.photos["species"], world.specimens, strict=True)
            )
        ]
        paint_organisms(root, jobs, PHOTO_SIZE_PX, executor)
        tables(root, world)
        truth = world.photos.select("file", "label", "part")
        pl.concat([truth, pl.DataFrame(world.specimens, infer_schema_length=None)], how="horizontal").write_parquet(
            root / "traits.parquet"
        )
        mark = world_mark(name, size=size, seed=seed, generator_version=GENERATOR_VERSION, about=_about(world))
        write_json(root / "WORLD.json", mark)
    return mark


def make_world(counts: Mapping[str, tuple[str, int]], extent: SemiExtent, seed: int) -> SemiWorld:
    """Grows the species, takes photos with a long tail, and draws the parts by the recipe."""
    living, rng = grow_phyla(counts, seed), finding_rng(seed)
    least, ranks = extent.recipe.least + 2, rng.permutation(len(living)) + 1.0
    photos_of = least + np.round((extent.most_photos - least) * (ranks / ranks.min()) ** -0.7).astype(np.int64)
    species = np.repeat(np.arange(len(living)), photos_of)
    phyla = living.taxa["phylum"]
    rows = pl.DataFrame(
        {
            "id": [str(number) for number in range(len(species))],
            "label": [str(one) for one in species],
            "group": [phyla[int(one)] for one in species],
            "contributor": [str(number) for number in range(len(species))],
        }
    )
    draw = draw_semi_supervised(rows, extent.recipe, seed=seed)
    inside = sorted(int(one) for one in draw.species.filter(pl.col("membership") == "in-class")["label"])
    outside = sorted(set(range(len(living))) - set(inside))
    numbers = np.concatenate([rng.permutation(np.array(inside)), rng.permutation(np.array(outside))]).astype(np.int64)
    class_of = np.empty(len(living), dtype=np.int64)
    class_of[numbers] = np.arange(len(numbers))
    table = draw.table.with_columns(
        pl.Series("species", species),
        pl.Series("label", class_of[species]),
        pl.Series("inside", np.isin(species, inside)),
    ).filter(pl.col("part") != "unused")
    table = table[rng.permutation(len(table)).tolist()]
    return SemiWorld(living, table, living.draw(table["species"].to_numpy(), rng), numbers[: len(inside)])


def _about(world: SemiWorld) -> dict[str, object]:
    photos = world.photos
    counts = {
        part: {"photos": own.height, "classes": own["species"].n_unique()}
        for (part,), own in photos.group_by("part", maintain_order=True)
    }
    unlabeled = photos.filter(pl.col("part") == "unlabeled")
    places = np.flatnonzero((photos["part"] == "test").to_numpy())
    best = world.living.best_top_1(
        photos["species"].to_numpy()[places], [world.specimens[int(place)] for place in places], world.in_class
    )
    return {
        "counts": dict(sorted((str(part), count) for part, count in counts.items())),
        "unlabeled_in_class": unlabeled.filter("inside").height,
        "best_possible": {"test_top_1": round(best, 4)},
    }


def _numbered(rows: pl.DataFrame, by: str) -> list[int]:
    """The number of each photo among those with the same value, from 0."""
    return rows.select(pl.int_range(pl.len()).over(by)).to_series().to_list()


def _inat_files(world: SemiWorld, rng: np.random.Generator) -> list[str]:
    rows = world.photos.with_columns(by=pl.format("{}/{}", "part", "label"))
    folder_of = {"train": "l_train", "val": "val"}
    return [
        f"{folder_of[part]}/{label}/{number}.jpg"
        if part in folder_of
        else f"{'test' if part == 'test' else 'u_train'}/{rng.bytes(16).hex()}.jpg"
        for part, label, number in zip(rows["part"], rows["label"], _numbered(rows, "by"), strict=True)
    ]


def _write_inat_tables(root: Path, world: SemiWorld) -> None:
    ranks = _ranks_of_classes(world)
    photos, inside = world.photos, len(world.in_class)
    unlabeled = photos.filter(pl.col("part") == "unlabeled").sort("file")
    info = {"year": 2021, "version": "v2", "description": "Invented organisms. Simulated."}
    coarse = [
        {
            "image_name": file.removeprefix("u_train/"),
            "kingdom": ranks[label]["kingdom"],
            "phylum": ranks[label]["phylum"],
        }
        for file, label in unlabeled.select("file", "label").iter_rows()
    ]
    annotations = [{"class_id": number, **ranks[number]} for number in range(inside)]
    write_json(root / "annotation_v2.json", {"info": info, "annotations": annotations, "unlabeled_taxa": coarse})
    labels = root / "labels"
    labels.mkdir()
    write_json(labels / "all_taxa_info.json", {str(number): own for number, own in ranks.items()})
    numbers = {
        rank: {name: i for i, name in enumerate(sorted({ranks[n][rank] for n in range(inside)}))} for rank in RANKS
    }
    write_json(
        labels / "label2taxaid.json",
        {str(n): {rank: numbers[rank][ranks[n][rank]] for rank in RANKS} for n in range(inside)},
    )
    for name, chosen in {
        "l_train": pl.col("part") == "train",
        "val": pl.col("part") == "val",
        "test": pl.col("part") == "test",
        "u_train_in": (pl.col("part") == "unlabeled") & pl.col("inside"),
        "u_train_out": (pl.col("part") == "unlabeled") & ~pl.col("inside"),
    }.items():
        _write_list(labels / f"{name}.txt", photos.filter(chosen))
    test = photos.filter(pl.col("part") == "test").sort("file")
    names = test["file"].str.strip_prefix("test/")
    test.select(names.alias("Id"), pl.col("label").alias("Category"), pl.col("usage").alias("Usage")).write_csv(
        labels / "solution.csv"
    )


def _ranks_of_classes(world: SemiWorld) -> dict[int, dict[str, str]]:
    """The ranks of every species by its number as a class."""
    species_of = dict(world.photos.select("label", "species").iter_rows())
    rows = world.living.taxa.to_dicts()
    return {number: {rank: rows[species_of[number]][rank] for rank in RANKS} for number in sorted(species_of)}


def _write_list(path: Path, photos: pl.DataFrame) -> None:
    lines = [f"{file} {label}\n" for file, label in photos.sort("file").select("file", "label").iter_rows()]
    path.write_text("".join(lines), encoding="utf-8")


def _aves_files(world: SemiWorld, rng: np.random.Generator) -> list[str]:
    part = pl.col("part")
    folder = (
        pl.when(part == "test").then(pl.lit("test"))
        .when((part == "unlabeled") & pl.col("inside")).then(pl.lit("u_train_in"))
        .when(part == "unlabeled").then(pl.lit("u_train_out"))
        .otherwise(pl.format("trainval_images/{}", "label"))
    )  # fmt: skip
    rows = world.photos.with_columns(folder=folder)
    return [f"{one}/{n}.jpg" for one, n in zip(rows["folder"], _numbered(rows, "folder"), strict=True)]


def _write_aves_tables(root: Path, world: SemiWorld) -> None:
    photos, part = world.photos, pl.col("part")
    info = {"year": 2020, "version": "2.0", "description": ["Invented birds. Simulated."]}
    chosen: dict[str, Any] = {
        "l_train": part == "train",
        "val": part == "val",
        "test": part == "test",
        "u_train_in": (part == "unlabeled") & pl.col("inside"),
        "u_train_out": (part == "unlabeled") & ~pl.col("inside"),
    }
    for name, which in chosen.items():
        own = photos.filter(which)
        if name.startswith("u_train"):
            _write_list(root / f"{name}_oracle.txt", own)
        side = PHOTO_SIZE_PX
        images = [{"file_name": f, "width": side, "height": side, "id": i} for i, f in enumerate(own["file"])]
        labels = own["label"].to_list() if name in ("l_train", "val") else [-1] * len(own)
        told = [] if name == "test" else [{"image_id": i, "id": i, "category_id": c} for i, c in enumerate(labels)]
        write_json(root / f"anno_{name}.json", {"info": info, "annotations": told, "images": images})
        if name == "test":
            solution = pl.DataFrame({"Id": range(len(own)), "Category": own["label"], "Usage": own["usage"]})
            solution.write_csv(root / "solution.csv")
    ranks = _ranks_of_classes(world)
    names = [f"{number} {ranks[number]['species'].replace(' ', '_')}\n" for number in range(len(world.in_class))]
    (root / "semi_aves_class_names.txt").write_text("".join(names), encoding="utf-8")
