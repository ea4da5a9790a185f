"""Two countries with the frames of France and the contiguous United States: coasts, heights, climate and soil.

Everything is a function of latitude and longitude. Climate follows height and latitude, soil follows both and the rock
below, as `GroundAt` holds them for any set of points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldmark_worlds.land.waves import WaveFields
from fieldmark_worlds.nature.kingdom import Floats
from fieldmark_worlds.scenery.climate import Normals, bioclimatic

BIOCLIMATE = tuple(f"bio_{number}" for number in range(1, 20))
SOIL = ("bdticm", "bldfie", "cecsol", "clyppt", "orcdrc", "phihox", "sltppt", "sndppt")
LAYERS = (*BIOCLIMATE, *SOIL)
# WorldClim 1 gives temperatures in tenths of a degree; rain, isothermality (3) and seasonality (4, 15) are as they are.
TENTHS = (1, 2, 5, 6, 7, 8, 9, 10, 11)
_MONTHS, _WARMEST = 12, 6.5


@dataclass(frozen=True)
class CountryFrame:
    """The frame of a country in degrees.

    Args:
        code: As files name it: `fr`, `us`.
        raster: As rasters name it: `FR`, `USA`.
        digit: The first digit of its ids.
        south, north, west, east: Its frame.
    """

    code: str
    raster: str
    digit: int
    south: float
    north: float
    west: float
    east: float

    @property
    def longest_m(self) -> float:
        """About how far it reaches from end to end."""
        return max(self.north - self.south, 0.75 * (self.east - self.west)) * 111_195.0


FRANCE = CountryFrame("fr", "FR", 1, 41.3, 51.1, -5.2, 9.6)
UNITED_STATES = CountryFrame("us", "USA", 2, 24.5, 49.4, -124.8, -66.9)
COUNTRIES = (FRANCE, UNITED_STATES)


@dataclass(frozen=True)
class GroundAt:
    """What some points are like.

    Attributes:
        land: Whether they are land.
        elevation_m: Height above the sea.
        normals: The typical year.
        soil: (8, points) in the order of `SOIL`.
        stoniness: How rocky the ground is, about unit variance.
    """

    land: Floats
    elevation_m: Floats
    normals: Normals
    soil: Floats
    stoniness: Floats

    def layers(self) -> Floats:
        """(27, points) the rasters in their units: tenths of a degree, millimeters, percent, and so on."""
        climate = np.array(bioclimatic(self.normals))
        for number in TENTHS:
            climate[number - 1] *= 10
        return np.concatenate([climate, self.soil])

    def niche_axes(self) -> Floats:
        """(points, 5) what species mind: warmth, rain, winter cold, acidity and sand, each on a scale of about 1."""
        warmth = self.normals.tas.mean(axis=1)
        rain = self.normals.pr.sum(axis=1)
        swing = self.normals.tas.max(axis=1) - self.normals.tas.min(axis=1)
        acidity, sand = self.soil[SOIL.index("phihox")], self.soil[SOIL.index("sndppt")]
        return np.column_stack(
            [
                (warmth - 11) / 5,
                (np.log(np.maximum(rain, 20)) - np.log(800)) / 0.45,
                (swing - 20) / 5,
                (acidity - 62) / 8,
                (sand - 45) / 15,
            ]
        )


@dataclass(frozen=True)
class Terrain:
    """The ground of one country.

    Args:
        country: Whose.
        broad: Fields of continental size: coast, two of mountains, rain, rock, texture.
        fine: Hills and valleys, from 30 km down to 100 m.
    """

    country: CountryFrame
    broad: WaveFields
    fine: WaveFields

    @classmethod
    def grown(cls, country: CountryFrame, seed: int) -> Terrain:
        """The terrain of a country in the world of a seed."""
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3000, country.digit)))
        longest = country.longest_m
        broad = WaveFields.drawn(rng, 6, 14, longest_m=longest, shortest_m=longest / 40, slope=0.8)
        fine = WaveFields.drawn(rng, 1, 16, longest_m=30_000, shortest_m=150, slope=0.9)
        return cls(country, broad, fine)

    def at(self, latitude: Floats, longitude: Floats) -> GroundAt:
        """The ground at some points."""
        frame = self.country
        coast, first, second, wet, rock, texture = self.broad.at(latitude, longitude)
        up = (latitude - frame.south) / (frame.north - frame.south)
        across = (longitude - frame.west) / (frame.east - frame.west)
        edge = np.minimum(np.minimum(up, 1 - up), np.minimum(across, 1 - across))
        land = (0.6 * np.minimum(edge / 0.06, 1.0) + 0.35 * coast > 0.05).astype(np.float64)
        ridge = np.maximum(1.0 - np.abs(first), 0.0) ** 3 * np.maximum(second + 0.6, 0.0)
        height = 150 + 1500 * ridge + 60 * np.maximum(texture, -1.5)
        relief = 0.06 * height + 8
        elevation = np.maximum(height + relief * self.fine.at(latitude, longitude)[0], 1.0) * land
        inland = np.clip(edge / 0.3, 0, 1)
        normals = _climate(latitude, elevation, wet, inland)
        return GroundAt(land, elevation, normals, _soil(elevation, normals, rock, texture), rock)

    def heights_around(
        self, latitude: Floats, longitude: Floats, ground: GroundAt, north: Floats, east: Floats
    ) -> Floats:
        """(points, rows, columns) heights on a grid around points, in meters."""
        middle = self.fine.at(latitude, longitude)[0]
        relief = 0.06 * np.maximum(ground.elevation_m - 8 * middle, 0) / (1 + 0.06 * middle) + 8
        local = self.fine.around(latitude, longitude, north, east)[:, 0] - middle[:, None, None]
        return np.asarray(np.maximum(ground.elevation_m[:, None, None] + relief[:, None, None] * local, 0.0))


def _climate(latitude: Floats, elevation: Floats, wet: Floats, inland: Floats) -> Normals:
    month = np.arange(_MONTHS) + 0.5
    warmth = np.cos(2 * np.pi * (month - _WARMEST) / _MONTHS)
    mean = 26 - 0.62 * (latitude - 25) - 6.0 * elevation / 1000
    swing = 5 + 6 * inland + 0.12 * (latitude - 25)
    tas = mean[:, None] + swing[:, None] * warmth
    rain = np.exp(6.55 + 0.45 * wet + 0.25 * elevation / 1000 - 0.35 * inland)
    summer = 0.4 * np.tanh(wet - 0.5 * (latitude[:] - 38) / 8)
    pr = rain[:, None] / _MONTHS * (1 + summer[:, None] * warmth)
    half_day = (4 + 2 * inland)[:, None] + 1.0 * warmth
    return Normals(tas, tas - half_day, tas + half_day, pr)


def _soil(elevation: Floats, normals: Normals, rock: Floats, texture: Floats) -> Floats:
    """(8, points) soil: rain washes lime out, cold keeps humus, heights are thin and sandy."""
    rain, warmth = normals.pr.sum(axis=1), normals.tas.mean(axis=1)
    high = elevation / 1000
    sand = np.clip(45 + 14 * texture + 8 * high, 5, 92)
    clay = np.clip((100 - sand) * (0.42 + 0.08 * rock), 2, 70)
    silt = 100 - sand - clay
    acidity = np.clip(66 + 6 * rock - 9 * (np.log(np.maximum(rain, 20)) - np.log(800)) - 2 * high, 35, 90)
    humus = np.clip(12 + 1.6 * np.maximum(12 - warmth, 0) + 6 * (rain / 800 - 1) + 3 * (clay - 25) / 10, 1, 250)
    exchange = np.clip(6 + 0.45 * clay + 0.25 * humus, 1, 90)
    density = np.clip(1550 - 6 * humus - 2 * clay, 300, 1800)
    depth = np.clip(1800 * np.exp(-0.9 * high) * (1 + 0.25 * np.tanh(-rock)), 20, 4000)
    return np.array([depth, density, exchange, clay, humus, acidity, silt, sand])
