"""Photos and sounds for pages: small, upright, and without what a camera wrote into the file."""

from __future__ import annotations

import io

from PIL import Image

from fieldmark.features.photos import decode_photo

JPEG_QUALITY = 85


def as_jpeg(photo: bytes, most_px: int) -> bytes:
    """A photo as JPEG, its longer side at most so many pixels; place, date and camera stay behind.

    Raises:
        PhotoError: When the bytes are no photo.
    """
    upright = decode_photo(photo, at_least_px=most_px)
    upright.thumbnail((most_px, most_px), Image.Resampling.LANCZOS)
    bare = Image.new("RGB", upright.size)
    bare.paste(upright)
    buffer = io.BytesIO()
    bare.save(buffer, "JPEG", quality=JPEG_QUALITY)
    return buffer.getvalue()
