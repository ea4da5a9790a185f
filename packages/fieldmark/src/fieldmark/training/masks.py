"""Photos with masks as examples: each mask is cropped and mirrored with its photo.

A mask holds one class per pixel: 0 for the background, 1 for what belongs to the whole and to no named part, then the
parts. Where parts overlap, the smaller one is on top: a ring lies on a stem.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.masks.parts import Mask, resized, whole
from fieldmark.storage.files import appearing_folder
from fieldmark.training.boxes import Boxes, Crops
from fieldmark.training.draws import Draws
from fieldmark.training.objectives import pixels_of_classes
from fieldmark.training.packs import Pack
from fieldmark.work.blocks import all_cores, blocks_of, map_blocks
from fieldmark.work.progress import progress

if TYPE_CHECKING:
    from fieldmark.runs.masks import Masks

ClassMask = NDArray[np.uint8]

BACKGROUND, REST, FIRST_PART = 0, 1, 2
PACK_VERSION = 1
BLOCK_MASKS = 32


def class_mask(masks: dict[str, Mask], parts: Sequence[str], side_px: int) -> ClassMask:
    """One class per pixel of a square that the masks of a photo are squashed to.

    >>> cap = np.array([[True, True], [False, False]])
    >>> class_mask({"fruiting_body": cap | cap[::-1], "cap": cap}, ["cap"], 2).tolist()
    [[2, 2], [1, 1]]
    """
    square = (side_px, side_px)
    drawn = resized(whole(masks), square).astype(np.uint8)  # True becomes REST
    present = [(resized(masks[name], square), place) for place, name in enumerate(parts) if name in masks]
    for mask, place in sorted(present, key=lambda pair: -int(np.count_nonzero(pair[0]))):
        drawn[mask] = FIRST_PART + place
    return drawn


def mask_pack(masks: Masks, parts: Sequence[str], side_px: int, root: Path) -> NDArray[np.uint8]:
    """The class masks of all photos as one array on disk, made where it is not there yet."""
    folder = root / _digest(masks, parts, side_px)
    if not folder.exists():
        with appearing_folder(folder, overwrite=True) as partial:
            shape = (len(masks.items), side_px, side_px)
            packed = np.lib.format.open_memmap(partial / "masks.npy", mode="w+", dtype=np.uint8, shape=shape)
            row = 0
            with progress("packing masks", len(masks.items)) as tick:

                def prepare(block: Sequence[str]) -> list[ClassMask]:
                    return [class_mask(masks.open(item), parts, side_px) for item in block]

                for block in map_blocks(prepare, blocks_of(masks.items, BLOCK_MASKS), all_cores("thread")):
                    packed[row : row + len(block)] = block
                    row += len(block)
                    tick(len(block))
            packed.flush()
    return np.asarray(np.load(folder / "masks.npy", mmap_mode="r"))


def _digest(masks: Masks, parts: Sequence[str], side_px: int) -> str:
    hasher = hashlib.blake2b(f"masks {PACK_VERSION} {side_px} {list(parts)}".encode(), digest_size=16)
    for item, rows in zip(masks.items, masks.rows, strict=True):
        hasher.update(item.encode() + b"\0")
        for row in rows:
            hasher.update(f"{row.label} {row.height} {row.width}".encode() + row.runs.tobytes())
    return hasher.hexdigest()


@dataclass(frozen=True)
class MaskSource:
    """Photos with class masks.

    Args:
        photos: Where the squares of photos come from.
        rows: Which of them, in order.
        masks: The class masks of these rows.
        classes: How many classes there are.
        size_px: The side of what the network answers.
        groups: The observation of each.
        crops: Which part of each is shown.
    """

    photos: Pack
    rows: NDArray[np.int64]
    masks: NDArray[np.uint8]
    classes: int
    size_px: int
    groups: NDArray[np.int64] | None
    crops: Crops

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        return pixels_of_classes(self.masks, self.classes)

    def read(self, rows: NDArray[np.int64], draws: Draws | None) -> tuple[NDArray[Any], ...]:
        squares, aspects = self.photos.squares(self.rows[rows])
        return squares, self.crops.boxes(aspects, draws)

    def read_targets(self, rows: NDArray[np.int64], draws: Draws | None) -> NDArray[np.uint8]:
        boxes = self.crops.boxes(self.photos.aspects[self.rows[rows]], draws)
        return resample_nearest(self.masks[rows], boxes, self.size_px)


def resample_nearest(masks: NDArray[np.uint8], boxes: Boxes, size_px: int) -> NDArray[np.uint8]:
    """Boxes of square masks scaled to `size_px`; each pixel has the class of the nearest one.

    >>> mirrored = np.array([[1.0, 0.0, 0.0, 1.0]], dtype=np.float32)
    >>> resample_nearest(np.array([[[0, 1], [2, 3]]], dtype=np.uint8), mirrored, 2).tolist()
    [[[1, 0], [3, 2]]]
    """
    side = masks.shape[1]
    grid = (np.arange(size_px) + 0.5) / size_px
    left, top, right, bottom = (boxes[:, column, None] for column in range(4))
    columns = np.clip(((left + (right - left) * grid) * side).astype(np.int64), 0, side - 1)
    lines = np.clip(((top + (bottom - top) * grid) * side).astype(np.int64), 0, side - 1)
    return np.asarray(masks[np.arange(len(masks))[:, None, None], lines[:, :, None], columns[:, None, :]])
