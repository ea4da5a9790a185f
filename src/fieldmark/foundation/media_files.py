"""Which files are photos and which are recordings, by their endings."""

from __future__ import annotations

from pathlib import PurePath

PHOTO_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".avif", ".heic", ".heif")
# What masks come as, besides.
PICTURE_SUFFIXES = (*PHOTO_SUFFIXES, ".bmp")
SOUND_SUFFIXES = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".m4a", ".aac", ".mp4")


def is_photo(name: str | PurePath) -> bool:
    """Whether a file has the ending of a photo.

    >>> is_photo("IMG_1234.HEIC"), is_photo("IMG_1234.gif")
    (True, False)
    """
    return PurePath(name).suffix.lower() in PHOTO_SUFFIXES


def is_recording(name: str | PurePath) -> bool:
    """Whether a file has the ending of a recording.

    >>> is_recording("XC1234.MP3"), is_recording("XC1234.json")
    (True, False)
    """
    return PurePath(name).suffix.lower() in SOUND_SUFFIXES
