"""A nature of snakes: venom by genus, mimics, sexes and ages that differ, ranges by country.

Given the species, the looks of an individual are a mixture over sex and age, and independent of where it lives, so that
every likelihood has a closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark_worlds.nature.kingdom import Codes, Floats, Traits
from fieldmark_worlds.nature.latin_names import Namer
from fieldmark_worlds.nature.posterior import log_likelihood
from fieldmark_worlds.nature.taxa import GrownTaxonomy, grow_tree
from fieldmark_worlds.snakes.snakes_kingdom import AGE_TRAITS, SEX_TRAITS, SNAKES, WARNING_TRAITS

# Most photos come from few countries: shares fall off by this power of the rank.
EFFORT_POWER = 1.1
# How far the range of a species reaches, in units of the width of a continent.
REACH = (0.16, 0.6)
# So many genera are confined to one continent; the others have species on a second one.
ONE_CONTINENT = 0.75
# A snake that is kept as a pet is photographed anywhere.
PETS = 0.015


@dataclass(frozen=True)
class Atlas:
    """An invented map of continents and countries; the last country has no snakes at all.

    Names are invented, so that no simulated find is ever taken for a real one.

    Attributes:
        continents: Their names.
        countries: The names of all countries.
        continent_of: (C,) the continent of each country.
        effort: (C,) the share of photos that are taken in each country, whatever is there to see.
    """

    continents: tuple[str, ...]
    countries: tuple[str, ...]
    continent_of: Codes
    effort: Floats
    positions: Floats


def draw_atlas(rng: np.random.Generator, *, continents: int, countries: int) -> Atlas:
    """Draws a map with so many countries on each continent."""
    namer = Namer(rng)
    names = tuple(namer.place() for _ in range(continents))
    continent_of = np.repeat(np.arange(continents), countries)
    rank = rng.permutation(len(continent_of)) + 1.0
    effort = rank**-EFFORT_POWER
    return Atlas(
        continents=names,
        countries=tuple(namer.place() for _ in continent_of),
        continent_of=continent_of.astype(np.int64),
        effort=effort / effort.sum(),
        positions=rng.random((len(continent_of), 2)),
    )


def draw_ranges(rng: np.random.Generator, atlas: Atlas, genus_of: Codes) -> NDArray[np.bool_]:
    """(S, C): where each species lives. Every one lives somewhere; none lives in the last country."""
    genera = int(genus_of.max()) + 1
    home = rng.integers(len(atlas.continents), size=genera)
    second = np.where(rng.random(genera) < ONE_CONTINENT, home, rng.integers(len(atlas.continents), size=genera))
    lives = np.zeros((len(genus_of), len(atlas.countries)), dtype=np.bool_)
    for species, genus in enumerate(genus_of):
        continent = home[genus] if rng.random() < 0.6 else second[genus]
        lives[species] = _range_on(rng, atlas, int(continent))
    return lives


def move_range(
    rng: np.random.Generator, atlas: Atlas, model: NDArray[np.bool_], *, elsewhere: bool
) -> NDArray[np.bool_]:
    """The range of a mimic: with its model as a rule, else on another continent."""
    if not elsewhere:
        kept = model & (rng.random(len(model)) < 0.8)
        return kept if kept.any() else model.copy()
    home = int(atlas.continent_of[np.flatnonzero(model)[0]])
    others = [number for number in range(len(atlas.continents)) if number != home]
    return _range_on(rng, atlas, int(rng.choice(others)))


def country_shares(atlas: Atlas, lives: NDArray[np.bool_]) -> Floats:
    """(S, C): P(country | species) of photos: effort where the species lives, and pets anywhere."""
    wild = np.where(lives, atlas.effort, 0.0)
    shares: Floats = (1 - PETS) * wild / wild.sum(axis=1, keepdims=True) + PETS * atlas.effort
    return shares


def _range_on(rng: np.random.Generator, atlas: Atlas, continent: int) -> NDArray[np.bool_]:
    """Countries of a continent around a center, as far as the species reaches; never the last country of all."""
    here = np.flatnonzero(atlas.continent_of == continent)
    here = here[here != len(atlas.countries) - 1]
    center = int(rng.choice(here))
    away = np.hypot(*(atlas.positions[here] - atlas.positions[center]).T)
    lives = np.zeros(len(atlas.countries), dtype=np.bool_)
    lives[here[away <= rng.uniform(*REACH)]] = True
    return lives


VENOMOUS_GENERA = 0.35
# So many harmless species imitate a venomous one, half of them where it lives.
MIMICS, MIMICS_ELSEWHERE = 0.3, 0.5
MIMIC_STEP = 0.12
# Patterns are more settled within a species than the options of a mushroom; still, none is ruled out.
PATTERN_POWER, LEAST_PATTERN = 3.0, 0.004
# So many species have sexes, or young, that look different.
DIMORPHIC, CHANGING = 0.35, 0.4
SEX_STEP, AGE_STEP = 1.3, 1.1
JUVENILES = 0.3
# The young are slender, whatever the species.
SLENDER = -0.5


@dataclass(frozen=True)
class SnakeSettings:
    """How rich a nature of snakes is.

    Args:
        species, genera: How many there are.
        continents, countries: How many continents there are, and countries on each.
        zipf: Exponent of the long tail of abundance.
    """

    species: int
    genera: int
    continents: int
    countries: int
    zipf: float = 0.9


class Morph(NamedTuple):
    """A sex and an age."""

    sex: str
    age: str
    share: float


MORPHS = (
    Morph("female", "adult", 0.5 * (1 - JUVENILES)),
    Morph("male", "adult", 0.5 * (1 - JUVENILES)),
    Morph("female", "juvenile", 0.5 * JUVENILES),
    Morph("male", "juvenile", 0.5 * JUVENILES),
)


@dataclass(frozen=True)
class SnakeNature:
    """Species with looks and ranges. Species are rows 0 to S - 1 everywhere.

    Attributes:
        taxa: `label`, ranks, `venomous`, `model` (the species it imitates, null for none); one row per species.
        tree: The looks of adult females.
        sex_shift, age_shift: (S, continuous) what males and juveniles differ by.
        atlas: Continents and countries.
        lives: (S, C) where each species lives.
        abundance: (S,) share of each species among the photos.
    """

    taxa: pl.DataFrame
    tree: GrownTaxonomy
    sex_shift: Floats
    age_shift: Floats
    atlas: Atlas
    lives: NDArray[np.bool_]
    abundance: Floats

    def __len__(self) -> int:
        return self.taxa.height

    def looks_of(self, morph: Morph) -> GrownTaxonomy:
        """The looks of one sex and age."""
        shift = (morph.sex == "male") * self.sex_shift + (morph.age == "juvenile") * self.age_shift
        return replace(self.tree, means=self.tree.means + shift)

    def log_likelihood(self, traits: Traits) -> Floats:
        """(n, S): log P(traits | species), over all sexes and ages."""
        parts = [np.log(morph.share) + log_likelihood(self.looks_of(morph), traits) for morph in MORPHS]
        mixed: Floats = np.logaddexp.reduce(parts, axis=0)
        return mixed

    @property
    def country_shares(self) -> Floats:
        """(S, C): P(country | species) of a photo."""
        return country_shares(self.atlas, self.lives)


def grow_snakes(settings: SnakeSettings, seed: int) -> SnakeNature:
    """Grows a nature; equal settings and seeds give equal natures."""
    tree_rng, map_rng, venom_rng, mimic_rng, shift_rng, fate_rng = (
        np.random.default_rng(child) for child in np.random.SeedSequence(seed, spawn_key=(783,)).spawn(6)
    )
    tree = _settled(grow_tree(tree_rng, SNAKES, species=settings.species, genera=settings.genera))
    atlas = draw_atlas(map_rng, continents=settings.continents, countries=settings.countries)
    lives = draw_ranges(map_rng, atlas, tree.genus_of)
    venomous = _venom(venom_rng, tree.genus_of)
    model = _models(mimic_rng, venomous)
    tree = _imitating(mimic_rng, tree, model)
    for species in np.flatnonzero(model >= 0):
        elsewhere = mimic_rng.random() < MIMICS_ELSEWHERE
        lives[species] = move_range(mimic_rng, atlas, lives[model[species]], elsewhere=elsewhere)
    names = tree.taxa["label"].to_list()
    rank = fate_rng.permutation(settings.species) + 1.0
    abundance = rank**-settings.zipf
    return SnakeNature(
        taxa=tree.taxa.with_columns(
            pl.Series("venomous", venomous),
            pl.Series("model", [names[one] if one >= 0 else None for one in model], pl.String),
        ),
        tree=tree,
        sex_shift=_shifts(shift_rng, len(names), SEX_TRAITS, DIMORPHIC, SEX_STEP),
        age_shift=_shifts(shift_rng, len(names), AGE_TRAITS, CHANGING, AGE_STEP) + _slender(len(names)),
        atlas=atlas,
        lives=lives,
        abundance=abundance / abundance.sum(),
    )


def _settled(tree: GrownTaxonomy) -> GrownTaxonomy:
    """The tree with one pattern far more likely than others in each species."""
    sharp = [block**PATTERN_POWER for block in tree.option_probabilities]
    shares = [block / block.sum(axis=1, keepdims=True) for block in sharp]
    options = tuple(LEAST_PATTERN + (1 - LEAST_PATTERN * block.shape[1]) * block for block in shares)
    return replace(tree, option_probabilities=options)


def _venom(rng: np.random.Generator, genus_of: Codes) -> NDArray[np.bool_]:
    """Whole genera are venomous, at least one of them, and at least one is not."""
    genera = int(genus_of.max()) + 1
    dangerous = np.zeros(genera, dtype=np.bool_)
    number = min(max(round(VENOMOUS_GENERA * genera), 1), genera - 1)
    dangerous[rng.permutation(genera)[:number]] = True
    return np.asarray(dangerous[genus_of])


def _models(rng: np.random.Generator, venomous: NDArray[np.bool_]) -> Codes:
    """(S,): the venomous species that each species imitates, -1 for none; at least one does."""
    model = np.full(len(venomous), -1, dtype=np.int64)
    harmless, models = np.flatnonzero(~venomous), np.flatnonzero(venomous)
    number = max(round(MIMICS * len(harmless)), 1)
    model[rng.permutation(harmless)[:number]] = rng.choice(models, size=number)
    return model


def _imitating(rng: np.random.Generator, tree: GrownTaxonomy, model: Codes) -> GrownTaxonomy:
    """The tree with the warning traits of mimics taken from their models."""
    traits = [number for number, trait in enumerate(SNAKES.continuous) if trait.name in WARNING_TRAITS]
    means, mimics = tree.means.copy(), np.flatnonzero(model >= 0)
    options = tuple(block.copy() for block in tree.option_probabilities)
    for species in mimics:
        means[species, traits] = means[model[species], traits] + MIMIC_STEP * rng.standard_normal(len(traits))
        for block in options:
            block[species] = block[model[species]]
    return replace(tree, means=means, option_probabilities=options)


def _shifts(rng: np.random.Generator, species: int, traits: tuple[str, ...], share: float, step: float) -> Floats:
    shifts = np.zeros((species, len(SNAKES.continuous)))
    differ = rng.random(species) < share
    columns = [number for number, trait in enumerate(SNAKES.continuous) if trait.name in traits]
    shifts[:, columns] = differ[:, None] * step * rng.standard_normal((species, len(columns)))
    return shifts


def _slender(species: int) -> Floats:
    shift = np.zeros((species, len(SNAKES.continuous)))
    shift[:, [trait.name for trait in SNAKES.continuous].index("body_thickness")] = SLENDER
    return shift
