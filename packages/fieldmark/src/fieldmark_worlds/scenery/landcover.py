"""What covers the ground of the invented country, and what a satellite sees of it.

Land cover is a field over latitude and longitude. Around a find, the habitat that was noted prevails. No photo of a
specimen knows of any of this. Workers import this module afresh, so it imports no table library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fieldmark_worlds.nature.kingdom import Floats

SATELLITE_SIDE_PX = 128
METERS_PER_PIXEL = 10
REFLECTANCE_CEILING = 10_000
GAMMA = 2.5

_METERS_PER_DEGREE = 111_320
# Reflectance is measured twice as coarsely as it is delivered.
_MEASURED_SIDE = SATELLITE_SIDE_PX // 2
# What a crop makes of bare soil, by band.
_CROP = np.array([0.4, 0.75, 0.5, 1.4])
_GRID = 24
_WAVES = 5


@dataclass(frozen=True)
class Cover:
    """One kind of land.

    Attributes:
        code: Its class in the MODIS scheme.
        habitat: The habitat that people note there; empty where nobody looks for fungi.
        abundance: How common it is, as an offset of the field.
        reflectance: Red, green, blue and near infrared, 0 to 10,000.
        roughness: Spread of the reflectance from pixel to pixel, as a share.
    """

    code: int
    habitat: str
    abundance: float
    reflectance: tuple[int, int, int, int]
    roughness: float


COVERS = (
    Cover(4, "deciduous woodland", 0.4, (350, 560, 290, 3300), 0.10),
    Cover(5, "mixed woodland", 0.3, (300, 470, 260, 2700), 0.13),
    Cover(1, "coniferous woodland", 0.3, (240, 370, 220, 2100), 0.10),
    Cover(10, "grassland", 0.2, (800, 960, 520, 3100), 0.05),
    Cover(7, "heath", -0.2, (780, 700, 460, 1900), 0.10),
    Cover(16, "dunes", -0.9, (2700, 2350, 1850, 3100), 0.06),
    Cover(13, "park or garden", 0.0, (1300, 1280, 1120, 2300), 0.30),
    Cover(11, "bog", -0.3, (560, 620, 400, 1900), 0.08),
    Cover(12, "", 0.7, (1350, 1180, 780, 2600), 0.04),
    Cover(17, "", -0.5, (260, 360, 430, 120), 0.05),
)


@dataclass(frozen=True)
class Ground:
    """Where a satellite looks.

    Attributes:
        file: Name of the two pictures.
        latitude: Degrees.
        longitude: Degrees.
        habitat: What was noted at the very place.
        seed: Seed of the world.
        observation: Number of the observation.
    """

    file: str
    latitude: float
    longitude: float
    habitat: str
    seed: int
    observation: int


def cover_at(seed: int, latitude: Floats, longitude: Floats, habitats: Sequence[str]) -> list[int]:
    """Returns the MODIS class at some places: often, but not always, the one that fits the habitat noted there."""
    scores = _scores(seed, latitude, longitude)
    noted = np.array([[cover.habitat == habitat for habitat in habitats] for cover in COVERS])
    best = (scores + 1.6 * noted).argmax(axis=0)
    return [COVERS[i].code for i in best]


def photograph_grounds(root: Path, grounds: Sequence[Ground]) -> int:
    """Writes `satellite_RGB` and `satellite_NIR` pictures of some places, and returns how many."""
    for ground in grounds:
        picture = as_picture(reflectance_of(ground))
        Image.fromarray(picture[..., :3]).save(root / "satellite_RGB" / ground.file)
        Image.fromarray(picture[..., 3]).save(root / "satellite_NIR" / ground.file)
    return len(grounds)


def as_picture(reflectance: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """Turns raw reflectance into bytes as the release does: clipped, scaled, brightened by gamma, rounded.

    >>> as_picture(np.array([0.0, 312.5, 10_000.0, 12_000.0])).tolist()
    [0, 64, 255, 255]
    """
    share = np.clip(reflectance, 0, REFLECTANCE_CEILING) / REFLECTANCE_CEILING
    return np.asarray(np.round(share ** (1 / GAMMA) * 255), dtype=np.uint8)


def reflectance_of(ground: Ground) -> NDArray[np.float32]:
    """Returns (side, side, 4) raw reflectance around a place: red, green, blue, near infrared."""
    rng = np.random.default_rng(np.random.SeedSequence([ground.seed, ground.observation], spawn_key=(3,)))
    side = _MEASURED_SIDE
    cover = _mosaic(ground)
    values = np.array([kind.reflectance for kind in COVERS], dtype=np.float32)[cover]
    rough = np.array([kind.roughness for kind in COVERS], dtype=np.float32)[cover]
    # All bands share most of what makes a pixel bright; the rest is a band's own.
    shared = rng.standard_normal((side, side, 1), dtype=np.float32)
    own = rng.standard_normal((side, side, 4), dtype=np.float32)
    values = values * np.exp(rough[..., None] * (np.float32(0.9) * shared + np.float32(0.2) * own))
    fields = np.array([kind.code == 12 for kind in COVERS])[cover]
    values = np.where(fields[..., None], values * _parcels(rng, side), values)
    roofs = np.array([kind.code == 13 for kind in COVERS])[cover] & (rng.random((side, side)) < 0.02)
    values[roofs] = np.float32(1.2 * REFLECTANCE_CEILING)
    return values.repeat(2, axis=0).repeat(2, axis=1).astype(np.float32)


def _mosaic(ground: Ground) -> NDArray[np.intp]:
    """Returns which of `COVERS` lies at each measured pixel."""
    half = SATELLITE_SIDE_PX * METERS_PER_PIXEL / 2
    north = np.linspace(half, -half, _GRID) / _METERS_PER_DEGREE
    east = np.linspace(-half, half, _GRID) / (_METERS_PER_DEGREE * np.cos(np.deg2rad(ground.latitude)))
    latitude, longitude = np.meshgrid(ground.latitude + north, ground.longitude + east, indexing="ij")
    coarse = _scores(ground.seed, latitude.ravel(), longitude.ravel()).reshape(-1, _GRID, _GRID)
    side = _MEASURED_SIDE
    fine = np.stack(
        [
            np.asarray(Image.fromarray(field.astype(np.float32)).resize((side, side), Image.Resampling.BICUBIC))
            for field in coarse
        ]
    )
    axis = np.linspace(-1, 1, side)
    near = np.exp(-(axis[:, None] ** 2 + axis[None, :] ** 2) / 0.08)
    for i, kind in enumerate(COVERS):
        if kind.habitat == ground.habitat:
            fine[i] += 6 * near
    best: NDArray[np.intp] = fine.argmax(axis=0)
    return best


def _parcels(rng: np.random.Generator, side: int) -> NDArray[np.float32]:
    """Returns (side, side, 4) how bright the fields of a farm are, each of its own crop."""
    across, down = (np.sort(rng.integers(0, side, 5)) for _ in range(2))
    row, column = np.searchsorted(down, np.arange(side)), np.searchsorted(across, np.arange(side))
    grown = rng.random((6, 6, 1))
    crops = (1 + grown * (_CROP - 1)) * rng.lognormal(0, 0.12, (6, 6, 1))
    fields: NDArray[np.float32] = crops.astype(np.float32)[row[:, None], column[None, :]]
    return fields


def _scores(seed: int, latitude: Floats, longitude: Floats) -> Floats:
    """Returns (covers, places) how strongly each kind of land asserts itself."""
    northward, eastward, phase = _waves(seed)
    along = northward[..., None] * latitude + eastward[..., None] * longitude + phase[..., None]
    abundance = np.array([kind.abundance for kind in COVERS])
    scores: Floats = np.sin(along).sum(axis=1) * np.sqrt(2 / _WAVES) + abundance[:, None]
    return scores


@cache
def _waves(seed: int) -> tuple[Floats, Floats, Floats]:
    """Returns frequencies and phases of the field, each (covers, waves); swells are 500 m to 4 km long."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2000,)))
    shape = (len(COVERS), _WAVES)
    frequency = 2 * np.pi * _METERS_PER_DEGREE / np.exp(rng.uniform(np.log(500), np.log(4000), shape))
    direction, phase = rng.uniform(0, 2 * np.pi, (2, *shape))
    return frequency * np.sin(direction), frequency * np.cos(direction) * 0.7, phase
