"""Features of many photos: read, look up, decode and compute only what the store does not hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.features.cropping import Box, PhotoBoxes, cropped_key
from fieldmark.features.photos import PhotoError
from fieldmark.features.store import FeatureStore, Key, content_key
from fieldmark.foundation.map_blocks import all_cores, blocks_of, map_blocks
from fieldmark.foundation.progress import progress

BLOCK_PHOTOS = 64


class Extractor(Protocol):
    """Turns photos into named arrays; `features.backbones.Backbone` is one."""

    def decode(self, data: bytes, box: Box | None = None) -> Any:
        """The pixels of one photo, or of a box of it, as the extractor takes them.

        Called in threads; raises PhotoError. An extractor that is never given boxes need not take any.
        """
        ...

    def __call__(self, pixels: Sequence[Any]) -> dict[str, NDArray[np.generic]]:
        """One row per photo in each array."""
        ...


class _Read(NamedTuple):
    """One photo as the reading threads hand it over: pixels only where the store has nothing yet."""

    media_id: str
    key: Key
    pixels: Any
    problem: str | None


def extract(
    media_ids: Sequence[str],
    read_medium: Callable[[str], bytes],
    extractor: Extractor,
    store: FeatureStore,
    *,
    boxes: PhotoBoxes | None = None,
    where: Callable[[str], str] = str,
    what: str = "photos",
    expected: str = "a photo that can be read to its end",
) -> NDArray[np.float32]:
    """Returns the features of photos, one row per id.

    Reading and decoding run in threads ahead of the network. What is computed is stored block by block, so that an
    interrupted extraction goes on where it stopped.

    Args:
        media_ids: The photos.
        read_medium: Returns the bytes of a photo.
        extractor: The network.
        store: Where its outputs are kept: by the bytes of a photo, and by its box where it has one.
        boxes: Which part of each photo is shown; without any, whole photos.
        where: The place of a photo as a person would look for it, for messages.
        what: What is being read, for the progress bar.
        expected: What each should be, for messages.

    Raises:
        InputError: When photos cannot be decoded; all of them have been tried, and the good ones are stored.
    """
    keys: list[Key] = []
    problems: list[tuple[str, str]] = []

    def read_block(block: Sequence[str]) -> list[_Read]:
        box_of = (boxes or PhotoBoxes()).of
        return [_read(media_id, read_medium(media_id), box_of(media_id), extractor, store) for media_id in block]

    blocks = map_blocks(read_block, blocks_of(media_ids, BLOCK_PHOTOS), all_cores("thread"))
    with progress(f"reading {what}", len(media_ids)) as tick:
        for photos in blocks:
            keys += [photo.key for photo in photos]
            problems += [(photo.media_id, photo.problem) for photo in photos if photo.problem]
            new = {photo.key: photo.pixels for photo in photos if photo.pixels is not None}
            new = {key: pixels for key, pixels in new.items() if key not in store}
            if new:
                store.add(list(new), extractor(list(new.values())))
            tick(len(photos))
    if problems:
        media_id, problem = problems[0]
        more = f" {len(problems) - 1} more photos cannot be read either." if len(problems) > 1 else ""
        hint = f"Replace the file or remove it (and its line in any table).{more}"
        raise InputError(where(media_id), found=problem, expected=expected, hint=hint)
    return store.get(keys).astype(np.float32)


def _read(media_id: str, data: bytes, box: Box | None, extractor: Extractor, store: FeatureStore) -> _Read:
    key = cropped_key(content_key(data), box)
    if key in store:
        return _Read(media_id, key, None, None)
    try:
        pixels = extractor.decode(data) if box is None else extractor.decode(data, box)
        return _Read(media_id, key, pixels, None)
    except PhotoError as error:
        return _Read(media_id, key, None, str(error))
