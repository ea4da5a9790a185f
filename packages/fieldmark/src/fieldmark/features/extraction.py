"""Features of many photos: read, look up, decode and compute only what the store does not hold."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.features.crops import Box, PhotoBoxes
from fieldmark.features.photo_blocks import BlockReading, PhotoBlock, ReadPhoto
from fieldmark.features.photos import Preprocessing
from fieldmark.features.resampling import resampler_for_many
from fieldmark.features.square_readers import SquareReaders, can_be_sent, worth_processes
from fieldmark.features.store import KEY_BYTES, FeatureStore, Key
from fieldmark.work.blocks import all_cores, blocks_of, map_blocks, reader_of
from fieldmark.work.engines import cluster
from fieldmark.work.progress import progress

BLOCK_PHOTOS = 64
# Files that cannot be read, listed one by one up to so many.
LISTED = 50
READABLE = "a photo that can be read to its end"
# What is stored of a photo besides the outputs of the network, so that `fit` can tell of copies.
LOOKS = "looks"
# Cores that are left to the threads that decode on a GPU, run the network and write the store.
OTHER_THREADS = 4


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

    @property
    def read(self) -> BlockReading:
        """The first half: reading and decoding, which threads or processes can do ahead of the network."""
        return BlockReading(self.extractor.decode, self.stored)

    def compute(self, photos: Sequence[ReadPhoto]) -> ExtractedBlock:
        """The second half: the network."""
        new = {photo.key: photo for photo in photos if photo.pixels is not None and photo.key not in self.stored}
        outputs = self.extractor([photo.pixels for photo in new.values()]) if new else {}
        looks = [photo.look for photo in new.values() if photo.look is not None]
        if looks:
            outputs = {**outputs, LOOKS: np.stack(looks)}
        problems = [(photo.media_id, photo.problem) for photo in photos if photo.problem]
        return ExtractedBlock([photo.key for photo in photos], problems, list(new), outputs)

    def __call__(self, block: PhotoBlock) -> ExtractedBlock:
        """Both halves, for a worker of a cluster."""
        return self.compute(self.read(block))


def extract(
    media_ids: Sequence[str],
    read_medium: Callable[[str], bytes],
    extractor: Extractor,
    store: FeatureStore,
    *,
    boxes: PhotoBoxes | None = None,
    where: Callable[[str], str] = str,
    what: str = "photos",
    expected: str = READABLE,
) -> NDArray[np.float32]:
    """Returns the features of photos, one row per id.

    On this machine, reading and decoding run in threads ahead of the network; on a cluster (`work.engines`), a
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


class UnreadableError(InputError):
    """Files that cannot be read."""


def fill_store(
    media_ids: Sequence[str],
    read_medium: Callable[[str], bytes],
    extractor: Extractor,
    store: FeatureStore,
    *,
    boxes: PhotoBoxes | None = None,
    where: Callable[[str], str] = str,
    what: str = "photos",
    expected: str = READABLE,
) -> NDArray[np.uint8]:
    """Stores the features of photos and returns the key of each as a row of bytes; arguments as in `extract`.

    No features are held beyond the blocks that are being worked on.
    """
    keys, problems = bytearray(), list[tuple[str, str]]()
    with store.gathering(), progress(f"reading {what}", len(media_ids)) as tick:
        for done in _extracted(media_ids, read_medium, boxes or PhotoBoxes(), extractor, store):
            keys += b"".join(done.keys)
            problems += done.problems
            store.add_new(done.new, done.outputs)
            tick(len(done.keys))
    if problems:
        raise unreadable(problems, where, expected)
    return np.frombuffer(keys, dtype=np.uint8).reshape(len(media_ids), KEY_BYTES)


def unreadable(
    problems: Sequence[tuple[str, str]], where: Callable[[str], str], expected: str = READABLE
) -> UnreadableError:
    """The error about files that cannot be read: the first of them, what to do, and which others there are."""
    (media_id, problem), *others = problems
    hint = "Replace the file or remove it (and its line in any table), or leave such files out with --skip-broken."
    if others:
        listed = "".join(f"\n  {where(other)}: {wrong}" for other, wrong in others[:LISTED])
        left = f"\n  and {len(others) - LISTED:,} more" if len(others) > LISTED else ""
        hint += f" {len(others):,} more cannot be read either:{listed}{left}"
    return UnreadableError(where(media_id), found=problem, expected=expected, hint=hint)


def _extracted(
    media_ids: Sequence[str],
    read_medium: Callable[[str], bytes],
    boxes: PhotoBoxes,
    extractor: Extractor,
    store: FeatureStore,
) -> Iterator[ExtractedBlock]:
    """The blocks of an extraction, in their order, done by a cluster where one was chosen."""
    blocks = _blocks(media_ids, read_medium, boxes)
    executor = cluster()
    if executor is not None:
        yield from map_blocks(BlockExtraction(extractor, store.stored_keys()), blocks, executor)
        return
    if getattr(extractor, "decodes_on_gpu", False):
        yield from _on_gpu(extractor, store, blocks, len(media_ids))
        return
    resampler_for_many.expect(len(media_ids))
    here = BlockExtraction(extractor, store)
    example = next(_blocks(media_ids[:1], read_medium, boxes), None)
    with _reading(extractor, store, example, len(media_ids)) as read:
        yield from map(here.compute, map_blocks(read, blocks, all_cores("thread")))


def _on_gpu(extractor: Any, store: FeatureStore, blocks: Iterator[PhotoBlock], photos: int) -> Iterator[ExtractedBlock]:
    from fieldmark.features.gpu_extraction import GpuExtraction

    example, cores = next(blocks, None), all_cores("thread").workers
    if example is None:
        return
    processes = cores - OTHER_THREADS if worth_processes(cores, photos) and can_be_sent(example) else 0
    device = next(extractor.network.parameters()).device.type
    work = GpuExtraction(extractor.on_device, extractor.preprocessing, store, device, processes, store.folder)
    for read, outputs in work(chain([example], blocks), photos):
        problems = [(photo.media_id, photo.problem) for photo in read if photo.problem]
        new = [photo for photo in read if photo.pixels is not None]
        if new:
            squares = partial(_again, new, extractor)
            outputs = {LOOKS: outputs[LOOKS], **extractor.checked({**outputs}, squares)}
        yield ExtractedBlock([photo.key for photo in read], problems, [photo.key for photo in new], outputs)


def _again(photos: Sequence[ReadPhoto], extractor: Extractor) -> list[Any]:
    """The squares of photos that the network has to look at once more."""
    return [extractor.decode(one.pixels.tobytes()) if one.pixels.ndim == 1 else one.pixels for one in photos]


@contextmanager
def _reading(
    extractor: Extractor, store: FeatureStore, example: PhotoBlock | None, photos: int
) -> Iterator[Callable[[PhotoBlock], list[ReadPhoto]]]:
    """What threads call to read a block: they read it themselves, or have processes do it for a network on a GPU."""
    how: Preprocessing | None = getattr(extractor, "squares_for_gpu", None)
    cores = all_cores("thread").workers
    if how is None or example is None or not worth_processes(cores, photos) or not can_be_sent(example):
        yield BlockReading(extractor.decode, store)
        return
    with SquareReaders(how, store.folder, cores, BLOCK_PHOTOS) as read:
        yield read


def _blocks(media_ids: Sequence[str], read_medium: Callable[[str], bytes], boxes: PhotoBoxes) -> Iterator[PhotoBlock]:
    for block in blocks_of(media_ids, BLOCK_PHOTOS):
        yield PhotoBlock(block, [boxes.of(one) for one in block], reader_of(read_medium, block))
