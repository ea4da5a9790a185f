"""Pictures that show no living thing: plain, noise, text, and drawings of a face and of a car."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SIZE_PX = (400, 300)
TEXT = "The meeting begins at nine. Bring the keys and two copies of the list, page 12."


def plain(value: int) -> Image.Image:
    """One gray."""
    return Image.new("RGB", SIZE_PX, (value, value, value))


def noise(cells: int) -> Image.Image:
    """Random colors, in so many cells across."""
    shape = (cells * 3 // 4, cells, 3)
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    return Image.fromarray(pixels).resize(SIZE_PX, Image.Resampling.BICUBIC)


def text(paper: str, ink: str) -> Image.Image:
    """A page of text."""
    picture = Image.new("RGB", SIZE_PX, paper)
    drawing = ImageDraw.Draw(picture)
    for line in range(18):
        drawing.text((8, 8 + 16 * line), TEXT[line:] + " " + TEXT[:line], fill=ink)
    return picture


def face() -> Image.Image:
    """Two eyes, a nose, a mouth."""
    picture = Image.new("RGB", SIZE_PX, (225, 215, 195))
    drawing = ImageDraw.Draw(picture)
    drawing.ellipse((110, 20, 290, 280), fill=(236, 192, 160), outline="black", width=3)
    drawing.pieslice((110, 5, 290, 150), 180, 360, fill=(75, 48, 22))
    for x in (155, 225):
        drawing.ellipse((x, 105, x + 30, 128), fill="white", outline="black")
        drawing.ellipse((x + 9, 108, x + 22, 124), fill="black")
    drawing.line((200, 130, 190, 178, 206, 182), fill="black", width=3)
    drawing.arc((155, 180, 245, 238), 10, 170, fill=(180, 40, 40), width=6)
    return picture


def car() -> Image.Image:
    """A car from the side, on a road."""
    picture = Image.new("RGB", SIZE_PX, (170, 200, 230))
    drawing = ImageDraw.Draw(picture)
    drawing.rectangle((0, 225, 400, 300), fill=(95, 95, 95))
    drawing.rounded_rectangle((50, 140, 350, 222), 20, fill=(190, 25, 25), outline="black", width=3)
    drawing.polygon([(110, 140), (150, 92), (260, 92), (300, 140)], fill=(190, 25, 25), outline="black")
    drawing.polygon([(122, 138), (155, 100), (200, 100), (200, 138)], fill=(205, 230, 250))
    drawing.polygon([(208, 138), (208, 100), (255, 100), (286, 138)], fill=(205, 230, 250))
    for x in (112, 288):
        drawing.ellipse((x - 32, 190, x + 32, 254), fill="black")
        drawing.ellipse((x - 14, 208, x + 14, 236), fill=(200, 200, 200))
    return picture


PICTURES: dict[str, Callable[[], Image.Image]] = {
    "black": lambda: plain(0),
    "dark gray": lambda: plain(64),
    "gray": lambda: plain(128),
    "light gray": lambda: plain(200),
    "white": lambda: plain(255),
    "fine noise": lambda: noise(400),
    "coarse noise": lambda: noise(16),
    "text": lambda: text("white", "black"),
    "light text on dark": lambda: text("#202028", "#d0e0d0"),
    "drawing of a face": face,
    "drawing of a car": car,
}


def write_pictures(folder: Path) -> dict[str, Path]:
    """Writes all of them as PNG and returns where each lies."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name.replace(' ', '-')}.png" for name in PICTURES}
    for name, file in files.items():
        PICTURES[name]().save(file)
    return files
