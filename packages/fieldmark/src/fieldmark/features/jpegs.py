"""JPEGs decoded straight into arrays: the pixels of Pillow, without its detour over pictures of four bytes a pixel."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image

from fieldmark.features.crops import Box
from fieldmark.features.fast_packages import SlowReadingError, need_fast_package
from fieldmark.storage.picture_files import open_picture, refuse_huge

Pixels = NDArray[np.uint8]
BEGINNING, END = b"\xff\xd8", b"\xff\xd9"
START_OF_SCAN, BASELINE, EXIF = 0xDA, (0xC0, 0xC1), 0xE1
# How a photo is turned upright, by the orientation that EXIF gives it.
UPRIGHT: dict[int, Callable[[Pixels], Pixels]] = {
    1: lambda pixels: pixels,
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: pixels.swapaxes(0, 1),
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: pixels[::-1, ::-1].swapaxes(0, 1),
    8: np.rot90,
}


def is_jpeg(data: bytes) -> bool:
    """Whether some bytes begin as a JPEG does."""
    return data[:2] == BEGINNING


def fits_gpu(data: bytes) -> bool:
    """Whether a GPU can decode a photo: a complete, upright, baseline JPEG of one or three channels.

    All others are left to the CPU, which also says what is wrong with a damaged one.
    """
    if not is_jpeg(data):
        return False
    at, baseline = 2, False
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker == START_OF_SCAN:
            return baseline and data.rfind(END, at) > 0
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            baseline = marker in BASELINE and data[at + 4] == 8 and data[at + 9] in (1, 3)
        elif marker == EXIF and data[at + 4 : at + 8] == b"Exif" and _turned(data[at + 4 : at + 2 + length]):
            return False
        at += 2 + length
    return False


def _turned(segment: bytes) -> bool:
    exif = Image.Exif()
    try:
        exif.load(segment)
        return bool(exif.get(ExifTags.Base.Orientation, 1) != 1)
    except (OSError, SyntaxError, ValueError, KeyError):
        return True  # left to the CPU


def draft_for(photo: Image.Image, at_least_px: int | None, box: Box | None) -> None:
    """Lets a JPEG be decoded at a half, a quarter or an eighth of its size, as long as enough pixels remain."""
    if at_least_px:
        needed_px = at_least_px if box is None else math.ceil(at_least_px / box.shortest)
        photo.draft("RGB", (needed_px, needed_px))


def decode_jpeg(data: bytes, at_least_px: int, box: Box | None = None) -> Pixels | None:
    """The upright pixels of a photo, or of a box of it, as `photos.decode_photo` has them; None where it must do it.

    That is where a photo is no JPEG or a damaged one, has four channels, or simplejpeg cannot be used.
    """
    if not is_jpeg(data) or not _usable():
        return None
    import simplejpeg

    try:
        with open_picture(data) as photo:
            draft_for(photo, at_least_px, box)
            refuse_huge(photo)
            turn = UPRIGHT.get(photo.getexif().get(ExifTags.Base.Orientation, 1))
            (width, height), mode = photo.size, photo.mode
        if mode not in ("RGB", "L") or turn is None:
            return None
        pixels = simplejpeg.decode_jpeg(data, "RGB", min_height=height, min_width=width)
    except (OSError, SyntaxError, ValueError):
        return None
    if pixels.shape[:2] != (height, width):
        return None
    upright = turn(pixels)
    if box is not None:
        left, top, right, bottom = box.pixels(upright.shape[1], upright.shape[0])
        upright = upright[top:bottom, left:right]
    return upright


@cache
def _usable() -> bool:
    try:
        need_fast_package("simplejpeg")
    except SlowReadingError:
        return False
    return True
