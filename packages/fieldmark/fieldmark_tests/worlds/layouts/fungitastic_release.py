"""The release of FungiTastic as it was published, typed by hand, and a world of it as the tests read it."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from fieldmark_tests.fixtures import FUNGI_SEED
from fieldmark_worlds.layouts import fungitastic
from fieldmark_worlds.layouts.fungitastic_finds import EXTENTS, Finds, find
from fieldmark_worlds.layouts.fungitastic_photos import ReleasePhoto
from fieldmark_worlds.nature.nature import Nature, grow_nature

SEED = FUNGI_SEED


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


COLUMNS = words("""
    eventDate year month day habitat countryCode scientificName kingdom phylum class order family genus specificEpithet
    hasCoordinate species iucnRedListCategory substrate latitude longitude coorUncert observationID region district
    filename category_id metaSubstrate poisonous elevation landcover biogeographicalRegion
""")
UNLABELED_COLUMNS = words("""
    eventDate year month day habitat countryCode hasCoordinate substrate latitude longitude coorUncert observationID
    region district filename metaSubstrate elevation landcover biogeographicalRegion
""")
ALWAYS = {
    "FungiTastic": ("Train", "ClosedSet-Val", "ClosedSet-Test", "OpenSet-Val", "OpenSet-Test", "DNA-Test"),
    "FungiTastic-FewShot": ("Train", "Val", "Test"),
}
MINI = {
    "2024": ("Train", "ClosedSet-Val", "ClosedSet-Test", "OpenSet-Val", "OpenSet-Test", "DNA-Test"),
    "2025": ("Train", "Val", "Test", "DNA-Test"),
}
FOLDERS = {"Train": "train", "Val": "val", "Test": "test", "DNA-Test": "dna-test"}

Row = dict[str, str]


@dataclass(frozen=True)
class World:
    root: Path
    release: str
    mark: dict[str, object]

    @cached_property
    def tables(self) -> dict[str, list[Row]]:
        """Every metadata file by its stem, cells as they are written."""
        tables = {}
        for path in sorted(self.root.glob("metadata/*/*.csv")):
            with path.open(encoding="utf-8", newline="") as file:
                tables[path.stem] = list(csv.DictReader(file))
        return tables

    @cached_property
    def traits(self) -> pl.DataFrame:
        return pl.read_parquet(self.root / "traits.parquet")


@dataclass(frozen=True)
class Source:
    nature: Nature
    finds: Finds
    photos: pl.DataFrame

    def published(self, release: fungitastic.ReleaseName) -> list[ReleasePhoto]:
        return fungitastic.release_photos(self.nature, self.finds, self.photos, SEED, release)


def source_of(seed: int) -> Source:
    nature = grow_nature(EXTENTS["tiny"].nature, seed)
    finds = find(nature, EXTENTS["tiny"], seed)
    return Source(nature, finds, fungitastic.describe(nature, finds, seed))


def column(rows: Iterable[Row], name: str) -> set[str]:
    return {row[name] for row in rows}


def folder_of(stem: str) -> str:
    return next(folder for part, folder in reversed(FOLDERS.items()) if stem.endswith(part))


def subset_of(stem: str) -> str:
    return next((name for name in ("FungiTastic-Mini", "FungiTastic-FewShot") if stem.startswith(name)), "FungiTastic")


def _decode(rle: list[int], height: int, width: int) -> np.ndarray:
    *runs, left, top, box_width, box_height = rle
    flat = np.concatenate([np.full(run, i % 2 == 1) for i, run in enumerate(runs)])
    mask = flat.reshape(height, width)
    rows, columns = np.nonzero(mask)
    assert (left, top) == (columns.min(), rows.min())
    assert (left + box_width - 1, top + box_height - 1) == (columns.max(), rows.max())
    return mask


def masks_of(world: World, name: str) -> dict[str, list[tuple[str, np.ndarray]]]:
    table = pl.read_parquet(world.root / f"masks/FungiTastic-Mini-{name}Masks.parquet")
    assert table.columns == ["file_name", "label", "width", "height", "rle"]
    photos: dict[str, list[tuple[str, np.ndarray]]] = {}
    for file, label, width, height, rle in table.iter_rows():
        photos.setdefault(file, []).append((label, _decode(rle, height, width)))
    return photos
