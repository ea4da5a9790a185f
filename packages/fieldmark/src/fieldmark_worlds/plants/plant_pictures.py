"""Pictures of plants, painted from the traits of an individual: photos in the field and herbarium sheets.

Everything that has nothing to do with the species (pose, ground, light, paper, label, camera) is drawn from the
generator that is handed over. Workers import this module afresh, so it imports no table library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from fieldmark.work.blocks import Executor, all_cores, blocks_of, map_blocks
from fieldmark.work.progress import progress
from fieldmark_worlds.nature.kingdom import Specimen
from fieldmark_worlds.plants.branches import Branch, Points, grow_branch
from fieldmark_worlds.plants.plant_looks import Color, PlantLook, look_of_plant, mixed
from fieldmark_worlds.scenery.backdrop import backdrop, draw_setting

Domain = Literal["herbarium", "photo"]
JPEG_QUALITY = 90
PICTURES_PER_BLOCK = 16
PHOTO_PX, SHEET_PX = (192, 192), (160, 240)
# The canvas is larger than the picture, so that edges come out smooth.
OVERSAMPLED = 2
PAPER: Color = (0.93, 0.9, 0.82)
INK: Color = (0.25, 0.22, 0.2)
# What share of field photos shows the branch, its leaves or its flowers.
FRAMINGS = (("branch", 0.5), ("leaves", 0.25), ("flowers", 0.25))


@dataclass(frozen=True)
class PictureJob:
    """One picture to paint. It does not know its species.

    Attributes:
        file: Where it goes, relative to the root of the release.
        specimen: Traits by name.
        domain: Whether the plant is pressed or alive.
        seed: Seed of the world.
        observation: Number of the observation.
        picture: Which picture of the observation it is.
    """

    file: str
    specimen: Specimen
    domain: Domain
    seed: int
    observation: int
    picture: int


def paint_pictures(root: Path, jobs: Sequence[PictureJob], executor: Executor | None = None) -> None:
    """Paints pictures into files below `root`, on all cores unless an executor is given."""
    for folder in sorted({(root / job.file).parent for job in jobs}):
        folder.mkdir(parents=True, exist_ok=True)
    with progress("painting plants", len(jobs)) as tick:
        block = partial(_paint_block, root)
        for done in map_blocks(block, blocks_of(jobs, PICTURES_PER_BLOCK), executor or all_cores()):
            tick(done)


def _paint_block(root: Path, jobs: Sequence[PictureJob]) -> int:
    for job in jobs:
        rng = np.random.default_rng(np.random.SeedSequence([job.seed, job.observation, job.picture]))
        paint_plant(job.specimen, rng, job.domain).save(root / job.file, quality=JPEG_QUALITY)
    return len(jobs)


def paint_plant(specimen: Specimen, rng: np.random.Generator, domain: Domain) -> Image.Image:
    """Paints one individual, alive or pressed."""
    look = look_of_plant(specimen)
    return _sheet(look, rng) if domain == "herbarium" else _photo(look, rng)


def _sheet(look: PlantLook, rng: np.random.Generator) -> Image.Image:
    """A pressed plant on paper, with a label, a scale bar and strips of tape."""
    width, height = (side * OVERSAMPLED for side in SHEET_PX)
    paper = mixed(PAPER, (0.8, 0.7, 0.5), float(rng.uniform(0, 0.4)))
    picture = Image.new("RGB", (width, height), _rgb(paper))
    draw = ImageDraw.Draw(picture)
    branch = grow_branch(look, rng, flat=True)
    left, bottom, right, top = branch.bounds
    scale = min(0.88 * width / (right - left), 0.8 * height / (top - bottom)) * float(rng.uniform(0.85, 1.0))
    shift = rng.uniform(-0.04, 0.04) * width
    column, row = width / 2 + shift - scale * (left + right) / 2, height * 0.47 + scale * (top + bottom) / 2
    fading = float(rng.uniform(0, 0.35))
    leaf, petal = (mixed(color, paper, fading * 0.5) for color in (look.pressed_leaf, look.pressed_petal))
    _draw_branch(draw, branch, look, (column, row), scale, leaf, petal, gloss=0.0)
    _tape(draw, branch, (column, row), scale, rng)
    _label(draw, width, height, rng)
    if rng.random() < 0.5:
        _scale_bar(draw, width, rng)
    tint = (float(rng.normal(0, 0.02)), float(rng.lognormal(0, 0.08)))
    return _developed(picture, SHEET_PX, rng, warmth=tint[0], exposure=tint[1], blur_px=0.4, noise=0.01)


def _photo(look: PlantLook, rng: np.random.Generator) -> Image.Image:
    """A living plant where it grows."""
    side = PHOTO_PX[0] * OVERSAMPLED
    setting = draw_setting(rng, foot_row=float(rng.uniform(0.75, 1.2)), steepness=float(rng.uniform(0.1, 0.7)))
    ground = np.sqrt(np.clip(backdrop(setting, side // OVERSAMPLED, rng), 0, 1))
    picture = Image.fromarray((ground * 255).astype(np.uint8)).resize((side, side), Image.Resampling.BICUBIC)
    picture = picture.filter(ImageFilter.GaussianBlur(float(rng.uniform(1.0, 5.0))))
    framing = str(rng.choice([name for name, _ in FRAMINGS], p=[share for _, share in FRAMINGS]))
    light = float(rng.uniform(0.75, 1.2))
    for distance in [0.0] * int(rng.integers(0, 3)) + [1.0]:
        branch = grow_branch(look, rng, flat=False)
        origin, scale = _framed(branch, framing, side, rng)
        if not distance:  # company behind, smaller and out of focus
            origin = (origin[0] + float(rng.normal(0, 0.3)) * side, origin[1] - 0.05 * side)
            scale *= 0.7
        draw = ImageDraw.Draw(picture)
        dim = light if distance else light * 0.7
        leaf, petal = (mixed((0.05, 0.07, 0.05), color, min(dim, 1.0)) for color in (look.leaf, look.petal))
        _draw_branch(draw, branch, look, origin, scale, leaf, petal, gloss=look.gloss)
        if not distance:
            picture = picture.filter(ImageFilter.GaussianBlur(float(rng.uniform(2.0, 6.0))))
    warmth, exposure = float(rng.normal(0, 0.07)), float(rng.lognormal(0, 0.15))
    return _developed(picture, PHOTO_PX, rng, warmth=warmth, exposure=exposure, blur_px=0.7, noise=0.015)


def _framed(branch: Branch, framing: str, side: int, rng: np.random.Generator) -> tuple[tuple[float, float], float]:
    """Where the foot of the branch lies on the canvas, and how many pixels its length has."""
    left, bottom, right, top = branch.bounds
    zoom = {"branch": 0.9, "leaves": 1.6, "flowers": 2.0}[framing] * float(rng.uniform(0.85, 1.2))
    scale = zoom * side / max(right - left, top - bottom)
    middle = {"branch": (bottom + top) / 2, "leaves": 0.45, "flowers": 0.98}[framing]
    across = float(np.interp(middle, branch.stem[:, 1], branch.stem[:, 0]))
    across = (left + right) / 2 if framing == "branch" else across
    drift = rng.normal(0, 0.05, 2) * side
    return (side / 2 + drift[0] - scale * across, side / 2 + drift[1] + scale * middle), scale


def _draw_branch(
    draw: ImageDraw.ImageDraw,
    branch: Branch,
    look: PlantLook,
    origin: tuple[float, float],
    scale: float,
    leaf: Color,
    petal: Color,
    *,
    gloss: float,
) -> None:
    wood = mixed(leaf, (0.3, 0.24, 0.15), 0.6)
    width = max(1, round(look.stem_width * scale))
    draw.line(_placed(branch.stem, origin, scale), fill=_rgb(wood), width=width, joint="curve")
    for stalk in branch.stalks:
        draw.line(_placed(stalk, origin, scale), fill=_rgb(wood), width=max(1, width // 2))
    for blade in branch.blades:
        color = mixed((0.0, 0.0, 0.0), leaf if blade.kind == "leaf" else petal, blade.light)
        draw.polygon(_placed(blade.outline, origin, scale), fill=_rgb(color), outline=_rgb(mixed(color, INK, 0.35)))
        vein = mixed(color, (0.85, 0.88, 0.7), look.vein_contrast)
        for number, line in enumerate(blade.veins):
            draw.line(
                _placed(line, origin, scale), fill=_rgb(vein), width=max(1, round(scale * 0.006)) if not number else 1
            )
        if gloss > 0.2 and blade.kind == "leaf" and blade.light > 1.05:
            center = blade.outline.mean(axis=0)
            shine = center + (blade.outline - center) * 0.35
            draw.polygon(_placed(shine, origin, scale), fill=_rgb(mixed(color, (1.0, 1.0, 1.0), gloss * 0.5)))
    for x, y, radius in branch.hearts:
        (column, row), reach = _placed(np.array([[x, y]]), origin, scale)[0], radius * scale
        heart = mixed(petal, (0.75, 0.6, 0.1), 0.6)
        draw.ellipse((column - reach, row - reach, column + reach, row + reach), fill=_rgb(heart))


def _placed(points: Points, origin: tuple[float, float], scale: float) -> list[tuple[float, float]]:
    return [(origin[0] + scale * float(x), origin[1] - scale * float(y)) for x, y in points]


def _tape(
    draw: ImageDraw.ImageDraw, branch: Branch, origin: tuple[float, float], scale: float, rng: np.random.Generator
) -> None:
    for place in rng.choice(len(branch.stem), size=int(rng.integers(1, 4)), replace=False):
        column, row = _placed(branch.stem[place : place + 1], origin, scale)[0]
        draw.rectangle((column - 14, row - 4, column + 14, row + 4), fill=_rgb((0.97, 0.96, 0.93)))


def _label(draw: ImageDraw.ImageDraw, width: int, height: int, rng: np.random.Generator) -> None:
    """A label in a lower corner with lines of writing."""
    box_width, box_height = rng.uniform(0.34, 0.46) * width, rng.uniform(0.12, 0.18) * height
    left = width - box_width - 8 if rng.random() < 0.8 else 8
    top = height - box_height - 8
    draw.rectangle((left, top, left + box_width, top + box_height), fill=(250, 248, 240), outline=(120, 110, 100))
    for line in range(5):
        row = top + 6 + line * (box_height - 10) / 5
        draw.line((left + 6, row, left + 6 + float(rng.uniform(0.4, 0.9)) * (box_width - 12), row), fill=_rgb(INK))


def _scale_bar(draw: ImageDraw.ImageDraw, width: int, rng: np.random.Generator) -> None:
    left, top = rng.uniform(0.05, 0.6) * width, 8
    for patch in range(6):
        fill = tuple(int(value) for value in rng.integers(0, 255, 3)) if patch % 2 else (30, 30, 30)
        draw.rectangle((left + patch * 14, top, left + patch * 14 + 13, top + 10), fill=fill)


def _developed(
    canvas: Image.Image,
    size: tuple[int, int],
    rng: np.random.Generator,
    *,
    warmth: float,
    exposure: float,
    blur_px: float,
    noise: float,
) -> Image.Image:
    small = canvas.resize(size, Image.Resampling.LANCZOS).filter(ImageFilter.GaussianBlur(blur_px))
    light = np.asarray(small, dtype=np.float32) * np.float32(exposure)
    light *= np.array([1 + warmth, 1, 1 - warmth], dtype=np.float32)
    light += rng.standard_normal(light.shape, dtype=np.float32) * np.float32(255 * noise)
    return Image.fromarray(np.clip(light, 0, 255).astype(np.uint8))


def _rgb(color: Sequence[float] | NDArray[np.floating]) -> tuple[int, int, int]:
    red, green, blue = (int(255 * min(max(float(value), 0.0), 1.0)) for value in color)
    return red, green, blue
