"""The first half of an extraction: photos of a block are read, looked up by their bytes, and decoded where new."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldmark.features.crops import Box, cropped_key
from fieldmark.features.photos import PhotoError
from fieldmark.features.store import Key, content_key
from fieldmark.releases.picture_patches import squashed
from fieldmark.work.parallel_reads import read_each


class PhotoBlock(NamedTuple):
    """Some photos to make features of: their ids, their boxes, and what reads them and needs to know of no others."""

    media_ids: Sequence[str]
    boxes: Sequence[Box | None]
    read_medium: Callable[[str], bytes]


class ReadPhoto(NamedTuple):
    """One photo as it was read: pixels, and its look where it is a photo, only where nothing is stored of it yet."""

    media_id: str
    key: Key
    pixels: Any
    problem: str | None
    look: NDArray[np.uint8] | None = None


def look_of(pixels: Any) -> NDArray[np.uint8] | None:
    """A photo as copies of it are found: 16 x 16 values of its green channel; None for what is no photo."""
    if hasattr(pixels, "look"):  # a photo that is prepared for a network, and was looked at before
        own: NDArray[np.uint8] | None = pixels.look
        return own
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[2:] != (3,):
        return None
    return squashed(np.ascontiguousarray(pixels[:, :, 1])).round().astype(np.uint8)


@dataclass(frozen=True)
class BlockReading:
    """Reads and decodes a block of photos.

    Args:
        decode: Makes pixels of the bytes of a photo, or of a box of it; raises PhotoError.
        stored: What need not be decoded.
    """

    decode: Callable[..., Any]
    stored: Container[Key]

    def __call__(self, block: PhotoBlock) -> list[ReadPhoto]:
        data = read_each(block.read_medium, block.media_ids)
        return [self._read(*one) for one in zip(block.media_ids, data, block.boxes, strict=True)]

    def _read(self, media_id: str, data: bytes, box: Box | None) -> ReadPhoto:
        key = cropped_key(content_key(data), box)
        if key in self.stored:
            return ReadPhoto(media_id, key, None, None)
        try:
            pixels = self.decode(data) if box is None else self.decode(data, box)
            return ReadPhoto(media_id, key, pixels, None, look_of(pixels))
        except PhotoError as error:
            return ReadPhoto(media_id, key, None, str(error))
