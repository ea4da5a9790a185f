"""Which files are photos and which are recordings, by their endings."""

from __future__ import annotations

from pathlib import PurePath

PHOTO_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".avif", ".heic", ".heif")
# What masks come as, besides.
PICTURE_SUFFIXES = (*PHOTO_SUFFIXES, ".bmp")
SOUND_SUFFIXES = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".m4a", ".aac", ".mp4")


# What operating systems and their tools leave beside photos, besides hidden files.
LEFTOVERS = ("__macosx", "thumbs.db", "ehthumbs.db", "desktop.ini", "@eadir", "$recycle.bin", "lost+found")


def is_leftover(name: str) -> bool:
    """Whether nobody has put a file or folder there: it is hidden, or an operating system left it behind.

    >>> is_leftover("Thumbs.db"), is_leftover("._photo.jpg"), is_leftover("photo.jpg")
    (True, True, False)
    """
    return name.startswith(".") or name.lower() in LEFTOVERS


# How files begin that photos and recordings come as, at the start or after four or eight bytes.
PHOTO_HEADS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"II*\x00", b"MM\x00*", b"ftyp", b"WEBP")
SOUND_HEADS = (b"WAVE", b"fLaC", b"OggS", b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf1", b"ftyp")
HEAD_BYTES = 16


def begins_like(head: bytes, heads: tuple[bytes, ...]) -> bool:
    """Whether the first bytes of a file are such as one of some kinds has; what they are not may still be read.

    >>> begins_like(b"RIFF....WEBPVP8 ", PHOTO_HEADS), begins_like(b"some text", PHOTO_HEADS)
    (True, False)
    """
    return any(head.startswith(heads, start) for start in (0, 4, 8))


def is_photo(name: str | PurePath) -> bool:
    """Whether a file has the ending of a photo.

    >>> is_photo("IMG_1234.HEIC"), is_photo("IMG_1234.gif")
    (True, False)
    >>> is_photo("folder/.jpg"), is_photo("folder.jpg/notes")
    (False, False)
    """
    return _ends(name, PHOTO_SUFFIXES)


def is_recording(name: str | PurePath) -> bool:
    """Whether a file has the ending of a recording.

    >>> is_recording("XC1234.MP3"), is_recording("XC1234.json")
    (True, False)
    """
    return _ends(name, SOUND_SUFFIXES)


def _ends(name: str | PurePath, suffixes: tuple[str, ...]) -> bool:
    """Asked for every file of a release: taking paths apart would be most of the time of opening it."""
    text = str(name).lower()
    return text.endswith(suffixes) and text.rpartition("/")[2] not in suffixes  # ".jpg" is a hidden file
