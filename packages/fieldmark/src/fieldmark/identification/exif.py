"""When and where a photo was taken, by what the camera wrote into the file. Read only where a person agrees."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Any

from PIL import ExifTags

from fieldmark.storage.picture_files import open_picture


@dataclass(frozen=True)
class Taken:
    """What a camera noted; None for what it did not, or for what cannot be.

    Args:
        date, time: By the clock of the camera, whose time zone is seldom known.
        lat, lon: In degrees.
    """

    date: datetime.date | None = None
    time: datetime.time | None = None
    lat: float | None = None
    lon: float | None = None


def taken(photo: bytes) -> Taken:
    """When and where a photo was taken; a file without notes, or without sense in them, tells nothing."""
    try:
        with open_picture(photo) as opened:
            exif = opened.getexif()
            details, place = exif.get_ifd(ExifTags.IFD.Exif), exif.get_ifd(ExifTags.IFD.GPSInfo)
            moment = _moment(details.get(ExifTags.Base.DateTimeOriginal) or exif.get(ExifTags.Base.DateTime))
    except Exception:  # notes of cameras are damaged in more ways than can be listed, and nothing depends on them
        return Taken()
    lat = _degrees(place, ExifTags.GPS.GPSLatitude, ExifTags.GPS.GPSLatitudeRef, "S", 90)
    lon = _degrees(place, ExifTags.GPS.GPSLongitude, ExifTags.GPS.GPSLongitudeRef, "W", 180)
    if lat is None or lon is None or (lat, lon) == (0.0, 0.0):  # what cameras write that found no satellite
        lat = lon = None
    if moment is None:
        return Taken(lat=lat, lon=lon)
    return Taken(moment.date(), moment.time(), lat, lon)


def _moment(text: Any) -> datetime.datetime | None:
    """A moment as EXIF writes it, colons between all numbers; a clock that was never set counts as none."""
    try:
        moment = datetime.datetime.strptime(str(text)[:19], "%Y:%m:%d %H:%M:%S")
    except ValueError:
        return None
    return moment if moment.year >= 1990 else None


def _degrees(place: Any, value: int, reference: int, negative: str, most: float) -> float | None:
    try:
        degrees, minutes, seconds = (float(part) for part in place[value])
        angle = degrees + minutes / 60 + seconds / 3600
        sign = -1 if str(place.get(reference, "")).strip().upper().startswith(negative) else 1
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None
    return round(sign * angle, 6) if math.isfinite(angle) and angle <= most else None
