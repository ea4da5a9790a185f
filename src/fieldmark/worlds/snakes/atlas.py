"""An invented world map: continents, their countries, where each species lives, and where people take photos.

Names of countries and continents are invented, so that no simulated find is ever taken for a real one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark.worlds.nature.kingdom import Codes, Floats
from fieldmark.worlds.nature.latin_names import Namer

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
    """Continents and countries; the last country has no snakes at all.

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
