"""Species with niches, and how likely each is at a place: exactly, because the world is made that way.

The intensity of species s at a place with axes e and cover c is

    lambda_s = abundance_s exp(-1/2 sum_k ((e_k - m_sk) / w_sk)^2) liking_sc   where it is native, else 0.

The next individual that somebody notes there is of species s with probability lambda_s / sum of all lambda, and a plot
of unit effort holds it with probability 1 - exp(-lambda_s).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark.worlds.land.land_cover import COVERS
from fieldmark.worlds.land.terrain import COUNTRIES
from fieldmark.worlds.nature.kingdom import Codes, Floats
from fieldmark.worlds.nature.latin_names import Namer

# What is left of a species in a cover that it does not like.
_TOLERANCE = 0.15
# How many of the species live in both countries.
_IN_BOTH = 0.15


@dataclass(frozen=True)
class Flora:
    """The species of both countries.

    Attributes:
        names: Binomials.
        native: (species, countries) where each lives.
        abundance: (species,) how common it is where it likes everything.
        middle, width: (species, axes) its niche.
        liking: (species, covers) how much it likes each cover, 1 for its best.
    """

    names: tuple[str, ...]
    native: NDArray[np.bool_]
    abundance: Floats
    middle: Floats
    width: Floats
    liking: Floats

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def grown(cls, species: int, seed: int, axes: tuple[Floats, Floats]) -> Flora:
        """Species whose niches lie where there is land.

        Args:
            species: How many.
            seed: The seed of the world.
            axes: (points, axes) the ground of each country, from which the middles of niches are drawn.
        """
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3300,)))
        home = rng.permutation(np.arange(species) % 2)
        both = rng.random(species) < _IN_BOTH
        native = np.zeros((species, len(COUNTRIES)), dtype=np.bool_)
        native[np.arange(species), home] = True
        native[both] = True
        places = [ground[rng.integers(len(ground), size=species)] for ground in axes]
        middle = np.where(home[:, None] == 0, places[0], places[1])
        middle = middle + 0.15 * rng.standard_normal(middle.shape)
        width = np.exp(rng.normal(np.log(1.0), 0.4, middle.shape))
        liking = np.full((species, len(COVERS)), _TOLERANCE)
        for one in range(species):
            liked = rng.choice(len(COVERS), size=int(rng.integers(1, 4)), replace=False)
            liking[one, liked] = rng.uniform(0.4, 1.0, len(liked))
        liking /= liking.max(axis=1, keepdims=True)
        abundance = np.exp(rng.normal(0.0, 1.1, species))
        namer = Namer(rng)
        genera = [namer.genus() for _ in range(max(2, species // 3))]
        names = tuple(f"{genera[int(rng.integers(len(genera)))]} {namer.epithet()}" for _ in range(species))
        return cls(names, native, abundance, middle, width, liking)

    def intensity(self, axes: Floats, cover: Codes, country: Codes) -> Floats:
        """(points, species) lambda.

        Args:
            axes: (points, axes) the ground (`GroundAt.niche_axes`).
            cover: (points,) numbers in `land_cover.COVERS`.
            country: (points,) numbers in `terrain.COUNTRIES`.
        """
        precision = 1 / np.square(self.width)
        squares = np.square(axes) @ precision.T - 2 * axes @ (self.middle * precision).T
        squares += (np.square(self.middle) * precision).sum(axis=1)
        result = self.abundance * np.exp(-0.5 * np.maximum(squares, 0.0)) * self.liking.T[cover]
        return np.asarray(result * self.native.T[country])

    def next_noted(self, intensity: Floats) -> Floats:
        """(points, species) how likely the next individual that somebody notes is of each species."""
        floor = 1e-12 * (intensity.sum(axis=1, keepdims=True) + 1e-12)
        total = intensity + floor
        return np.asarray(total / total.sum(axis=1, keepdims=True))

    def presence(self, intensity: Floats, effort: float = 1.0) -> Floats:
        """(points, species) how likely a plot of some effort holds each species."""
        return np.asarray(-np.expm1(-effort * intensity))
