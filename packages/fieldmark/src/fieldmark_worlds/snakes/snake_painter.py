"""Photos of snakes, painted from the traits of a specimen and from nothing else that has to do with its species.

Pose, distance, ground, light and camera are drawn from the generator that is handed over. Workers import this module
afresh, so it imports no table library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fieldmark.work.blocks import Executor, all_cores, blocks_of, map_blocks
from fieldmark.work.progress import progress
from fieldmark_worlds.nature.kingdom import Floats, Specimen
from fieldmark_worlds.scenery.backdrop import backdrop, draw_setting
from fieldmark_worlds.scenery.camera import Camera, develop
from fieldmark_worlds.scenery.light import Light, draw_light
from fieldmark_worlds.scenery.noise import Array
from fieldmark_worlds.snakes.snake_looks import SnakeLook, snake_look_of

JPEG_QUALITY, PHOTOS_PER_BLOCK = 90, 16
# The canvas is larger than the photo, so that edges come out smooth.
_CANVAS_PER_PIXEL = 4 / 3
_STEPS = 220
# How much of the photo the snake fills, by its longer side: people stand close by or far away.
_CLOSE, _FAR = 0.95, 0.4


class PixelExtent(NamedTuple):
    """The box around a snake in pixels of the photo: its upper left corner, and its size."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class SnakePhotoJob:
    """One photo to paint. It does not know its species; the name of its file is not looked at.

    Attributes:
        file: Where it goes, relative to the root of the release.
        specimen: Traits by name.
        seed: Seed of the world.
        number: Number of the photo.
    """

    file: str
    specimen: Specimen
    seed: int
    number: int

    def rng(self) -> np.random.Generator:
        """The chance in this photo, which belongs to it alone."""
        return np.random.default_rng(np.random.SeedSequence([self.seed, 783, self.number]))


def paint_snakes(
    root: Path, jobs: Sequence[SnakePhotoJob], size_px: int, executor: Executor | None = None
) -> list[PixelExtent]:
    """Paints photos into files below `root`, on all cores unless an executor is given, and returns their boxes."""
    for folder in sorted({(root / job.file).parent for job in jobs}):
        folder.mkdir(parents=True, exist_ok=True)
    boxes: list[PixelExtent] = []
    with progress("painting photos", len(jobs)) as tick:
        block = partial(_paint_block, root, size_px)
        for painted in map_blocks(block, blocks_of(jobs, PHOTOS_PER_BLOCK), executor or all_cores()):
            boxes += painted
            tick(len(painted))
    return boxes


def _paint_block(root: Path, size_px: int, jobs: Sequence[SnakePhotoJob]) -> list[PixelExtent]:
    boxes = []
    for job in jobs:
        photo, mask = paint_snake(job.specimen, job.rng(), size_px)
        photo.save(root / job.file, quality=JPEG_QUALITY)
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        corner = int(columns[0]), int(rows[0])
        boxes.append(PixelExtent(*corner, int(columns[-1]) + 1 - corner[0], int(rows[-1]) + 1 - corner[1]))
    return boxes


def paint_snake(
    specimen: Specimen, rng: np.random.Generator, size_px: int = 192
) -> tuple[Image.Image, NDArray[np.bool_]]:
    """Paints one photo of a specimen, and returns which pixels show the snake.

    Args:
        specimen: Its traits by name; anything else in it is ignored.
        rng: Chance in pose, distance, ground, light and camera.
        size_px: Width and height of the photo.
    """
    look = snake_look_of(specimen)
    side = round(size_px * _CANVAS_PER_PIXEL)
    camera = Camera(float(rng.gamma(2.0, 0.18)), float(rng.uniform(0.004, 0.02)), float(rng.normal(0, 0.03)))
    light = draw_light(rng)
    setting = draw_setting(rng, foot_row=0.7, steepness=float(rng.uniform(0.5, 0.95)))
    canvas = backdrop(setting, side, rng)
    canvas *= (light.sky + light.sun * np.float32(0.55)) * np.float32(1.15)
    line, scale = _pose(look, side, rng)
    along, across = _trace(line, _radii(look, len(line)) * scale, side)
    seen = np.isfinite(along)
    _cast_shadow(canvas, seen, light)
    # How much chance a skin uses up depends on the traits. Its own generator keeps that from what comes after it.
    skin_rng = np.random.default_rng(int(rng.integers(2**62)))
    canvas[seen] = _skin(look, along[seen], across[seen], light, skin_rng)
    _draw_eyes(canvas, line, look, scale)
    photo = develop(canvas, size_px, camera, rng)
    small = Image.fromarray(seen).resize((size_px, size_px), Image.Resampling.NEAREST)
    return photo, np.asarray(small, dtype=np.bool_)


def _pose(look: SnakeLook, side: int, rng: np.random.Generator) -> tuple[Floats, float]:
    """The middle line of the body from tail to head in pixels (points, 2), and its length in pixels."""
    s = np.linspace(0, 1, _STEPS)
    if rng.random() < 0.3:  # coiled up
        bend = rng.choice([-1, 1]) * (rng.uniform(9, 15) + 5 * s)
    else:
        waves = rng.uniform(1.0, 2.6)
        bend = rng.uniform(4, 11) * np.sin(2 * np.pi * waves * s + rng.uniform(0, 6.28)) + rng.normal(0, 1.5)
    heading = np.cumsum(bend) / _STEPS + rng.uniform(0, 6.28)
    line = np.cumsum(np.column_stack([np.cos(heading), 0.75 * np.sin(heading)]), axis=0) / _STEPS
    low, high = line.min(axis=0), line.max(axis=0)
    widest = float((high - low).max()) + 2 * look.radius
    extent = side * float(rng.uniform(_FAR, _CLOSE))
    scale = extent / widest
    half = (high - low) * scale / 2 + look.radius * scale
    room = np.maximum(side / 2 - half, 0.0)
    center = side / 2 + rng.uniform(-1, 1, 2) * room * 0.8
    placed: Floats = (line - (low + high) / 2) * scale + center
    return placed, scale


def _radii(look: SnakeLook, points: int) -> Floats:
    """Half the thickness along the body, tail first, as shares of its length; the head is broader than the neck."""
    s = np.linspace(0, 1, points)
    tail = np.clip(s / (1 - look.taper + 0.25), 0, 1) ** 0.7
    neck = 1 - 0.4 * np.clip((s - 0.86) / 0.08, 0, 1)
    body = look.radius * np.maximum(tail * neck, 0.12)
    length = look.head_length * look.radius * 0.6
    start = 1 - 2.2 * length
    place = np.clip((s - start) / max(1 - start, 1e-6), 0, 1)
    shape = np.sin(np.pi * np.clip(place * 0.86 + 0.1, 0, 1)) ** 0.7
    head = 0.6 * look.radius * look.head_width * shape * (place > 0)
    radii: Floats = np.maximum(body * (1 - 0.55 * (place > 0.6)), head)
    return radii


def _trace(line: Floats, radii: Floats, side: int) -> tuple[Array, Array]:
    """For each pixel where it lies along the body (0 tail, 1 head) and across it (-1 to 1); NaN where there is none.

    The body is painted from tail to head, so that the head lies on top of any coil.
    """
    along = np.full((side, side), np.nan, dtype=np.float32)
    across = np.zeros((side, side), dtype=np.float32)
    tangent = np.gradient(line, axis=0)
    tangent /= np.maximum(np.linalg.norm(tangent, axis=1, keepdims=True), 1e-9)
    step = float(np.linalg.norm(np.diff(line, axis=0), axis=1).max())
    for number, ((x, y), (tx, ty), radius) in enumerate(zip(line, tangent, radii, strict=True)):
        reach = max(float(radius), 0.8)
        left, right = max(int(x - reach - 1), 0), min(int(x + reach + 2), side)
        top, bottom = max(int(y - reach - 1), 0), min(int(y + reach + 2), side)
        if left >= right or top >= bottom:
            continue
        dx = np.arange(left, right, dtype=np.float32)[None, :] - np.float32(x)
        dy = np.arange(top, bottom, dtype=np.float32)[:, None] - np.float32(y)
        forward, sideways = dx * np.float32(tx) + dy * np.float32(ty), dx * np.float32(-ty) + dy * np.float32(tx)
        thick = np.float32(1.6 * step + 0.35 * reach)
        inside = (np.abs(forward) <= thick) & (forward**2 + sideways**2 <= np.float32(reach**2))
        along[top:bottom, left:right][inside] = number / (len(line) - 1)
        across[top:bottom, left:right][inside] = (sideways / np.float32(reach))[inside]
    return along, across


def _skin(look: SnakeLook, along: Array, across: Array, light: Light, rng: np.random.Generator) -> Array:
    """The color of the pixels of the body under the light of the scene."""
    drawn = (_pattern(look, along, across, float(rng.uniform(0, 6.28))) * np.float32(look.contrast))[:, None]
    color = look.body_color + (look.pattern_color - look.body_color) * drawn
    if look.pattern == "rings":  # a third, pale color beside each ring
        pale = _wave(look.repeats * along, 0.5) > 0.93
        color = np.where(pale[:, None], look.belly_color, color)
    below = np.clip((np.abs(across) - np.float32(0.72)) / np.float32(0.2), 0, 1)[:, None]
    color = np.asarray(color + (look.belly_color - color) * (below * np.float32(0.8)), dtype=np.float32)
    scales = 1 + np.float32(0.1) * np.sin(look.scales * 6.28 * along) * np.cos(9 * across)
    color = color * (scales * (1 + np.float32(0.05) * rng.standard_normal(len(along)).astype(np.float32)))[:, None]
    height = np.sqrt(np.clip(1 - across**2, 0, 1))
    lit = np.clip(0.35 + 0.75 * height, 0, 1.1)[:, None]
    shine = np.float32(look.gloss) * (np.clip(height - 0.93, 0, 1) * 8)[:, None] * np.float32(0.25)
    return np.asarray(color * (light.sky + light.sun * lit) + shine * light.sun, dtype=np.float32)


def _pattern(look: SnakeLook, along: Array, across: Array, phase: float) -> Array:
    """How much of the second color each pixel has, 0 to 1."""
    turns = look.repeats * along + np.float32(phase)
    side = np.abs(across)
    if look.pattern == "plain":
        drawn = np.zeros_like(along)
    elif look.pattern in ("bands", "rings"):
        drawn = _wave(turns, look.filled)
    elif look.pattern == "stripes":
        drawn = (np.abs(side - 0.45) < 0.5 * look.filled * 0.6).astype(np.float32)
    elif look.pattern == "blotches":
        drawn = _wave(turns, look.filled) * (side < 0.62)
    else:  # zigzag along the back
        tooth = 2 * np.abs((turns / 2) % 1 - 0.5) - 0.5
        drawn = (np.abs(across - tooth) < 0.8 * look.filled).astype(np.float32)
    return np.asarray(drawn, dtype=np.float32)


def _wave(turns: Array, filled: float) -> Array:
    """1 for a share of each turn, 0 for the rest, with soft edges."""
    inside = filled / 2 - np.abs(turns % 1 - 0.5)
    return np.asarray(np.clip(inside / 0.06 + 0.5, 0, 1), dtype=np.float32)


def _cast_shadow(canvas: Array, seen: NDArray[np.bool_], light: Light) -> None:
    """Darkens the ground beside the body, away from the light."""
    side = len(seen)
    aside, below = round(-light.direction[0] * 0.02 * side), round(0.015 * side)
    shadow = np.roll(seen, (below, aside), axis=(0, 1)) & ~seen
    canvas[shadow] *= np.float32(0.45 + 0.35 * light.softness)


def _draw_eyes(canvas: Array, line: Floats, look: SnakeLook, scale: float) -> None:
    """A dark dot at each side of the head, where the head is large enough to show one."""
    at = line[-max(2, len(line) // 60)]
    forward = line[-1] - at
    length = float(np.linalg.norm(forward))
    width = 0.6 * look.radius * look.head_width * scale
    if length < 1e-6 or width < 3:
        return
    sideways = np.array([-forward[1], forward[0]]) / length
    for sign in (-1, 1):
        column, row = (at + sign * 0.55 * width * sideways).astype(int)
        reach = max(1, int(width / 7))
        canvas[max(row - reach, 0) : row + reach, max(column - reach, 0) : column + reach] = np.float32(0.01)
