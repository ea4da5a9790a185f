"""What a camera noted in a photo (EXIF), as an input that a method must ask for by name.

Who owns which camera tells who took a photo, and a benchmark would reward knowing people; so no method reads it unless
it is named (`inputs=photo,exif`), and the run says so.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image

from fieldmark.storage.release import Release
from fieldmark.tables.inputs import Input, KeyedBy, Layer

EXIF = Input("exif", extractor="numbers")
# Amounts that span orders of magnitude are taken by their logarithm.
AMOUNTS = ("ExposureTime", "ShutterSpeedValue", "FNumber", "ISOSpeedRatings", "FocalLength")
CODES = {"MeteringMode": 7, "ColorSpace": 2, "Flash": 2}
# Makers of cameras fall into so many bins by a digest of their name.
DEVICES = 16
_NAME_OF = {**{tag.value: tag.name for tag in ExifTags.Base}, 0x8827: "ISOSpeedRatings"}


@dataclass(frozen=True)
class ExifLayer(Layer):
    """The notes of cameras by photo.

    Args:
        release: The root.
        path_of: Where each photo lies.
    """

    release: Release
    path_of: Mapping[str, str]
    input: ClassVar[str] = "exif"
    by: ClassVar[KeyedBy] = "media_id"

    def read(self, ids: Sequence[str]) -> list[dict[str, Any] | None]:
        known = [one for one in ids if one in self.path_of]
        files = dict(zip(known, self.release.read_many(self.path_of[one] for one in known), strict=True))
        return [exif_of(files[one]) if one in files else None for one in ids]

    def numbers(self, ids: Sequence[str]) -> NDArray[np.float64]:
        return np.stack([exif_numbers(one) for one in self.read(ids)]) if len(ids) else np.zeros((0, WIDTH))


def exif_of(data: bytes) -> dict[str, Any] | None:
    """The tags of a photo by their names; None where it has none, or is no photo."""
    try:
        with Image.open(io.BytesIO(data)) as photo:
            tags = photo.getexif()
            found = {**tags, **tags.get_ifd(ExifTags.IFD.Exif)}
    except (OSError, ValueError, SyntaxError):
        return None
    return {_NAME_OF[tag]: value for tag, value in found.items() if tag in _NAME_OF} or None


def exif_numbers(tags: Mapping[str, Any] | None) -> NDArray[np.float64]:
    """Exposure, shutter speed, aperture, sensitivity and focal length by their logarithm; modes and maker as flags.

    >>> exif_numbers({"FNumber": 8.0, "Flash": 1})[[2, 14, 15]].tolist()
    [3.0, 0.0, 1.0]
    """
    if not tags:
        return np.full(WIDTH, np.nan)
    row = [_log(tags.get(name)) for name in AMOUNTS]
    for name, number in CODES.items():
        row += [float(_code(name, tags.get(name)) == code) for code in range(number)]
    maker = " ".join(str(tags.get("Make") or "").lower().split())
    place = hashlib.blake2b(maker.encode(), digest_size=4).digest()[0] % DEVICES if maker else -1
    return np.array([*row, *(float(place == device) for device in range(DEVICES))])


WIDTH = len(AMOUNTS) + sum(CODES.values()) + DEVICES


def _log(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, ZeroDivisionError):
        return math.nan
    return math.log2(number) if number > 0 and math.isfinite(number) else math.nan


def _code(name: str, value: Any) -> int:
    """The code of a mode; whether a flash was fired is the lowest bit of its tag, and 1 is sRGB."""
    if not isinstance(value, int):
        return -1
    return value & 1 if name == "Flash" else (0 if value == 1 else 1) if name == "ColorSpace" else value
