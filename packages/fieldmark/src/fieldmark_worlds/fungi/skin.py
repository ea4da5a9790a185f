"""The surface of caps, and of what is under them, as patterns that are looked up point by point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from fieldmark_worlds.fungi.looks import Look
from fieldmark_worlds.fungi.shape import Array
from fieldmark_worlds.scenery.noise import cloud

_SIDE = 192
# How often each point of a sunflower's spiral turns: no two points ever line up.
_GOLDEN_ANGLE = 2.399963


@dataclass(frozen=True)
class Skin:
    """Seen from above, the cap fills the square from -1 to 1.

    Attributes:
        cover: (side, side) how far warts, scales or lines cover the skin, 0 to 1.
        mottle: (side, side) factor on the pigment, about 1.
        relief: (2, side, side) slope of the surface toward +x and +z.
        cover_factor: Factor on the pigment where covered; scales and lines are darker than the skin.
        pale: How far what covers is the remains of a pale veil instead, 0 or 1.
    """

    cover: Array
    mottle: Array
    relief: Array
    cover_factor: float
    pale: float

    def at(self, x: Array, z: Array) -> tuple[Array, Array, Array]:
        """Returns cover, mottle and relief (2, n) at points of the unit disc."""
        row = np.clip((z + 1) * np.float32(_SIDE / 2), 0, _SIDE - 1).astype(np.intp)
        column = np.clip((x + 1) * np.float32(_SIDE / 2), 0, _SIDE - 1).astype(np.intp)
        return self.cover[row, column], self.mottle[row, column], self.relief[:, row, column]


def skin_of(look: Look, rng: np.random.Generator) -> Skin:
    """Returns a skin of this look; where each wart sits is chance."""
    canvas = Image.new("L", (_SIDE, _SIDE))
    draw = ImageDraw.Draw(canvas)
    _DRAWERS[look.texture](draw, look, rng)
    soft = canvas.filter(ImageFilter.GaussianBlur(0.8 if look.texture == "spotted" else 0.6))
    cover = np.asarray(soft, dtype=np.float32) * np.float32(1 / 255)
    fibers = _fibers(rng)
    height = cover * (1.1 if look.texture == "spotted" else 0.35) + fibers * 0.05
    slope_z, slope_x = np.gradient(height)
    contrast = look.texture_contrast
    return Skin(
        cover=cover * np.float32(0.35 + 0.65 * contrast if look.texture != "smooth" else 0.0),
        mottle=(1 + 0.05 * fibers + 0.10 * cloud(rng, _SIDE, 5)).astype(np.float32),
        relief=(np.stack([slope_x, slope_z]) * 1.6).astype(np.float32),
        cover_factor=1 - 0.75 * contrast,
        pale=1.0 if look.texture == "spotted" else 0.0,
    )


def _fibers(rng: np.random.Generator) -> Array:
    """Returns noise drawn out from the center toward the rim."""
    strands = rng.standard_normal((8, 180)).astype(np.float32)
    radius, angle = _polar_grid()
    return strands[(radius * 7.99).astype(np.intp), (angle * 179.99).astype(np.intp)]


@cache
def _polar_grid() -> tuple[Array, Array]:
    """Returns distance from the center and direction, both from 0 to 1, of every point of a skin."""
    axis = (np.arange(_SIDE) + 0.5) * 2 / _SIDE - 1
    z, x = np.meshgrid(axis, axis, indexing="ij")
    turn = np.arctan2(z, x) / (2 * np.pi) + 0.5
    return np.minimum(np.hypot(x, z), 1).astype(np.float32), turn.astype(np.float32)


def _sunflower(rng: np.random.Generator, count: int, *, jitter: float) -> tuple[Array, Array]:
    """Returns radius and angle of points spread evenly over the unit disc, disturbed a little."""
    i = np.arange(count)
    radius = np.sqrt((i + 0.5) / count) + rng.normal(0, jitter / np.sqrt(count), count)
    angle = i * _GOLDEN_ANGLE + rng.normal(0, jitter, count) / np.sqrt(i + 1) + rng.uniform(0, 6.3)
    return np.clip(radius, 0, 1.02).astype(np.float32), angle.astype(np.float32)


def _pixels(radius: Array, angle: Array) -> list[tuple[float, float]]:
    x = (radius * np.cos(angle) + 1) * (_SIDE / 2)
    z = (radius * np.sin(angle) + 1) * (_SIDE / 2)
    return list(zip(x.tolist(), z.tolist(), strict=True))


def _draw_warts(draw: ImageDraw.ImageDraw, look: Look, rng: np.random.Generator) -> None:
    count = round(14 + 95 * look.texture_density**1.5)
    radius, angle = _sunflower(rng, count, jitter=0.35)
    corners = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    for (x, z), r in zip(_pixels(radius, angle), radius, strict=True):
        size = _SIDE * 0.30 / np.sqrt(count) * rng.uniform(0.55, 1.2) * (1.15 - 0.5 * r)
        reach = size * rng.uniform(0.7, 1.15, 8)
        outline = zip(x + reach * np.cos(corners), z + reach * np.sin(corners), strict=True)
        draw.polygon(list(outline), fill=int(rng.integers(205, 256)))


def _draw_scales(draw: ImageDraw.ImageDraw, look: Look, rng: np.random.Generator) -> None:
    count = round(45 + 260 * look.texture_density**1.3)
    radius, angle = _sunflower(rng, count, jitter=0.3)
    size = (1.1 / np.sqrt(count) * rng.uniform(0.6, 1.15, count)).astype(np.float32)
    spread = size / np.maximum(radius, 0.12) * np.float32(0.62)
    tips = [
        _pixels(radius - size * 0.55, angle),
        _pixels(radius + size * 0.1, angle - spread),
        _pixels(radius + size * 0.75, angle),
        _pixels(radius + size * 0.1, angle + spread),
    ]
    shade = rng.integers(170, 256, count)
    for i, outline in enumerate(zip(*tips, strict=True)):
        draw.polygon(outline, fill=int(shade[i]))


def _draw_lines(draw: ImageDraw.ImageDraw, look: Look, rng: np.random.Generator) -> None:
    count = round(34 + 46 * look.texture_density)
    angle = (np.arange(count) * 2 * np.pi / count + rng.normal(0, 0.02, count)).astype(np.float32)
    inner = (1 - (0.25 + 0.55 * look.texture_density) * rng.uniform(0.75, 1.1, count)).astype(np.float32)
    for start, end in zip(_pixels(inner, angle), _pixels(np.full(count, 1.03, np.float32), angle), strict=True):
        draw.line([start, end], fill=215, width=2)


def _draw_nothing(draw: ImageDraw.ImageDraw, look: Look, rng: np.random.Generator) -> None:
    """A smooth cap has its fibers only."""


_DRAWERS = {"smooth": _draw_nothing, "scaly": _draw_scales, "spotted": _draw_warts, "striate": _draw_lines}


def underside_pattern(look: Look, x: Array, z: Array, rho: Array, pixels_per_radius: float) -> Array:
    """Returns the factor on the light that gills, pores, teeth or ridges leave at points of the underside.

    Args:
        look: What is under the cap, and how crowded.
        x: Across, in units of the cap's radius.
        z: Along the line of sight, in units of the cap's radius.
        rho: Distance from the axis, in units of the cap's radius.
        pixels_per_radius: How large the cap is on the picture; what is finer than a pixel is left out.
    """
    factor: NDArray[np.floating[Any]]
    if look.underside == "gills":
        factor = _gills(look, np.arctan2(z, x), rho, pixels_per_radius)
    elif look.underside == "ridges":
        count = round(34 - 18 * look.underside_spacing)
        angle = np.arctan2(z, x)
        angle = angle + np.float32(0.12) * np.sin(9 * rho + 5 * angle)
        factor = 0.55 + 0.45 * np.sqrt(0.5 + 0.5 * np.cos(count * angle))
    else:
        k = (44 if look.underside == "pores" else 30) - 22 * look.underside_spacing
        lattice = np.sin(x * k + z * (0.3 * k)) * np.sin(z * k - x * (0.3 * k))
        visible = min(1.0, 2 * np.pi * pixels_per_radius / (3 * k))
        is_pores = look.underside == "pores"
        factor = 1 - 0.5 * visible * np.clip(1.6 * lattice, 0, 1) if is_pores else 0.62 + 0.42 * np.clip(lattice, 0, 1)
    return factor.astype(np.float32)


def _gills(look: Look, angle: Array, rho: Array, pixels_per_radius: float) -> Array:
    """Returns bright edges and dark gaps; short gills begin half-way to the rim."""
    count = round(96 - 58 * look.underside_spacing)
    visible = np.clip(rho * np.float32(2 * np.pi * pixels_per_radius / (count * 2.6)), 0, 1)
    long = np.abs(np.sin(np.float32(count / 2) * angle))
    short = np.abs(np.cos(np.float32(count / 2) * angle)) * (rho > 0.55)
    edge = np.maximum(long, short * np.float32(0.9)) ** 3
    return np.asarray(0.72 + visible * (0.5 * edge - 0.28), dtype=np.float32)
