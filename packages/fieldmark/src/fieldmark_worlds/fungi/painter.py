"""Photos of mushrooms, painted from the traits of a specimen and from nothing else that has to do with its species.

Pose, company, ground, light and camera are drawn from the generator that is handed over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fieldmark_worlds.fungi.looks import Look, look_of
from fieldmark_worlds.fungi.portrait import Pose, extent, portray
from fieldmark_worlds.fungi.shape import CAP, RING, STEM, UNDERSIDE, Array, Shape, shape_of
from fieldmark_worlds.nature.kingdom import Specimen
from fieldmark_worlds.scenery.backdrop import SceneGeometry, backdrop, draw_setting, foreground
from fieldmark_worlds.scenery.camera import Camera, develop
from fieldmark_worlds.scenery.light import Light, draw_light

BODY_PARTS = ("cap", "gills", "pores", "stem", "ring")

# The canvas is larger than the photo, so that edges come out smooth.
_CANVAS_PER_PIXEL = 4 / 3


@dataclass(frozen=True)
class _View:
    """One of the ways in which people photograph mushrooms: ranges of pitch and roll, radians."""

    name: str
    share: float
    pitch: tuple[float, float]
    roll: tuple[float, float]
    picked: bool = False


_VIEWS = (
    _View("side", 0.46, (0.02, 0.2), (-0.08, 0.08)),
    _View("slightly above", 0.34, (0.25, 0.55), (-0.08, 0.08)),
    _View("slightly below", 0.10, (-0.4, -0.1), (-0.08, 0.08)),
    _View("top", 0.04, (1.0, 1.35), (-0.1, 0.1)),
    _View("picked", 0.06, (-0.75, -0.15), (0.7, 2.0), picked=True),
)


def paint(
    specimen: Specimen, rng: np.random.Generator, size_px: int = 192, *, camera: Camera | None = None
) -> Image.Image:
    """Paints one photo of a specimen.

    Args:
        specimen: Its traits by name; anything else in it is ignored.
        rng: Chance in pose, company, ground and light.
        size_px: Width and height of the photo.
        camera: What the photo is taken with.
    """
    return paint_with_parts(specimen, rng, size_px, camera=camera)[0]


def paint_with_parts(
    specimen: Specimen, rng: np.random.Generator, size_px: int = 192, *, camera: Camera | None = None
) -> tuple[Image.Image, dict[str, NDArray[np.bool_]]]:
    """Paints the same photo as `paint`, and returns which pixels show which part.

    Returns:
        The photo, and for each of `BODY_PARTS` a (size, size) mask. Masks do not overlap. Teeth and ridges count as
        gills; blades of grass before the mushroom are not cut out.
    """
    look = look_of(specimen)
    side = round(size_px * _CANVAS_PER_PIXEL)
    view = _VIEWS[int(rng.choice(len(_VIEWS), p=[v.share for v in _VIEWS]))]
    light = draw_light(rng)
    group = _compose(look, view, side, rng)
    main = group[-1][1]
    steepness = 0.9 if view.picked else float(np.sin(main.pitch))
    setting = draw_setting(rng, foot_row=0.7 if view.picked else main.foot[1] / side, steepness=steepness)
    canvas = backdrop(setting, side, rng)
    canvas *= (light.sky + light.sun * np.float32(0.55)) * np.float32(1.15)
    parts = np.zeros((side, side), dtype=np.int8)
    for shape, pose in group:
        _cast_shadow(canvas, shape, pose, light, picked=view.picked)
    for shape, pose in group:
        # How much chance a skin uses up depends on the traits. Its own generator keeps that from what comes after it.
        skin_rng = np.random.default_rng(int(rng.integers(2**62)))
        portrait = portray(look, shape, pose, light, side, skin_rng)
        canvas.reshape(-1, 3)[portrait.pixels] = portrait.colors
        parts.reshape(-1)[portrait.pixels] = portrait.parts
    if not view.picked and view.name != "top":
        _plant(canvas, setting, group, light, rng)
    photo = develop(canvas, size_px, camera or Camera(), rng)
    return photo, _masks(parts, look, size_px)


def _compose(look: Look, view: _View, side: int, rng: np.random.Generator) -> list[tuple[Shape, Pose]]:
    """Returns the mushrooms of the photo, far ones first and the one it is about last."""
    pitch = float(rng.uniform(*view.pitch))
    roll = float(rng.uniform(*view.roll)) * (float(rng.choice([-1, 1])) if view.picked else 1.0)
    shape = shape_of(look, rng)
    left, right, bottom, top = extent(shape, pitch, roll)
    scale = side * float(rng.uniform(0.66, 0.86)) / max(right - left, top - bottom)
    drift_x, drift_y = rng.normal(0, 0.035, 2) * side
    column = side / 2 + drift_x - scale * (left + right) / 2
    # Standing ones keep some ground below them.
    row = side * (0.5 if view.picked or view.name == "top" else 0.52) + drift_y + scale * (bottom + top) / 2
    row = min(row, 0.93 * side) if not view.picked else row
    main = (shape, Pose(pitch, roll, float(rng.uniform(0, 6.28)), (column, row), scale))
    company = 0 if view.name == "top" or rng.random() > 0.22 else int(rng.integers(1, 3))
    others = []
    for _ in range(company):
        other = shape_of(look, rng)
        away = float(rng.uniform(0.25, 0.42)) * side * float(rng.choice([-1, 1]))
        smaller = scale * float(rng.uniform(0.5, 0.85))
        foot = (column + away, row - float(rng.uniform(-0.02, 0.05)) * side)
        turned = roll + float(rng.normal(0, 0.12)) if not view.picked else roll + float(rng.normal(0, 0.5))
        others.append((other, Pose(pitch, turned, float(rng.uniform(0, 6.28)), foot, smaller)))
    return [*sorted(others, key=lambda pair: pair[1].foot[1]), main]


def _cast_shadow(canvas: Array, shape: Shape, pose: Pose, light: Light, *, picked: bool) -> None:
    """Darkens the ground where the mushroom keeps the light off: under its foot, and where its cap's shadow falls."""
    side = len(canvas)
    rows, columns = np.ogrid[:side, :side]
    strength = np.float32(0.75 - 0.4 * light.softness)
    for x, y, half_width, half_height in _shaded_spots(shape, pose, light, picked=picked):
        across = (columns - np.float32(x)) * np.float32(1 / half_width)
        down = (rows - np.float32(y)) * np.float32(1 / half_height)
        shade = 1 - strength * np.clip(np.float32(1.5) - across**2 - down**2, 0, 1) ** 2
        canvas *= shade.astype(np.float32)[..., None]


def _shaded_spots(shape: Shape, pose: Pose, light: Light, *, picked: bool) -> list[tuple[float, float, float, float]]:
    """Returns the ellipses of shade on the ground: column, row, half width and half height, in pixels."""
    column, row = pose.foot
    if picked:
        left, right, bottom, top = (end * pose.scale for end in extent(shape, pose.pitch, pose.roll))
        aside = 0.06 * (right - left)
        center = (column + (left + right) / 2 - light.direction[0] * aside, row - (bottom + top) / 2 + aside)
        return [(*center, (right - left) / 2, (top - bottom) / 2)]
    flat = max(float(np.sin(pose.pitch)), 0.12)
    fall = 0.6 * shape.collar / max(light.direction[1], 0.35) * pose.scale
    reach = shape.radius * pose.scale
    foot = 1.7 * float(shape.stem[:120].max()) * pose.scale
    return [
        (column, row, foot, foot * max(flat, 0.3)),
        (column - light.direction[0] * fall, row + 0.3 * light.direction[2] * fall * flat, reach, reach * flat),
    ]


def _plant(
    canvas: Array, setting: SceneGeometry, group: list[tuple[Shape, Pose]], light: Light, rng: np.random.Generator
) -> None:
    """Lets the ground grow over the feet, so that mushrooms stand in it and not on it."""
    side = len(canvas)
    brightness = (light.sky + light.sun * np.float32(0.55)) * np.float32(1.15)
    for shape, pose in group:
        width = 1.2 * float(shape.stem[:120].max()) * pose.scale
        grown = foreground(setting, pose.foot, width, side, rng)
        box = grown.getbbox()
        if box is None:
            continue
        left, upper, right, lower = box
        layer = np.asarray(grown.crop(box), dtype=np.float32) * np.float32(1 / 255)
        behind = canvas[upper:lower, left:right]
        behind += (layer[..., :3] ** 2 * brightness - behind) * layer[..., 3:]


def _masks(parts: NDArray[np.int8], look: Look, size_px: int) -> dict[str, NDArray[np.bool_]]:
    small = np.asarray(Image.fromarray(parts.view(np.uint8)).resize((size_px, size_px), Image.Resampling.NEAREST))
    pores = look.underside == "pores"
    empty = np.zeros_like(small, dtype=np.bool_)
    underside = small == UNDERSIDE
    return {
        "cap": small == CAP,
        "gills": empty if pores else underside,
        "pores": underside if pores else empty,
        "stem": small == STEM,
        "ring": small == RING,
    }
