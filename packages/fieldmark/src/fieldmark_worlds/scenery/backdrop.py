"""Where a mushroom is photographed: blurred woods behind, ground below, blades and leaves in front.

None of it depends on the species or on the habitat that was noted: it is chance, as far as the species is concerned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from fieldmark_worlds.scenery.noise import Array, cloud

Rgb = tuple[int, int, int]

# Colors of what is far behind: (dark, bright) pairs as sRGB.
_DISTANCES: tuple[tuple[Rgb, Rgb], ...] = (
    ((30, 38, 24), (126, 142, 84)),
    ((36, 34, 22), (150, 130, 78)),
    ((22, 28, 24), (92, 108, 92)),
    ((44, 48, 32), (186, 186, 132)),
    ((30, 24, 18), (112, 84, 56)),
    ((44, 54, 58), (168, 182, 184)),
)
_LEAF_COLORS: tuple[Rgb, ...] = (
    (116, 78, 46),
    (134, 94, 54),
    (96, 66, 44),
    (152, 118, 72),
    (84, 62, 46),
    (128, 108, 84),
)
_GROUND_KINDS = ("soil", "moss", "litter", "grass", "wood", "needles")


@dataclass(frozen=True)
class SceneGeometry:
    """How ground and distance lie in the picture.

    Attributes:
        kind: What the ground is made of.
        horizon: Row at which the ground ends, as a share of the height; below 0 it fills the picture.
        foot_row: Row of the foot of the mushroom, as a share of the height: there the ground is sharp.
        steepness: 0 for a camera on the ground, 1 for one that looks straight down.
    """

    kind: str
    horizon: float
    foot_row: float
    steepness: float


def draw_setting(rng: np.random.Generator, *, foot_row: float, steepness: float) -> SceneGeometry:
    """Draws the ground; the flatter the view, the closer the horizon comes to the foot."""
    kind = str(rng.choice(_GROUND_KINDS, p=(0.15, 0.22, 0.27, 0.14, 0.1, 0.12)))
    horizon = foot_row - 0.06 - 1.5 * max(steepness, 0.0) - rng.uniform(0, 0.12)
    return SceneGeometry(kind, horizon, foot_row, steepness)


def backdrop(setting: SceneGeometry, side: int, rng: np.random.Generator) -> Array:
    """Returns ground and distance as a (side, side, 3) picture in linear light."""
    ground = _ground(setting, side, rng)
    rows = (np.arange(side, dtype=np.float32) / side)[:, None]
    # Only ground as far away as the mushroom is sharp.
    away = np.abs(rows - np.float32(setting.foot_row)) / np.float32(0.22 + 0.9 * setting.steepness)
    sharp = np.clip(1.25 - away, 0, 1)[..., None]
    softer = _small_blur(ground, side, 0.02)
    picture = np.asarray(softer + (np.asarray(ground) - softer) * sharp, dtype=np.float32)
    if setting.horizon > 0.0:
        far = np.asarray(_distance(side, rng), dtype=np.float32)
        edge = np.float32(setting.horizon) + np.float32(0.03) * cloud(rng, side, 7)[:1].repeat(side, 0)
        share = np.clip((rows - edge) / np.float32(0.10) + np.float32(0.5), 0, 1)[..., None]
        picture = np.asarray(far + (picture - far) * (share * share * (3 - 2 * share)), dtype=np.float32)
    return np.asarray(np.square(picture * np.float32(1 / 255)), dtype=np.float32)


def foreground(
    setting: SceneGeometry, foot: tuple[float, float], width: float, side: int, rng: np.random.Generator
) -> Image.Image:
    """Returns what stands before the foot, as a picture with transparency.

    Args:
        setting: The ground it grows from.
        foot: (column, row) of the foot, pixels.
        width: How broad the foot is, pixels.
        side: Width of the canvas.
        rng: Chance.
    """
    layer = Image.new("RGBA", (side, side))
    draw = ImageDraw.Draw(layer)
    column, row = foot
    unit = side / 192
    if setting.kind in ("litter", "soil"):
        for _ in range(int(rng.integers(1, 4))):
            at = (column + rng.normal(0, 0.9) * width, row + rng.uniform(2, 7) * unit)
            _leaf(draw, at, rng.uniform(14, 24) * unit, rng.uniform(-0.5, 0.5), rng, squeeze=0.45)
    if setting.kind == "needles":
        _strokes(draw, rng, 26, (column, row + 3 * unit), (width * 1.2, 3 * unit), 9 * unit, (120, 84, 50), upright=0.1)
    if setting.kind in ("moss", "grass", "wood"):
        _strokes(draw, rng, 60, (column, row + 3 * unit), (width * 1.3, 2.5 * unit), 5 * unit, (98, 110, 54), upright=1)
    if setting.kind == "grass":
        _strokes(draw, rng, 9, (column, row + 6 * unit), (width * 2.2, 5 * unit), 30 * unit, (112, 128, 66), upright=1)
    return layer


def _distance(side: int, rng: np.random.Generator) -> Image.Image:
    """Returns woods far out of focus: trunks and glades as broad bands, light through leaves as discs."""
    small = max(side // 4, 24)
    dark, bright = _DISTANCES[int(rng.integers(len(_DISTANCES)))]
    tone = np.float32(0.38) + np.float32(0.2) * cloud(rng, small, 4) + np.float32(0.07) * cloud(rng, small, 9)
    tone = tone + np.float32(0.14) * rng.standard_normal((1, small // 6)).astype(np.float32).repeat(6, 1)[:, :1]
    tone = np.clip(tone + np.linspace(0.12, -0.12, small, dtype=np.float32)[:, None], 0, 1)[..., None]
    base = np.array(dark, np.float32) + (np.array(bright, np.float32) - np.array(dark, np.float32)) * tone
    picture = Image.fromarray(base.astype(np.uint8)).convert("RGB")
    draw = ImageDraw.Draw(picture, "RGBA")
    for _ in range(int(rng.integers(0, 3))):
        x, w = rng.uniform(0, small), rng.uniform(0.04, 0.12) * small
        draw.rectangle((x, 0, x + w, small), fill=(*dark, 150))
    for _ in range(int(rng.integers(0, 14))):
        x, y, r = rng.uniform(0, small), rng.uniform(0, 0.8 * small), rng.uniform(0.025, 0.07) * small
        glow = tuple(min(255, int(c * 1.15) + 20) for c in bright)
        draw.ellipse((x - r, y - r, x + r, y + r), fill=(*glow, int(rng.integers(30, 110))))
    picture = picture.filter(ImageFilter.GaussianBlur(small * rng.uniform(0.012, 0.03)))
    return picture.resize((side, side), Image.Resampling.BICUBIC)


def _small_blur(picture: Image.Image, side: int, share: float) -> Array:
    """Returns a strongly blurred copy, blurred at a quarter of the size because nobody can see the difference."""
    small = picture.resize((side // 4, side // 4), Image.Resampling.BOX)
    small = small.filter(ImageFilter.GaussianBlur(side / 4 * share))
    return np.asarray(small.resize((side, side), Image.Resampling.BICUBIC), dtype=np.float32)


def _ground(setting: SceneGeometry, side: int, rng: np.random.Generator) -> Image.Image:
    base, grain = _GROUND_TONES[setting.kind]
    rough = cloud(rng, side, 6) * np.float32(0.12) + cloud(rng, side, 28) * np.float32(0.10)
    if setting.kind == "wood":
        rough = rough + _bark(rng, side)
    rough = rough + rng.standard_normal((side, side), dtype=np.float32) * np.float32(grain)
    tint = (
        np.array(base, np.float32) * np.float32(rng.uniform(0.8, 1.15))
        + np.float32(rng.normal(0, 6))
        + rng.normal(0, 2, 3).astype(np.float32)
    )
    picture = Image.fromarray(np.clip(tint * (1 + rough[..., None]), 0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(picture)
    _GROUND_DRAWERS[setting.kind](draw, setting, side, rng)
    return picture


def _bark(rng: np.random.Generator, side: int) -> Array:
    """Returns the long furrows of a trunk that lies across the picture."""
    coarse = Image.fromarray(rng.standard_normal((30, 5)).astype(np.float32))
    furrows = np.asarray(coarse.resize((side, side), Image.Resampling.BICUBIC), dtype=np.float32)
    return np.where(furrows < -0.5, np.float32(-0.35), np.float32(0.12) * furrows).astype(np.float32)


def _depths(setting: SceneGeometry, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Returns rows (as shares of the height) from far to near, at which things lie on the ground."""
    return np.sort(rng.uniform(max(setting.horizon - 0.02, -0.05), 1.08, count))


def _scale_at(setting: SceneGeometry, row: float) -> float:
    """Returns how large things look at a row: the flatter the view, the faster they shrink with distance."""
    slant = 1.1 * (1 - min(max(setting.steepness, 0.0), 1.0))
    return float(np.clip(1 + slant * (row - setting.foot_row), 0.35, 1.6))


def _draw_litter(draw: ImageDraw.ImageDraw, setting: SceneGeometry, side: int, rng: np.random.Generator) -> None:
    squeeze = 0.4 + 0.6 * max(setting.steepness, 0.0)
    for row in _depths(setting, 80, rng):
        size = side * 0.13 * _scale_at(setting, row) * rng.uniform(0.7, 1.25)
        _leaf(draw, (rng.uniform(-0.05, 1.05) * side, row * side), size, rng.uniform(0, 6.3), rng, squeeze=squeeze)


def _draw_moss(draw: ImageDraw.ImageDraw, setting: SceneGeometry, side: int, rng: np.random.Generator) -> None:
    green = (rng.uniform(84, 128), rng.uniform(96, 128), rng.uniform(42, 64))
    for row in _depths(setting, 26, rng):
        size = side / 192 * _scale_at(setting, row)
        spot = (rng.uniform(0, 1) * side, row * side)
        _strokes(draw, rng, 34, spot, (22 * size, 6 * size), 4.5 * size, green, upright=0.7)


def _draw_grass(draw: ImageDraw.ImageDraw, setting: SceneGeometry, side: int, rng: np.random.Generator) -> None:
    green = (rng.uniform(88, 138), rng.uniform(106, 138), rng.uniform(52, 76))
    upright = 0.9 - 0.6 * max(setting.steepness, 0.0)
    for row in _depths(setting, 30, rng):
        size = side / 192 * _scale_at(setting, row)
        spot = (rng.uniform(0, 1) * side, row * side)
        _strokes(draw, rng, 14, spot, (30 * size, 5 * size), 24 * size, green, upright=upright)


def _draw_needles(draw: ImageDraw.ImageDraw, setting: SceneGeometry, side: int, rng: np.random.Generator) -> None:
    for row in _depths(setting, 32, rng):
        size = side / 192 * _scale_at(setting, row)
        spot = (rng.uniform(0, 1) * side, row * side)
        _strokes(draw, rng, 15, spot, (30 * size, 8 * size), 11 * size, (128, 88, 54), upright=0.0)


def _draw_soil(draw: ImageDraw.ImageDraw, setting: SceneGeometry, side: int, rng: np.random.Generator) -> None:
    for row in _depths(setting, 90, rng):
        size = side * 0.012 * _scale_at(setting, row) * rng.lognormal(0, 0.45)
        x, y = rng.uniform(0, 1) * side, row * side
        tone = rng.uniform(0.6, 1.45)
        draw.ellipse((x, y, x + 2 * size, y + 1.3 * size), fill=_shade((94, 76, 58), tone * 0.6))
        draw.ellipse((x, y, x + 1.7 * size, y + size), fill=_shade((94, 76, 58), tone))
    for row in _depths(setting, 4, rng):
        size = side * 0.07 * _scale_at(setting, row)
        _leaf(draw, (rng.uniform(0, 1) * side, row * side), size, rng.uniform(0, 6.3), rng, squeeze=0.5)


def _draw_wood(draw: ImageDraw.ImageDraw, setting: SceneGeometry, side: int, rng: np.random.Generator) -> None:
    for row in _depths(setting, 7, rng):
        size = side / 192 * _scale_at(setting, row)
        spot = (rng.uniform(0, 1) * side, row * side)
        _strokes(draw, rng, 36, spot, (16 * size, 4 * size), 4 * size, (96, 112, 52), upright=0.8)


_GROUND_TONES: dict[str, tuple[Rgb, float]] = {
    "soil": ((82, 66, 50), 0.16),
    "moss": ((56, 64, 32), 0.14),
    "litter": ((70, 50, 32), 0.08),
    "grass": ((64, 70, 42), 0.10),
    "wood": ((104, 86, 68), 0.09),
    "needles": ((84, 60, 40), 0.12),
}
_GROUND_DRAWERS: dict[str, Callable[[ImageDraw.ImageDraw, SceneGeometry, int, np.random.Generator], None]] = {
    "soil": _draw_soil,
    "moss": _draw_moss,
    "litter": _draw_litter,
    "grass": _draw_grass,
    "wood": _draw_wood,
    "needles": _draw_needles,
}


def _shade(color: tuple[float, float, float] | Rgb, factor: float) -> Rgb:
    red, green, blue = (int(min(255, max(0, c * factor))) for c in color)
    return red, green, blue


def _leaf(
    draw: ImageDraw.ImageDraw,
    at: tuple[float, float],
    size: float,
    angle: float,
    rng: np.random.Generator,
    *,
    squeeze: float,
) -> None:
    """Draws a fallen leaf with its shadow and its midrib, flattened as the ground is."""
    along = np.linspace(0, 1, 7)
    broad = 0.42 * np.sin(np.pi * along**0.8) * rng.uniform(0.7, 1.2)
    x = np.concatenate([along, along[::-1]]) - 0.5
    y = np.concatenate([broad, -broad[::-1]]) + 0.12 * np.sin(3 * np.concatenate([along, along[::-1]]))
    sin, cos = np.sin(angle), np.cos(angle)
    px, py = at[0] + size * (x * cos - y * sin), at[1] + size * squeeze * (x * sin + y * cos)
    color = _LEAF_COLORS[int(rng.integers(len(_LEAF_COLORS)))]
    tone = rng.uniform(0.65, 1.25)
    lower = size * 0.07
    draw.polygon(list(zip(px + lower * 0.6, py + lower, strict=True)), fill=_shade(color, 0.3))
    draw.polygon(list(zip(px, py, strict=True)), fill=_shade(color, tone))
    draw.line([(px[0], py[0]), (px[6], py[6])], fill=_shade(color, tone * 0.68), width=max(1, round(size / 22)))


def _strokes(
    draw: ImageDraw.ImageDraw,
    rng: np.random.Generator,
    count: int,
    center: tuple[float, float],
    spread: tuple[float, float],
    length: float,
    color: tuple[float, float, float],
    *,
    upright: float,
) -> None:
    """Draws blades, shoots or needles: thin strokes about a center, standing (upright 1) or lying about (0)."""
    x = center[0] + rng.normal(0, spread[0], count)
    y = np.sort(center[1] + rng.normal(0, spread[1], count))
    long = length * rng.uniform(0.5, 1.3, count)
    angle = np.where(rng.random(count) < upright, rng.normal(-np.pi / 2, 0.4, count), rng.uniform(0, 2 * np.pi, count))
    end_x, end_y = x + long * np.cos(angle), y + long * np.sin(angle) * (0.5 + 0.5 * upright)
    tones = np.clip(rng.uniform(0.55, 1.35, (count, 1)) * np.array(color), 0, 255).astype(int).tolist()
    ends = np.column_stack([x, y, end_x, end_y]).tolist()
    width = max(1, round(length / 9))
    for line, tone in zip(ends, tones, strict=True):
        draw.line(line, fill=tuple(tone), width=width)
