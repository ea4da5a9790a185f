"""Both countries with everything that follows from one another, and what somebody notes there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark_worlds.land.land_cover import COVERS, CoverMap
from fieldmark_worlds.land.settlement import Settlement, scattered
from fieldmark_worlds.land.terrain import COUNTRIES, Terrain
from fieldmark_worlds.nature.kingdom import Codes, Floats
from fieldmark_worlds.nature.latin_names import Namer

# What is left of a species in a cover that it does not like.
_TOLERANCE = 0.15
# How many of the species live in both countries.
_IN_BOTH = 0.15


@dataclass(frozen=True)
class Flora:
    """The species of both countries with their niches, and how likely each is at a place: exactly, by construction.

    The intensity of species s at a place with axes e and cover c is

        lambda_s = abundance_s exp(-1/2 sum_k ((e_k - m_sk) / w_sk)^2) liking_sc   where it is native, else 0.

    The next individual that somebody notes there is of species s with probability lambda_s / sum of all lambda, and a
    plot of unit effort holds it with probability 1 - exp(-lambda_s).

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


# Points that are looked at in one go: rows by species must stay small.
_BLOCK = 4_096


@dataclass(frozen=True)
class Notes:
    """What was noted, in the order of drawing.

    Attributes:
        country: (n,) numbers in `terrain.COUNTRIES`.
        latitude, longitude: (n,).
        cover: (n,) numbers in `land_cover.COVERS`.
        species: (n,) numbers in the flora.
    """

    country: Codes
    latitude: Floats
    longitude: Floats
    cover: Codes
    species: Codes

    def __len__(self) -> int:
        return len(self.species)


@dataclass(frozen=True)
class WholeLand:
    """A land with its species.

    Attributes:
        terrains, covers: For each country.
        flora: The species.
    """

    terrains: tuple[Terrain, ...]
    covers: tuple[CoverMap, ...]
    flora: Flora

    @classmethod
    def grown(cls, *, species: int, towns: tuple[int, int], seed: int) -> WholeLand:
        """The land of a seed."""
        terrains = tuple(Terrain.grown(country, seed) for country in COUNTRIES)
        settled = [Settlement.grown(one, number, seed) for one, number in zip(terrains, towns, strict=True)]
        covers = tuple(CoverMap.grown(one, own, seed) for one, own in zip(terrains, settled, strict=True))
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3400,)))
        grounds = []
        for terrain in terrains:
            ground = terrain.at(*scattered(terrain.country, 2_000, rng))
            grounds.append(ground.niche_axes()[ground.land > 0])
        return cls(terrains, covers, Flora.grown(species, seed, (grounds[0], grounds[1])))

    def intensity(self, latitude: Floats, longitude: Floats, country: int) -> Floats:
        """(points, species) how many individuals of each species there are to be noted at points of a country."""
        ground = self.terrains[country].at(latitude, longitude)
        cover = self.covers[country].at(latitude, longitude, ground)
        where = np.full(len(latitude), country)
        return self.flora.intensity(ground.niche_axes(), cover, where) * ground.land[:, None]

    def next_noted(self, latitude: Floats, longitude: Floats, country: int) -> Floats:
        """(points, species) P(species | place), exactly, for the next individual that somebody notes."""
        return self.flora.next_noted(self.intensity(latitude, longitude, country))

    def presence(self, latitude: Floats, longitude: Floats, country: int, effort: float = 1.0) -> Floats:
        """(points, species) how likely a plot of some effort holds each species, exactly."""
        return self.flora.presence(self.intensity(latitude, longitude, country), effort)

    def noted(self, number: int, country: int, rng: np.random.Generator) -> Notes:
        """Individuals that somebody notes in a country: more where people go and where more is to be seen."""
        found: list[tuple[Floats, Floats, Codes, Codes]] = []
        count = 0
        while count < number:
            lat, lon = self.covers[country].settlement.places(_BLOCK, rng)
            frame = COUNTRIES[country]
            inside = (lat > frame.south) & (lat < frame.north) & (lon > frame.west) & (lon < frame.east)
            lat, lon = np.round(lat[inside], 6), np.round(lon[inside], 6)
            ground = self.terrains[country].at(lat, lon)
            cover = self.covers[country].at(lat, lon, ground)
            where = np.full(len(lat), country)
            intensity = self.flora.intensity(ground.niche_axes(), cover, where) * ground.land[:, None]
            total = intensity.sum(axis=1)
            kept = (ground.land > 0) & (rng.random(len(lat)) < total / (total + 0.5))
            shares = np.cumsum(self.flora.next_noted(intensity[kept]), axis=1)
            species = np.minimum((shares < rng.random(len(shares))[:, None]).sum(axis=1), len(self.flora) - 1)
            found.append((lat[kept], lon[kept], cover[kept], species))
            count += len(species)
        lat, lon, cover, species = (np.concatenate(one)[:number] for one in zip(*found, strict=True))
        return Notes(np.full(number, country), lat, lon, cover, species)

    def probabilities_of(self, notes: Notes) -> Iterator[tuple[Codes, Floats]]:
        """Rows of the notes, and P(species | place) at them, block by block."""
        for country in range(len(COUNTRIES)):
            rows = np.flatnonzero(notes.country == country)
            for start in range(0, len(rows), _BLOCK):
                block = rows[start : start + _BLOCK]
                yield block, self.next_noted(notes.latitude[block], notes.longitude[block], country)
