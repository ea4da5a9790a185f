"""Towns and the roads between them, which decide where people look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldmark_worlds.land.terrain import CountryFrame, Terrain
from fieldmark_worlds.land.waves import METERS_PER_DEGREE
from fieldmark_worlds.nature.kingdom import Floats

TOWN_REACH_M, ROAD_REACH_M = 9_000.0, 2_500.0


@dataclass(frozen=True)
class Settlement:
    """Where people live.

    Attributes:
        country: Whose.
        latitude, longitude: (towns,).
        size: (towns,) how large, the largest 1.
        roads: (roads, 2) the towns at both ends.
    """

    country: CountryFrame
    latitude: Floats
    longitude: Floats
    size: Floats
    roads: Floats

    @classmethod
    def grown(cls, terrain: Terrain, towns: int, seed: int) -> Settlement:
        """Towns in lowlands, larger ones fewer; each is joined to its two nearest neighbors."""
        country = terrain.country
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3100, country.digit)))
        lat, lon = scattered(country, 40 * towns, rng)
        ground = terrain.at(lat, lon)
        liked = ground.land * np.exp(-ground.elevation_m / 500)
        chosen = rng.choice(len(lat), size=towns, replace=False, p=liked / liked.sum())
        lat, lon = lat[chosen], lon[chosen]
        size = 1 / np.arange(1, towns + 1) ** 0.7
        apart = _meters(lat[:, None], lon[:, None], lat, lon)
        np.fill_diagonal(apart, np.inf)
        nearest = np.argsort(apart, axis=1)[:, :2]
        pairs = np.sort(np.column_stack([np.repeat(np.arange(towns), 2), nearest.ravel()]), axis=1)
        return cls(country, lat, lon, size, np.unique(pairs, axis=0))

    def nearness(self, latitude: Floats, longitude: Floats) -> tuple[Floats, Floats]:
        """How much of a town, and of a road, there is at points: 1 in the largest town, and on a road."""
        town = np.zeros(len(latitude))
        for lat, lon, size in zip(self.latitude, self.longitude, self.size, strict=True):
            far = _meters(latitude, longitude, lat, lon)
            town = np.maximum(town, size**0.5 * np.exp(-far / (TOWN_REACH_M * size**0.3)))
        road = np.zeros(len(latitude))
        for one, other in self.roads:
            road = np.maximum(road, np.exp(-self._to_road(latitude, longitude, one, other) / ROAD_REACH_M))
        return town, road

    def places(self, number: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Places where people look: most around towns, many along roads, few anywhere."""
        kind = rng.choice(3, size=number, p=[0.55, 0.33, 0.12])
        lat, lon = scattered(self.country, number, rng)
        town = rng.choice(len(self.size), size=number, p=self.size / self.size.sum())
        far = rng.exponential(TOWN_REACH_M, number) * self.size[town] ** 0.3
        turn = rng.uniform(0, 2 * np.pi, number)
        narrow = np.cos(np.radians(self.latitude[town]))
        near_lat = self.latitude[town] + far * np.sin(turn) / METERS_PER_DEGREE
        near_lon = self.longitude[town] + far * np.cos(turn) / METERS_PER_DEGREE / narrow
        road = self.roads[rng.integers(len(self.roads), size=number)]
        along = rng.uniform(0, 1, number)
        aside = rng.exponential(ROAD_REACH_M, number) / METERS_PER_DEGREE
        ends = [(values[road[:, 0]], values[road[:, 1]]) for values in (self.latitude, self.longitude)]
        on_lat, on_lon = (one + along * (other - one) for one, other in ends)
        on_lat, on_lon = on_lat + aside * np.sin(turn), on_lon + aside * np.cos(turn) / narrow
        lat = np.select([kind == 0, kind == 1], [near_lat, on_lat], lat)
        lon = np.select([kind == 0, kind == 1], [near_lon, on_lon], lon)
        return lat, lon

    def _to_road(self, latitude: Floats, longitude: Floats, one: int, other: int) -> Floats:
        narrow = np.cos(np.radians(self.latitude[one]))
        x, y = (longitude - self.longitude[one]) * narrow, latitude - self.latitude[one]
        dx = (self.longitude[other] - self.longitude[one]) * narrow
        dy = self.latitude[other] - self.latitude[one]
        share = np.clip((x * dx + y * dy) / max(dx * dx + dy * dy, 1e-12), 0, 1)
        return np.asarray(np.hypot(x - share * dx, y - share * dy) * METERS_PER_DEGREE)


def scattered(country: CountryFrame, number: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Points anywhere in the frame of a country, evenly by area."""
    low, high = np.sin(np.radians([country.south, country.north]))
    latitude = np.degrees(np.arcsin(rng.uniform(low, high, number)))
    return latitude, rng.uniform(country.west, country.east, number)


def _meters(latitude: Floats, longitude: Floats, lat: Floats | float, lon: Floats | float) -> Floats:
    north = (latitude - lat) * METERS_PER_DEGREE
    east = (longitude - lon) * METERS_PER_DEGREE * np.cos(np.radians(latitude))
    return np.asarray(np.hypot(north, east))
