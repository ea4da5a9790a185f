"""Features of many photos: read, look up, decode and compute only what the store does not hold."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.features.cropping import Box, PhotoBoxes, cropped_key
from fieldmark.features.photos import PhotoError
from fieldmark.features.store import KEY_BYTES, FeatureStore, Key, content_key
from fieldmark.foundation.engines import cluster
from fieldmark.foundation.map_blocks import all_cores, blocks_of, map_blocks, reader_of
from fieldmark.foundation.progress import progress
from fieldmark.foundation.reading_many import read_each

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


class PhotoBlock(NamedTuple):
    """Some photos to make features of: their ids, their boxes, and what reads them and needs to know of no others."""

    media_ids: Sequence[str]
    boxes: Sequence[Box | None]
    read_medium: Callable[[str], bytes]


class _Read(NamedTuple):
    """One photo as it was read: pixels only where nothing is stored of it yet."""

    media_id: str
    key: Key
    pixels: Any
    problem: str | None


class ExtractedBlock(NamedTuple):
    """What a block came to: the key of each photo, what is wrong with some, and the outputs that are new."""

    keys: list[Key]
    problems: list[tuple[str, str]]
    new: list[Key]
    outputs: dict[str, NDArray[Any]]


@dataclass(frozen=True)
class BlockExtraction:
    """What is done with a block of photos, wherever it is done: they are read, and the network looks at the new ones.

    Args:
        extractor: The network.
        stored: What need not be computed.
    """

    extractor: Extractor
    stored: Container[Key]

    def read(self, block: PhotoBlock) -> list[_Read]:
        """The first half: reading and decoding, which threads can do ahead of the network."""
        data = read_each(block.read_medium, block.media_ids)
        return [self._read(*one) for one in zip(block.media_ids, data, block.boxes, strict=True)]

    def compute(self, photos: Sequence[_Read]) -> ExtractedBlock:
        """The second half: the network."""
        new = {photo.key: photo.pixels for photo in photos if photo.pixels is not None}
        new = {key: pixels for key, pixels in new.items() if key not in self.stored}
        outputs = self.extractor(list(new.values())) if new else {}
        problems = [(photo.media_id, photo.problem) for photo in photos if photo.problem]
        return ExtractedBlock([photo.key for photo in photos], problems, list(new), outputs)

    def __call__(self, block: PhotoBlock) -> ExtractedBlock:
        """Both halves, for a worker of a cluster."""
        return self.compute(self.read(block))

    def _read(self, media_id: str, data: bytes, box: Box | None) -> _Read:
        key = cropped_key(content_key(data), box)
        if key in self.stored:
            return _Read(media_id, key, None, None)
        try:
            pixels = self.extractor.decode(data) if box is None else self.extractor.decode(data, box)
            return _Read(media_id, key, pixels, None)
        except PhotoError as error:
            return _Read(media_id, key, None, str(error))


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

    On this machine, reading and decoding run in threads ahead of the network; on a cluster (`foundation.engines`), a
    worker does all of a block. What is computed is stored here, block by block, so that an interrupted extraction goes
    on where it stopped. Features of very many photos lie in a file rather than in memory (`FeatureStore.get`).

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
    keys = fill_store(media_ids, read_medium, extractor, store, boxes=boxes, where=where, what=what, expected=expected)
    return store.get(keys, dtype=np.float32)


def fill_store(
    media_ids: Sequence[str],
    read_medium: Callable[[str], bytes],
    extractor: Extractor,
    store: FeatureStore,
    *,
    boxes: PhotoBoxes | None = None,
    where: Callable[[str], str] = str,
    what: str = "photos",
    expected: str = "a photo that can be read to its end",
) -> NDArray[np.uint8]:
    """Stores the features of photos and returns the key of each as a row of bytes; arguments as in `extract`.

    No features are held beyond the blocks that are being worked on.
    """
    keys, problems = bytearray(), list[tuple[str, str]]()
    with store.gathering(), progress(f"reading {what}", len(media_ids)) as tick:
        for done in _extracted(_blocks(media_ids, read_medium, boxes or PhotoBoxes()), extractor, store):
            keys += b"".join(done.keys)
            problems += done.problems
            store.add_new(done.new, done.outputs)
            tick(len(done.keys))
    if problems:
        media_id, problem = problems[0]
        more = f" {len(problems) - 1} more photos cannot be read either." if len(problems) > 1 else ""
        hint = f"Replace the file or remove it (and its line in any table).{more}"
        raise InputError(where(media_id), found=problem, expected=expected, hint=hint)
    return np.frombuffer(keys, dtype=np.uint8).reshape(len(media_ids), KEY_BYTES)


def _extracted(blocks: Iterator[PhotoBlock], extractor: Extractor, store: FeatureStore) -> Iterator[ExtractedBlock]:
    """The blocks of an extraction, in their order, done by a cluster where one was chosen."""
    executor = cluster()
    if executor is not None:
        return map_blocks(BlockExtraction(extractor, store.stored_keys()), blocks, executor)
    here = BlockExtraction(extractor, store)
    return map(here.compute, map_blocks(here.read, blocks, all_cores("thread")))


def _blocks(media_ids: Sequence[str], read_medium: Callable[[str], bytes], boxes: PhotoBoxes) -> Iterator[PhotoBlock]:
    for block in blocks_of(media_ids, BLOCK_PHOTOS):
        yield PhotoBlock(block, [boxes.of(one) for one in block], reader_of(read_medium, block))
