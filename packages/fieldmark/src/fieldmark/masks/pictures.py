"""Masks as people draw and save them. Only masks of one's own are read so, never those of runs or releases.

- Gray: white is the object (values above 127). Where no value but 0 and 1 occurs, 1 is the object.
- Gray of sixteen bits: the same of the upper half of its range; what stays below 256 is read as if it had eight bits.
- Few colors, by a palette or plainly: black is the background, and any other color the object.
- Many colors, at edges that were smoothed or tinted: where at least 90 % of the pixels are black or one other color (to
  within 32 of 255 in each channel), that other color is the object, and every pixel belongs to the nearer of the two.
- With transparency: what can be seen is the object.

What could mean something else is refused: gray without white, such as numbers of classes, and pictures of many colors.
JPEG blurs values, so that 0 and 1 mean nothing there.
"""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from fieldmark.errors import InputError
from fieldmark.masks.parts import Mask

WHITE_ABOVE, DEEP_WHITE_ABOVE = 127, 32767
# A drawing has few colors, a photo has many.
MOST_COLORS = 64
# From so many pixels of two colors on, those of other colors are edges; and how far a pixel of a color may be off it.
TWO_COLORS, OFF = 0.9, 32
BLURRED = "JPEG"
TINTED = "their two main colors: pixels of other colors, at the edges, belong to the nearer of black and the object's"
UNREADABLE = (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError)


class ReadMask(NamedTuple):
    """A mask, and how it was read where it is not black and white."""

    mask: Mask
    how: str = ""


def read_mask(data: bytes, where: str) -> ReadMask:
    """Reads the picture of a mask.

    Raises:
        InputError: When it is no picture, or does not say where the object is.
    """
    try:
        with Image.open(io.BytesIO(data)) as picture:
            blurred = picture.format == BLURRED
            picture.load()
            return _read(picture, where, blurred=blurred)
    except UNREADABLE as error:
        raise InputError(where, found="something unreadable", expected="a picture of a mask") from error


def _read(picture: Image.Image, where: str, *, blurred: bool) -> ReadMask:
    if picture.mode == "1":
        return ReadMask(np.asarray(picture))
    if picture.mode in ("I", "F") or picture.mode.startswith("I;16"):
        return _read_gray(np.asarray(picture), where, blurred=blurred)
    if "A" in picture.getbands() or "transparency" in picture.info:
        pixels = np.asarray(picture.convert("RGBA"))
        if (pixels[..., 3] != pixels[0, 0, 3]).any():
            return ReadMask(pixels[..., 3] > WHITE_ABOVE, "their transparency: what can be seen is the object")
    if picture.mode in ("L", "LA"):
        return _read_gray(np.asarray(picture.convert("L")), where, blurred=blurred)
    pixels = np.asarray(picture.convert("RGB"))
    if not (pixels == pixels[..., :1]).all() and not blurred:
        return _read_colors(pixels, where)
    return _read_gray(np.asarray(picture.convert("L")), where, blurred=blurred)


def _read_gray(values: NDArray[Any], where: str, *, blurred: bool) -> ReadMask:
    most = float(values.max(initial=0))
    deep = most > np.iinfo(np.uint8).max
    white_above = DEEP_WHITE_ABOVE if deep else WHITE_ABOVE
    if most == 0 or most > white_above or (blurred and not deep):
        how = "the upper half of their range, which is white" if deep else ""
        return ReadMask(values > white_above, how)
    if most == 1 and bool(np.isin(values, (0, 1)).all()):
        return ReadMask(values > 0, "the values 0 and 1, of which 1 is the object")
    raise InputError(
        where,
        found=f"gray values up to {most:g}",
        expected=f"white (above {white_above}) where the object is, or 0 and 1",
        hint="Where values are numbers of classes, write a mask for each: masks/<part>/<photo>.png.",
    )


def _read_colors(pixels: NDArray[np.uint8], where: str) -> ReadMask:
    number = pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    colors, times = np.unique(number, return_counts=True)
    if len(colors) <= MOST_COLORS and 0 in colors:
        return ReadMask(number != 0, "their colors: black is the background, any other the object")
    mask = _of_two_colors(pixels, colors, times) if len(colors) > MOST_COLORS else None
    if mask is not None:
        return ReadMask(mask, TINTED)
    found = f"{len(colors):,} colors" + ("" if 0 in colors else " and no black")
    hint = "Save it in black and white: white where the object is."
    raise InputError(where, found=found, expected="the object in one color on black", hint=hint)


def _of_two_colors(pixels: NDArray[np.uint8], colors: NDArray[np.uint32], times: NDArray[np.int64]) -> Mask | None:
    """The object in its main color, edges to the nearer of that and black; None where other colors are too many."""
    each = np.stack([colors >> 16, colors >> 8 & 255, colors & 255], axis=1).astype(np.int64)
    is_black = each.max(axis=1) <= OFF
    if is_black.all() or not is_black.any():
        return None
    main = each[np.where(is_black, 0, times).argmax()]
    is_main = np.abs(each - main).max(axis=1) <= OFF
    if times[is_black | is_main].sum() < TWO_COLORS * times.sum():
        return None
    apart = pixels.astype(np.int64)
    return np.asarray(((apart - main) ** 2).sum(axis=-1) < (apart**2).sum(axis=-1))
