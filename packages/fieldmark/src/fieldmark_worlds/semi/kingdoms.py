"""Species of several phyla, grown phylum by phylum, and photos of them.

Fungi and plants are painted by the painters of their kingdoms. Animals of every phylum are long and legless: the only
painter of animals knows snakes. Each phylum has a tree of its own, so that its species look more like each other than
like those of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from fieldmark.work.blocks import Executor, all_cores, blocks_of, map_blocks
from fieldmark.work.progress import progress
from fieldmark_worlds.fungi.fungi_kingdom import FUNGI
from fieldmark_worlds.fungi.painter import paint
from fieldmark_worlds.nature.kingdom import Codes, Floats, Kingdom, Specimen, Traits
from fieldmark_worlds.nature.posterior import log_likelihood
from fieldmark_worlds.nature.taxa import GrownTaxonomy, grow_tree
from fieldmark_worlds.plants.plant_pictures import paint_plant
from fieldmark_worlds.plants.plants_kingdom import PLANTS
from fieldmark_worlds.snakes.snake_painter import paint_snake
from fieldmark_worlds.snakes.snakes_kingdom import SNAKES

KINGDOMS: Mapping[str, Kingdom] = {"Animalia": SNAKES, "Plantae": PLANTS, "Fungi": FUNGI}
SPECIES_PER_GENUS = 3
JPEG_QUALITY = 90
PHOTOS_PER_BLOCK = 16
# Trees are grown anew until no genus bears the name of another.
ATTEMPTS = 50


@dataclass(frozen=True)
class Phylum:
    """A phylum and its species."""

    name: str
    kingdom: str
    tree: GrownTaxonomy


@dataclass(frozen=True)
class LivingThings:
    """Species of several phyla; rows 0 to S - 1, one phylum after the other.

    Attributes:
        phyla: The phyla.
        taxa: `label` and ranks, one row per species.
        phylum_of: (S,) number of the phylum.
        row_in_phylum: (S,) row of the species in the tree of its phylum.
    """

    phyla: tuple[Phylum, ...]
    taxa: pl.DataFrame
    phylum_of: Codes
    row_in_phylum: Codes

    def __len__(self) -> int:
        return self.taxa.height

    def draw(self, species: Codes, rng: np.random.Generator) -> list[Specimen]:
        """One individual of each of the species given."""
        specimens: list[Specimen] = [{}] * len(species)
        for number in range(len(self.phyla)):
            places = np.flatnonzero(self.phylum_of[species] == number)
            traits = self._traits(number, self.row_in_phylum[species[places]], rng)
            for row, place in enumerate(places):
                specimens[int(place)] = traits.specimen(row)
        return specimens

    def _traits(self, number: int, rows: Codes, rng: np.random.Generator) -> Traits:
        tree, kingdom = self.phyla[number].tree, KINGDOMS[self.phyla[number].kingdom]
        latents = tree.means[rows] + tree.sds[rows] * rng.standard_normal((len(rows), tree.means.shape[1]))
        options = [_drawn(block[rows], rng) for block in tree.option_probabilities]
        return Traits(kingdom, latents, np.column_stack(options))

    def best_top_1(self, species: Codes, specimens: Sequence[Specimen], inside: Codes) -> float:
        """The share of individuals whose species the exact posterior given the traits gets right.

        Args:
            species: What they are.
            specimens: Their traits.
            inside: The species that are asked about, all equally common; kingdoms are never taken for each other.
        """
        right = 0
        for kingdom_name, kingdom in KINGDOMS.items():
            numbers = [n for n, phylum in enumerate(self.phyla) if phylum.kingdom == kingdom_name]
            places = np.flatnonzero(np.isin(self.phylum_of[species], numbers))
            if not len(places):
                continue
            traits = _traits_of(kingdom, [specimens[int(place)] for place in places])
            logs = np.full((len(places), len(self)), -np.inf)
            for number in numbers:
                own = np.flatnonzero(self.phylum_of == number)
                logs[:, own] = log_likelihood(self.phyla[number].tree, traits)
            logs[:, np.setdiff1d(np.arange(len(self)), inside)] = -np.inf
            right += int((logs.argmax(axis=1) == species[places]).sum())
        return right / len(species)


def grow_phyla(species: Mapping[str, tuple[str, int]], seed: int) -> LivingThings:
    """Grows so many species of each phylum (by its name: the kingdom and the number)."""
    phyla, tables, seen = [], [], set[str]()
    for place, (name, (kingdom, number)) in enumerate(species.items()):
        for attempt in range(ATTEMPTS):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2021, place, attempt)))
            genera = max(1, round(number / SPECIES_PER_GENUS))
            tree = grow_tree(rng, KINGDOMS[kingdom], species=number, genera=genera)
            if not seen & set(tree.taxa["genus"]):
                break
        seen |= set(tree.taxa["genus"])
        phyla.append(Phylum(name, kingdom, tree))
        tables.append(tree.taxa.with_columns(kingdom=pl.lit(kingdom), phylum=pl.lit(name)))
    counts = [number for _, number in species.values()]
    return LivingThings(
        tuple(phyla),
        pl.concat(tables),
        np.repeat(np.arange(len(counts)), counts).astype(np.int64),
        np.concatenate([np.arange(number) for number in counts]).astype(np.int64),
    )


def _drawn(shares: Floats, rng: np.random.Generator) -> Codes:
    cumulative = np.cumsum(shares, axis=1)
    drawn = rng.random(len(shares))[:, None] * cumulative[:, -1:]
    columns: Codes = np.minimum((cumulative <= drawn).sum(axis=1), shares.shape[1] - 1)
    return columns


def _traits_of(kingdom: Kingdom, specimens: Sequence[Specimen]) -> Traits:
    latents = np.array([[float(one[trait.name]) for trait in kingdom.continuous] for one in specimens])
    options = [[trait.options.index(str(one[trait.name])) for trait in kingdom.categorical] for one in specimens]
    return Traits(kingdom, latents, np.array(options, dtype=np.int64))


@dataclass(frozen=True)
class OrganismPhoto:
    """One photo to paint. It does not know its species; the name of its file is not looked at.

    Attributes:
        file: Where it goes, relative to the root of the release.
        kingdom: Who paints it.
        specimen: Traits by name.
        seed: Seed of the world.
        number: Number of the photo.
    """

    file: str
    kingdom: str
    specimen: Specimen
    seed: int
    number: int


def paint_organisms(root: Path, jobs: Sequence[OrganismPhoto], size_px: int, executor: Executor | None = None) -> None:
    """Paints photos into files below `root`, on all cores unless an executor is given."""
    for folder in sorted({(root / job.file).parent for job in jobs}):
        folder.mkdir(parents=True, exist_ok=True)
    with progress("painting photos", len(jobs)) as tick:
        block = partial(_paint_block, root, size_px)
        for done in map_blocks(block, blocks_of(jobs, PHOTOS_PER_BLOCK), executor or all_cores()):
            tick(done)


def _paint_block(root: Path, size_px: int, jobs: Sequence[OrganismPhoto]) -> int:
    for job in jobs:
        rng = np.random.default_rng(np.random.SeedSequence([job.seed, 2021, job.number]))
        if job.kingdom == "Fungi":
            photo = paint(job.specimen, rng, size_px)
        elif job.kingdom == "Plantae":
            photo = paint_plant(job.specimen, rng, "photo").resize((size_px, size_px))
        else:
            photo = paint_snake(job.specimen, rng, size_px)[0]
        photo.save(root / job.file, quality=JPEG_QUALITY)
    return len(jobs)
