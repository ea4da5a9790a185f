"""Small pictures of items, as text that can stand in a page."""

from __future__ import annotations

import base64
from functools import cached_property
from io import BytesIO
from typing import IO

from PIL import Image, ImageOps

from fieldmark.errors import InputError
from fieldmark.registry import imported
from fieldmark.reports.pages.sounds import picture_uri, read_stretch
from fieldmark.storage.picture_files import open_picture
from fieldmark.views.open_benchmark import Opened

SIDE_PIXELS = 128
JPEG_QUALITY = 80
LISTENED_S = 5.0


class Thumbnails:
    """Thumbnails of the items of a benchmark, made when asked for and kept."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._made: dict[str, str | None] = {}

    def __call__(self, item_id: str) -> str | None:
        """The first photo of an item as a data URI, or None where it has none that can be read.

        A recording is shown as the spectrogram of its first seconds.
        """
        if item_id not in self._made:
            self._made[item_id] = self._make(item_id)
        return self._made[item_id]

    def _make(self, item_id: str) -> str | None:
        media_id = self._first_medium.get(item_id)
        if media_id is None:
            return None
        dataset = self._opened.dataset
        try:
            with dataset.open_medium(media_id) as file:
                made: str = imported(dataset.medium.thumbnail)(file)
                return made
        except (InputError, OSError, Image.DecompressionBombError):
            return None  # a page about thousands of photos does not fail over one of them

    @cached_property
    def _first_medium(self) -> dict[str, str]:
        return {
            item: media[0]
            for table in self._opened.items.values()
            for item, media in table.select("item_id", "media_ids").iter_rows()
            if media
        }


def recording_thumbnail(file: IO[bytes]) -> str:
    """The spectrogram of the first seconds of a recording, as a data URI."""
    return picture_uri(read_stretch(file, 0, LISTENED_S), width=SIDE_PIXELS, height=SIDE_PIXELS)


def photo_thumbnail(file: IO[bytes]) -> str:
    """The middle of a photo, as a data URI."""
    return data_uri(file.read())


def data_uri(photo: bytes) -> str:
    """A square JPEG cut from the middle of a photo, as a data URI.

    Raises:
        OSError: When the bytes are not a photo.
    """
    with open_picture(photo) as opened:
        opened.draft("RGB", (2 * SIDE_PIXELS, 2 * SIDE_PIXELS))
        upright = ImageOps.exif_transpose(opened).convert("RGB")
    square = ImageOps.fit(upright, (SIDE_PIXELS, SIDE_PIXELS), Image.Resampling.LANCZOS)
    buffer = BytesIO()
    square.save(buffer, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
