"""Opening the files that cameras, phones and scanners write, whatever their ending says.

Pillow reads JPEG, PNG, WebP, TIFF, BMP and AVIF by itself; HEIC, which phones write, is read where pillow-heif is
installed (extra `media`). What is no photo, or would fill the memory, is refused in a few words.
"""

from __future__ import annotations

import io
import warnings
from functools import cache
from importlib.util import find_spec

import numpy as np
from PIL import Image, UnidentifiedImageError

# So many pixels are decoded at most: three bytes each, and twice that while they are turned upright.
MOST_PIXELS = 100_000_000
# Forms in which several pictures are an animation; in others they are a photo with its preview, or pages.
ANIMATED = ("GIF", "WEBP", "PNG", "AVIF")
HEIF_BRANDS = (b"heic", b"heix", b"hevc", b"heim", b"heis", b"hevm", b"hevs", b"mif1", b"msf1")
INSTALL_HEIF = "pip install 'fieldmark[media]'"

# Its warning comes at half the size of its error; the limit above says the same in a sentence.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


class PictureError(OSError):
    """A file that cannot be opened as a picture; the message says what it is instead."""


def open_picture(data: bytes) -> Image.Image:
    """Opens a picture; its header is read, and nothing is decoded yet.

    Raises:
        PictureError: When it is no picture, an animation, or of a kind that needs a package that is not installed.
    """
    if is_heif(data):
        register_heif()
    try:
        picture = Image.open(io.BytesIO(data))
    except UnidentifiedImageError as error:
        raise PictureError(_what_it_is(data)) from error
    except Image.DecompressionBombError as error:
        raise PictureError(f"a picture with more pixels than can be decoded ({error})") from error
    except (OSError, SyntaxError, ValueError) as error:
        raise PictureError(what_is_broken(error)) from error
    frames = getattr(picture, "n_frames", 1) if picture.format in ANIMATED else 1
    if frames > 1:
        raise PictureError(f"an animation of {frames} pictures, and not one photo")
    return picture


def what_is_broken(error: Exception) -> str:
    """What an error of a decoder says about a photo, in a few words."""
    return "a truncated photo" if "truncated" in str(error).lower() else f"a broken photo ({error})"


def refuse_huge(picture: Image.Image) -> None:
    """Refuses to decode what would fill the memory; after `draft`, which shrinks large JPEGs without decoding them."""
    width, height = picture.size
    if width * height > MOST_PIXELS:
        most = MOST_PIXELS // 1_000_000
        raise PictureError(f"a picture of {width:,} x {height:,} pixels, where at most {most} million can be decoded")


def as_rgb(picture: Image.Image) -> Image.Image:
    """A decoded picture in three channels of eight bits; gray ones of sixteen bits keep their whole range.

    >>> list(as_rgb(Image.fromarray(np.array([[0, 65535]], dtype=np.uint16))).tobytes())
    [0, 0, 0, 255, 255, 255]
    """
    if picture.mode == "RGB":
        return picture
    if picture.mode.startswith("I"):  # Pillow would cut everything above 255 off
        values = np.asarray(picture)
        deep = picture.mode.startswith("I;16") or values.max(initial=0) > np.iinfo(np.uint8).max
        values = np.clip(values, 0, np.iinfo(np.uint16).max) // 257 if deep else np.clip(values, 0, 255)
        return Image.fromarray(values.astype(np.uint8)).convert("RGB")
    if picture.mode == "F":
        raise PictureError("a picture of fractional numbers, and no photo")
    return picture.convert("RGB")


def is_heif(data: bytes) -> bool:
    """Whether bytes begin like a photo in HEIC or HEIF."""
    return data[4:8] == b"ftyp" and data[8:12] in HEIF_BRANDS and b"avif" not in data[8:32]


@cache
def register_heif() -> None:
    """Lets Pillow read HEIC.

    Raises:
        PictureError: When pillow-heif is not installed.
    """
    if find_spec("pillow_heif") is None:
        raise PictureError(f"a photo in HEIC, which can be read after {INSTALL_HEIF}")
    from pillow_heif import register_heif_opener

    register_heif_opener()


def _what_it_is(data: bytes) -> str:
    """What bytes are that no reader of pictures knows.

    >>> _what_it_is(b""), _what_it_is(b"%PDF-1.7 ..."), _what_it_is(b"hello")
    ('an empty file', 'a PDF', '5 bytes that are not a photo')
    """
    if not data:
        return "an empty file"
    return "a PDF" if data[:5] == b"%PDF-" else f"{len(data)} bytes that are not a photo"
