"""Both countries with everything that follows from one another, and what somebody notes there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fieldmark.worlds.land.flora import Flora
from fieldmark.worlds.land.land_cover import CoverMap
from fieldmark.worlds.land.settlement import Settlement, scattered
from fieldmark.worlds.land.terrain import COUNTRIES, Terrain
from fieldmark.worlds.nature.kingdom import Codes, Floats

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
