"""Photos through a microscope: spores on a bright field, drawn from the traits of the specimen and from nothing else.

Workers import this module afresh, so it imports no table library.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from fieldmark_worlds.fungi.looks import look_of
from fieldmark_worlds.nature.kingdom import Specimen
from fieldmark_worlds.scenery.camera import Camera

_OVERSAMPLED = 2
_FIELD = np.array([232, 234, 224], dtype=np.float32)


def paint_spores(
    specimen: Specimen, rng: np.random.Generator, size_px: int, *, camera: Camera | None = None
) -> tuple[Image.Image, NDArray[np.bool_]]:
    """Paints spores: as dark as the underside they fall from, slender if it is crowded, large if the stem is broad.

    Args:
        specimen: Its traits by name.
        rng: Chance in where the spores lie and in the light.
        size_px: Width and height of the photo.
        camera: What the photo is taken with.

    Returns:
        The photo, and which of its pixels show a spore.
    """
    look, camera = look_of(specimen), camera or Camera()
    side = size_px * _OVERSAMPLED
    pigment = np.sqrt(look.underside_color) * 255
    wall = tuple(int(value) for value in 0.45 * pigment)
    body = tuple(int(value) for value in 0.35 * _FIELD + 0.6 * pigment)
    length = side * (0.045 + 0.05 * min(look.stem_radius / 0.4, 1.0))
    slender = 1.0 + 1.1 * (1 - look.underside_spacing)
    light = _field(side, rng)
    spores, mask = Image.new("RGBA", (side, side)), Image.new("L", (side, side))
    for x, y, turn, scale in _places(side, length, rng):
        outline = _ellipse(x, y, length * scale, length * scale / slender, turn)
        ImageDraw.Draw(spores).polygon(outline, fill=(*body, 215), outline=(*wall, 255), width=max(2, side // 160))
        ImageDraw.Draw(mask).polygon(outline, fill=255)
        drop = _ellipse(x, y, length * scale * 0.32, length * scale * 0.32 / slender, turn)
        ImageDraw.Draw(spores).polygon(drop, fill=(*(min(255, value + 45) for value in body), 200))
    photo = Image.alpha_composite(light.convert("RGBA"), spores.filter(ImageFilter.GaussianBlur(side / 300)))
    photo = photo.convert("RGB").resize((size_px, size_px), Image.Resampling.BOX)
    photo = photo.filter(ImageFilter.GaussianBlur(camera.blur_px * size_px / 192))
    grain = rng.standard_normal((size_px, size_px, 3), dtype=np.float32) * np.float32(255 * camera.noise)
    pixels = np.clip(np.asarray(photo, dtype=np.float32) * np.float32(camera.exposure) + grain, 0, 255)
    shown = np.asarray(mask.resize((size_px, size_px), Image.Resampling.NEAREST)) > 0
    return Image.fromarray(pixels.astype(np.uint8)), shown


def _field(side: int, rng: np.random.Generator) -> Image.Image:
    """Returns the bright field, a little darker toward its edge and to one side."""
    axis = np.linspace(-1, 1, side, dtype=np.float32)
    tilt = rng.normal(0, 0.03, 2).astype(np.float32)
    shade = 1 - np.float32(0.12) * (axis[:, None] ** 2 + axis**2) + tilt[0] * axis[:, None] + tilt[1] * axis
    tint = _FIELD * rng.uniform(0.92, 1.03) * rng.normal(1, 0.02, 3).astype(np.float32)
    return Image.fromarray(np.clip(shade[..., None] * tint, 0, 255).astype(np.uint8))


def _places(side: int, length: float, rng: np.random.Generator) -> list[tuple[float, float, float, float]]:
    """Returns column, row, direction and relative size of spores, hardly any of which overlap."""
    wanted = int(rng.integers(9, 26))
    places: list[tuple[float, float, float, float]] = []
    for _ in range(4 * wanted):
        x, y = rng.uniform(0.05, 0.95, 2) * side
        if all(np.hypot(x - px, y - py) > 1.9 * length for px, py, _, _ in places):
            places.append((float(x), float(y), float(rng.uniform(0, np.pi)), float(rng.uniform(0.88, 1.1))))
        if len(places) == wanted:
            break
    return places


def _ellipse(x: float, y: float, half_length: float, half_width: float, turn: float) -> list[tuple[float, float]]:
    angle = np.linspace(0, 2 * np.pi, 28, endpoint=False)
    along, aside = half_length * np.cos(angle), half_width * np.sin(angle)
    columns = x + along * np.cos(turn) - aside * np.sin(turn)
    rows = y + along * np.sin(turn) + aside * np.cos(turn)
    return list(zip(columns.tolist(), rows.tolist(), strict=True))
