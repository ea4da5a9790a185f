"""Pictures larger than thumbnails: whole photos with the outlines of masks, and pictures from above."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageFilter, ImageOps

from fieldmark.datasets.fungitastic_layers import satellite_picture
from fieldmark.foundation.picture_files import open_picture

LONG_SIDE_PIXELS = 380
JPEG_QUALITY = 78
# Okabe and Ito (2008) without black: the outlines lie on photos of any color, in a dark seam.
OUTLINES = ("#f0e442", "#56b4e9", "#cc79a7", "#009e73", "#d55e00", "#e69f00", "#0072b2")
SEAM = (15, 18, 22)
# At twice the size of the picture.
LINE_PIXELS, SEAM_PIXELS, SMOOTHING_PIXELS = 7, 13, 1.5

Masks = Mapping[str, NDArray[np.bool_]]


@dataclass(frozen=True)
class Picture:
    """A picture as a data URI, with its size in pixels."""

    data: str
    width: int
    height: int


def photo_picture(photo: bytes, masks: Masks | None = None, colors: Mapping[str, str] | None = None) -> Picture:
    """The whole photo, made small, with the outline of each mask.

    Args:
        photo: The bytes of the file.
        masks: By the part they show, at any size: they are stretched to the photo.
        colors: The color of each part's outline.

    Raises:
        OSError: When the bytes are not a photo.
    """
    with open_picture(photo) as opened:
        opened.draft("RGB", (2 * LONG_SIDE_PIXELS, 2 * LONG_SIDE_PIXELS))
        upright = ImageOps.exif_transpose(opened).convert("RGB")
    # Small photos are enlarged too, so that outlines have the same weight on all.
    small = ImageOps.contain(upright, (LONG_SIDE_PIXELS, LONG_SIDE_PIXELS), Image.Resampling.LANCZOS)
    for part, mask in (masks or {}).items():
        _outline(small, mask, (colors or {}).get(part, OUTLINES[0]))
    return _jpeg(small)


def picture_from_above(pixels: NDArray[Any]) -> Picture:
    """A satellite picture of one band or three; raw reflectance is made visible as the organizers do.

    Raises:
        ValueError: When the array is not a picture.
    """
    if pixels.dtype != np.uint8:
        pixels = satellite_picture(np.nan_to_num(pixels.astype(np.float64)))
    if pixels.ndim == 3:
        pixels = pixels[..., 0] if pixels.shape[2] < 3 else pixels[..., :3]
    if pixels.ndim != 2 and pixels.ndim != 3:
        raise ValueError(f"an array of shape {pixels.shape} is not a picture")
    return _jpeg(Image.fromarray(np.ascontiguousarray(pixels)).convert("RGB"))


def _outline(photo: Image.Image, mask: NDArray[np.bool_], color: str) -> None:
    """Draws the border of a mask into a photo, inside a dark seam that keeps it apart from any background."""
    # Drawn at twice the size and made small, so that coarse masks do not leave stairs.
    large = (2 * photo.width, 2 * photo.height)
    smooth = Image.fromarray(mask.astype(np.uint8) * 255).resize(large, Image.Resampling.BILINEAR)
    shape = smooth.filter(ImageFilter.GaussianBlur(SMOOTHING_PIXELS)).point(lambda value: 255 * (value > 127))
    for width, paint, strength in ((SEAM_PIXELS, SEAM, 0.5), (LINE_PIXELS, color, 1.0)):
        outer, inner = shape.filter(ImageFilter.MaxFilter(width)), shape.filter(ImageFilter.MinFilter(width))
        band = ImageChops.subtract(outer, inner).resize(photo.size, Image.Resampling.BOX)
        photo.paste(paint, (0, 0), band.point(lambda value, share=strength: int(value * share)))


def _jpeg(picture: Image.Image) -> Picture:
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=JPEG_QUALITY, optimize=True)
    data = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return Picture(data, picture.width, picture.height)
