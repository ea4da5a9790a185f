"""One mushroom under light: which pixels it covers, with what color, and which of its parts they show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark_worlds.fungi.looks import Look
from fieldmark_worlds.fungi.shape import CAP, RING, STEM, UNDERSIDE, Array, Hits, Shape, shape_of, trace
from fieldmark_worlds.fungi.skin import Skin, skin_of, underside_pattern
from fieldmark_worlds.scenery.light import Light

_VEIL = np.array([0.86, 0.80, 0.68], dtype=np.float32)


@dataclass(frozen=True)
class Pose:
    """How a mushroom lies before the camera.

    Attributes:
        pitch: How far the camera looks down on it, radians.
        roll: How far it is turned in the picture, radians.
        turn: How far it is turned around its axis, radians.
        foot: (column, row) of its foot on the canvas, pixels.
        scale: Pixels per unit of length.
    """

    pitch: float
    roll: float
    turn: float
    foot: tuple[float, float]
    scale: float


@dataclass(frozen=True)
class Portrait:
    """Pixels of one mushroom: flat positions on the canvas, their linear colors and their parts."""

    pixels: NDArray[np.intp]
    colors: Array
    parts: NDArray[np.int8]


def extent(shape: Shape, pitch: float, roll: float) -> tuple[float, float, float, float]:
    """Returns left, right, bottom and top of a mushroom seen so, about its foot, in units of length."""
    sin, cos = np.sin(pitch), np.cos(pitch)
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    widest = float(shape.stem[:200].max())
    x, y = [], []
    for height, radius in ((0.0, widest), (shape.collar, shape.radius), (shape.height, 0.4 * shape.radius)):
        bent = shape.bend * (height / shape.height) ** 2
        x.append(bent + radius * np.cos(angle))
        y.append(height * cos - radius * np.sin(angle) * sin)
    across, up = np.concatenate(x), np.concatenate(y)
    turned_x = across * np.cos(roll) - up * np.sin(roll)
    turned_y = across * np.sin(roll) + up * np.cos(roll)
    return float(turned_x.min()), float(turned_x.max()), float(turned_y.min()), float(turned_y.max())


def portray(look: Look, shape: Shape, pose: Pose, light: Light, side: int, rng: np.random.Generator) -> Portrait:
    """Draws a mushroom onto a square canvas of so many pixels.

    Args:
        look: Its colors and patterns.
        shape: Its solid shape, from `shape_of(look, ...)`.
        pose: Where and how it is seen.
        light: What falls on it.
        side: Width of the canvas.
        rng: Chance in the skin.
    """
    skin = skin_of(look, rng)
    pixels, across, up = _rays(shape, pose, side)
    hits = trace(shape, across, up, pose.pitch, pixel=1 / pose.scale)
    albedo, normal, shine = _albedo(look, shape, skin, hits, pose)
    colors = _lit(shape, hits, albedo, normal, shine, light, pose)
    return Portrait(pixels[hits.rays], colors, hits.part)


def _rays(shape: Shape, pose: Pose, side: int) -> tuple[NDArray[np.intp], Array, Array]:
    """Returns the pixels that may show the mushroom, and where their rays pass the picture plane."""
    left, right, bottom, top = extent(shape, pose.pitch, pose.roll)
    margin = 0.12 * shape.radius
    column, row = pose.foot
    first, last = (int(column + pose.scale * end) for end in (left - margin, right + margin))
    upper, lower = (int(row - pose.scale * end) for end in (top + margin, bottom - margin))
    columns = np.arange(max(first, 0), min(last + 1, side))
    rows = np.arange(max(upper, 0), min(lower + 1, side))
    x = ((columns + 0.5 - column) / pose.scale).astype(np.float32)[None, :]
    y = ((row - rows - 0.5) / pose.scale).astype(np.float32)[:, None]
    sin, cos = np.float32(np.sin(pose.roll)), np.float32(np.cos(pose.roll))
    pixels = rows[:, None] * side + columns[None, :]
    return pixels.ravel(), (x * cos + y * sin).ravel(), (y * cos - x * sin).ravel()


def _albedo(look: Look, shape: Shape, skin: Skin, hits: Hits, pose: Pose) -> tuple[Array, Array, Array]:
    """Returns color (n, 3), normals with relief (3, n), and shine (n,) of the surface at the hits."""
    sin, cos = np.float32(np.sin(pose.turn)), np.float32(np.cos(pose.turn))
    unit = np.float32(1 / shape.radius)
    x, z = (hits.x * cos - hits.z * sin) * unit, (hits.x * sin + hits.z * cos) * unit
    color = np.empty((len(hits.rays), 3), dtype=np.float32)
    normal, shine = hits.normal.copy(), np.zeros(len(hits.rays), dtype=np.float32)
    on = hits.part == CAP
    rho = hits.rho[on]
    cover, mottle, relief = skin.at(x[on], z[on])
    center = np.exp(-((rho / np.float32(0.42)) ** 2))[:, None]
    rim = (np.clip((rho - np.float32(0.62)) / np.float32(0.38), 0, 1) ** 2)[:, None]
    ground = look.cap_color + (look.center_color - look.cap_color) * center
    ground = (ground + (look.margin_color - ground) * rim) * mottle[:, None]
    covering = _VEIL if skin.pale else ground * np.float32(skin.cover_factor)
    color[on] = ground + (covering - ground) * cover[:, None]
    # The relief lies in the frame of the skin; it is turned back with the mushroom.
    normal[0, on] -= relief[0] * cos + relief[1] * sin
    normal[2, on] -= relief[1] * cos - relief[0] * sin
    shine[on] = np.float32(look.gloss) * (1 - np.float32(0.8) * cover)
    on = hits.part == UNDERSIDE
    pattern = underside_pattern(look, x[on], z[on], hits.rho[on], pose.scale * shape.radius)
    color[on] = look.underside_color * pattern[:, None]
    on = hits.part == STEM
    streaks = 1 + np.float32(0.10) * np.sin(np.arctan2(z[on], x[on]) * 9 + 2 * hits.y[on]) * np.sin(hits.y[on] * 5)
    height = np.clip(hits.y[on] / np.float32(shape.collar), 0, 1)
    color[on] = look.stem_color * (streaks * (np.float32(0.78) + np.float32(0.22) * height))[:, None]
    if look.base == "volva":
        sheath = (hits.part == STEM) & (hits.y < 0.22 * shape.collar + 0.1)
        color[sheath] = _VEIL * np.float32(0.9)
    on = hits.part == RING
    pleats = 1 + np.float32(0.12) * np.sin(np.arctan2(z[on], x[on]) * 22)
    color[on] = (_VEIL * np.float32(0.5) + look.stem_color * np.float32(0.5)) * pleats[:, None]
    normal /= np.sqrt((normal**2).sum(axis=0))
    return color, normal, shine


def _lit(shape: Shape, hits: Hits, albedo: Array, normal: Array, shine: Array, light: Light, pose: Pose) -> Array:
    """Returns the light that comes back from the hits, (n, 3) and linear."""
    toward_light = _into_mushroom_frame(np.array(light.direction), pose)
    toward_eye = _into_mushroom_frame(np.array([0.0, 0.0, 1.0]), pose)
    upward = _into_mushroom_frame(np.array([0.0, 1.0, 0.25]), pose)
    facing = toward_light @ normal
    wrap = np.float32(0.12 + 0.3 * light.softness)
    direct = np.clip((facing + wrap) / (1 + wrap), 0, 1) * _cap_shadow(shape, hits, toward_light, light.softness)
    ambient = np.float32(0.55) + np.float32(0.45) * (upward @ normal)
    ambient *= _openness(shape, hits)
    halfway = toward_light + toward_eye
    halfway /= np.sqrt((halfway**2).sum())
    glint = np.clip(halfway @ normal, 0, 1) ** (12 + 45 * shine)
    edge = (1 - np.clip(toward_eye @ normal, 0, 1)) ** 3
    lit = albedo * (direct[:, None] * light.sun + ambient[:, None] * light.sky)
    lit += ((shine * (np.float32(0.08) + np.float32(0.6) * shine) * glint)[:, None]) * light.sun
    lit += (edge * ambient * np.float32(0.10))[:, None] * light.sky
    result: Array = lit.astype(np.float32)
    return result


def _into_mushroom_frame(vector: NDArray[np.float64], pose: Pose) -> Array:
    """Returns a unit vector of the camera's frame as the mushroom sees it."""
    x, y, z = vector / np.sqrt((vector**2).sum())
    across = x * np.cos(pose.roll) + y * np.sin(pose.roll)
    up = y * np.cos(pose.roll) - x * np.sin(pose.roll)
    sin, cos = np.sin(pose.pitch), np.cos(pose.pitch)
    return np.array([across, up * cos + z * sin, z * cos - up * sin], dtype=np.float32)


def _cap_shadow(shape: Shape, hits: Hits, toward_light: Array, softness: float) -> Array:
    """Returns how much direct light passes the cap: less on the stem below it."""
    shadow = np.ones(len(hits.rays), dtype=np.float32)
    below = hits.part >= STEM
    steep = max(float(toward_light[1]), 0.08)
    rise = np.maximum(np.float32(shape.collar) - hits.y[below], 0) / np.float32(steep)
    away = np.hypot(hits.x[below] + rise * toward_light[0], hits.z[below] + rise * toward_light[2])
    width = np.float32(shape.radius * (0.15 + 0.5 * softness))
    shadow[below] = np.float32(0.12) + np.float32(0.88) * np.clip(
        (away - np.float32(shape.radius) + width / 2) / width, 0, 1
    )
    if toward_light[1] > 0:
        shadow[hits.part == UNDERSIDE] *= np.float32(0.45)
    return shadow


def _openness(shape: Shape, hits: Hits) -> Array:
    """Returns how much of the sky is open: less under the cap, less near the ground."""
    under_cap = np.clip((np.float32(shape.collar) - hits.y) / np.float32(0.9 * shape.radius), 0, 1)
    near_ground = np.clip(hits.y / np.float32(0.25 * shape.collar), 0, 1)
    openness = np.where(hits.part >= STEM, np.float32(0.6) + np.float32(0.4) * under_cap, np.float32(1))
    openness = openness * (np.float32(0.6) + np.float32(0.4) * near_ground)
    inner = np.float32(0.85) + np.float32(0.3) * np.clip(hits.rho, 0, 1)
    return np.where(hits.part == UNDERSIDE, inner, openness).astype(np.float32)


__all__ = ["Light", "Portrait", "Pose", "extent", "portray", "shape_of"]
