"""Pictures that an organizer's text shows: files of the challenge, sent along inside the page."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO

from PIL import Image, UnidentifiedImageError

from fieldmark.challenge.records.schema import Challenge, DataFile
from fieldmark.challenge.records.storage import Storage
from fieldmark.challenge.site.markdown_text import pictures_in

KINDS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
# Larger ones are not shown: they come with every view of the page.
LARGEST_BYTES, MOST = 1 << 20, 6


def shown_pictures(storage: Storage, challenge: Challenge) -> dict[str, str]:
    """The pictures that description and rules name, as data URIs by their names; nobody sees any other file by this."""
    named = {*pictures_in(challenge.description), *pictures_in(challenge.rules)}
    files = [file for file in challenge.files if file.name in named and file.size <= LARGEST_BYTES][:MOST]
    found = {file.name: _as_address(storage, file) for file in files}
    return {name: address for name, address in found.items() if address}


def _as_address(storage: Storage, file: DataFile) -> str:
    """A picture as a data URI; empty for what is none, whatever its name says."""
    if not storage.exists(file.path):
        return ""
    data = b"".join(storage.chunks(file.path))
    try:
        with Image.open(BytesIO(data), formats=tuple(KINDS)) as picture:
            kind = KINDS[str(picture.format)]
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError):
        return ""
    return f"data:{kind};base64,{b64encode(data).decode()}"
