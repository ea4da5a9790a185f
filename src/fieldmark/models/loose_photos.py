"""Photos on disk that belong to no release."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fieldmark.errors import InputError
from fieldmark.foundation.media_files import PHOTO_SUFFIXES, is_leftover, is_photo


def find_photos(places: Iterable[Path]) -> list[Path]:
    """All photos among files and folders (searched to any depth), sorted within each folder.

    Raises:
        InputError: For a place that does not exist, or when there is no photo at all.
    """
    places = list(places)
    photos: list[Path] = []
    for place in places:
        if place.is_dir():
            inside = (path for path in place.rglob("*") if is_photo(path) and path.is_file())
            photos += sorted(path for path in inside if not any(map(is_leftover, path.relative_to(place).parts)))
        elif place.is_file():
            photos.append(place)
        else:
            raise InputError(place, found="no such file or folder", expected="a photo or a folder of photos")
    if not photos:
        raise InputError(places[0], found="no photos", expected=f"files ending in {', '.join(PHOTO_SUFFIXES)}")
    return photos
