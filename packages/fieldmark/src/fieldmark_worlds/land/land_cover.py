"""What covers the ground, and what it looks like from above: red, green, blue and near infrared.

Cover follows climate, soil, height and towns, with patches of its own from two kilometers down to fifty meters. The two
countries name it by different codes, as CESBIO and NLCD do; 0 stands for nothing known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark_worlds.land.settlement import Settlement
from fieldmark_worlds.land.terrain import GroundAt, Terrain
from fieldmark_worlds.land.waves import METERS_PER_DEGREE, WaveFields
from fieldmark_worlds.nature.kingdom import Codes, Floats

Pixels = NDArray[np.uint8]
PATCH_M = 256.0
# How much of the cover is chance in its own patches, beside what the ground makes likely.
_PATCHINESS = 1.1


@dataclass(frozen=True)
class CoverKind:
    """One kind of cover.

    Args:
        name: What it is.
        codes: As France and the United States number it.
        shade: Red, green, blue and near infrared, 0 to 255.
        roughness: How much pixels of it differ.
    """

    name: str
    codes: tuple[int, int]
    shade: tuple[int, int, int, int]
    roughness: float


COVERS = (
    CoverKind("town", (1, 22), (150, 142, 138, 120), 0.35),
    CoverKind("field", (5, 31), (148, 132, 92, 165), 0.12),
    CoverKind("vineyard", (15, 30), (128, 118, 84, 150), 0.25),
    CoverKind("meadow", (13, 30), (112, 136, 74, 195), 0.12),
    CoverKind("broadleaf", (8, 25), (58, 84, 46, 210), 0.28),
    CoverKind("conifer", (9, 26), (38, 62, 42, 150), 0.30),
    CoverKind("heath", (12, 28), (104, 104, 68, 140), 0.26),
    CoverKind("grassland", (11, 29), (142, 140, 90, 160), 0.16),
    CoverKind("rock", (14, 24), (172, 164, 154, 140), 0.22),
    CoverKind("wetland", (16, 32), (76, 92, 70, 120), 0.20),
    CoverKind("water", (17, 20), (34, 56, 78, 18), 0.06),
)


@dataclass(frozen=True)
class CoverMap:
    """The cover of one country.

    Args:
        terrain: Its ground.
        settlement: Its towns.
        patches: One field for each kind of cover.
    """

    terrain: Terrain
    settlement: Settlement
    patches: WaveFields

    @classmethod
    def grown(cls, terrain: Terrain, settlement: Settlement, seed: int) -> CoverMap:
        """The cover of a country in the world of a seed."""
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3200, terrain.country.digit)))
        fields = WaveFields.drawn(rng, len(COVERS), 10, longest_m=2_500, shortest_m=120, slope=0.35)
        return cls(terrain, settlement, fields)

    def at(self, latitude: Floats, longitude: Floats, ground: GroundAt) -> Codes:
        """The number in `COVERS` of what covers each point."""
        scores = self.liking(latitude, longitude, ground) + _PATCHINESS * self.patches.at(latitude, longitude)
        return np.asarray(scores.argmax(axis=0))

    def around(self, latitude: Floats, longitude: Floats, ground: GroundAt, side_px: int) -> NDArray[np.uint8]:
        """(points, side, side) the number of what covers each pixel of the squares of 256 m around points."""
        north, east = pixel_degrees(latitude, side_px)
        scores = self.patches.around(latitude, longitude, north, east)
        scores *= np.float32(_PATCHINESS)
        scores += self.liking(latitude, longitude, ground).T[:, :, None, None].astype(np.float32)
        return np.asarray(scores.argmax(axis=1), dtype=np.uint8)

    def liking(self, latitude: Floats, longitude: Floats, ground: GroundAt) -> Floats:
        """(covers, points) how much the ground is made for each kind of cover."""
        town, _ = self.settlement.nearness(latitude, longitude)
        warmth, rain, _, acidity, sand = ground.niche_axes().T
        high = ground.elevation_m / 1000
        by_name = {
            "town": 4.5 * town - 1.6,
            "field": 1.0 - 1.6 * high - 0.25 * np.square(warmth) + 0.2 * acidity,
            "vineyard": -0.6 + 0.6 * warmth - 0.7 * np.square(rain) + 0.3 * acidity - 1.2 * high,
            "meadow": 0.5 + 0.4 * rain - 0.3 * warmth - 0.3 * high,
            "broadleaf": 0.7 + 0.4 * rain - 0.2 * np.square(warmth) - 0.9 * high,
            "conifer": 0.1 - 0.5 * warmth + 0.2 * rain + 0.3 * sand - 0.3 * acidity + 0.3 * high,
            "heath": -0.3 + 0.4 * sand - 0.4 * rain + 0.3 * warmth,
            "grassland": -0.2 - 0.7 * rain + 0.2 * high,
            "rock": -2.2 + 1.1 * high - 0.4 * rain + 0.3 * ground.stoniness,
            "wetland": -1.1 + 0.6 * rain - 1.5 * high - 0.4 * sand,
            "water": np.full(len(high), -1.7),
        }
        return np.array([by_name[cover.name] for cover in COVERS])


def pixel_degrees(latitude: Floats, side_px: int) -> tuple[Floats, Floats]:
    """How many degrees rows lie north, and (points, columns) columns east, of the middle of a square of 256 m."""
    offset = (np.arange(side_px) - (side_px - 1) / 2) * PATCH_M / side_px / METERS_PER_DEGREE
    return -offset, offset[None, :] / np.cos(np.radians(latitude))[:, None]


def codes_of(cover: NDArray[np.uint8], country: int) -> Pixels:
    """The codes of a country for kinds of cover; 0 for the first country of `COUNTRIES`, 1 for the second."""
    return np.array([one.codes[country] for one in COVERS], dtype=np.uint8)[cover]


def seen_from_above(cover: NDArray[np.uint8], rng: np.random.Generator) -> Pixels:
    """(points, side, side, 4) red, green, blue and near infrared of kinds of cover."""
    shade = np.array([one.shade for one in COVERS], dtype=np.float32)[cover]
    rough = np.array([one.roughness for one in COVERS], dtype=np.float32)[cover][..., None]
    shared = rng.standard_normal((*cover.shape, 1), dtype=np.float32)
    own = rng.standard_normal((*cover.shape, 4), dtype=np.float32)
    light = rng.normal(1.0, 0.08, (len(cover), 1, 1, 1)).astype(np.float32)
    values = shade * light * (1 + rough * (np.float32(0.8) * shared + np.float32(0.25) * own))
    return np.asarray(np.clip(values, 0, 255), dtype=np.uint8)
