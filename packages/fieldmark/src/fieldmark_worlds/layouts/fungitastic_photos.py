"""Painting the photos of FungiTastic with what belongs to them: smaller and larger copies, captions and masks.

Every photo is painted once, at full size; the small ones are reduced from it, whether the large one is published or
not. Otherwise grain and softness would tell which photos belong to Mini. Workers import this module afresh, so it
imports no table library.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fieldmark.work.blocks import Executor, all_cores, blocks_of, map_blocks
from fieldmark.work.progress import progress
from fieldmark_worlds.fungi.captions import caption_of
from fieldmark_worlds.fungi.painter import paint_with_parts
from fieldmark_worlds.fungi.photos import JPEG_QUALITY, PhotoJob
from fieldmark_worlds.fungi.spores import paint_spores
from fieldmark_worlds.nature.kingdom import Specimen

# The sizes that stand in for the release's: photos called "300p" have at most 300 pixels, those called "fullsize" more.
SMALL_PX = 192
FULL_PX = 224

PHOTOS_PER_BLOCK = 16
_CAPTION_ASPECT = 1
# A part with fewer of its photo's pixels is not mentioned in the caption.
_NOTICED_SHARE = 0.004

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ReleasePhoto:
    """One photo and all that is published of it.

    Attributes:
        job: What to paint; its file is where the small photo goes.
        copies: Where else the very same small photo goes.
        fullsize: Where the large photo goes, if anywhere.
        caption: Where the caption goes.
        microscopic: Whether it shows spores.
        masked: Whether its masks are published.
    """

    job: PhotoJob
    copies: tuple[str, ...]
    fullsize: tuple[str, ...]
    caption: str
    microscopic: bool
    masked: bool

    @property
    def files(self) -> tuple[str, ...]:
        """Every file that is written for it."""
        return (self.job.file, *self.copies, *self.fullsize, self.caption)


@dataclass(frozen=True)
class PublishedMask:
    """One part on one photo, as it is published."""

    file_name: str
    label: str
    width: int
    height: int
    rle: list[int]


def paint_release(root: Path, photos: Sequence[ReleasePhoto], executor: Executor | None = None) -> list[PublishedMask]:
    """Paints photos into files below `root` and returns the masks of those that have any, in the same order."""
    for folder in sorted({(root / file).parent for photo in photos for file in photo.files}):
        folder.mkdir(parents=True, exist_ok=True)
    rows: list[PublishedMask] = []
    with progress("painting photos", len(photos)) as tick:
        blocks = blocks_of(photos, PHOTOS_PER_BLOCK)
        for done, masks in map_blocks(partial(_paint_block, root), blocks, executor or all_cores()):
            rows += masks
            tick(done)
    return rows


def _paint_block(root: Path, photos: Sequence[ReleasePhoto]) -> tuple[int, list[PublishedMask]]:
    rows: list[PublishedMask] = []
    for photo in photos:
        picture, parts = paint_parts(photo.job, microscopic=photo.microscopic)
        small = _jpeg(picture.resize((SMALL_PX, SMALL_PX), Image.Resampling.LANCZOS))
        for file in (photo.job.file, *photo.copies):
            (root / file).write_bytes(small)
        large = _jpeg(picture) if photo.fullsize else b""
        for file in photo.fullsize:
            (root / file).write_bytes(large)
        (root / photo.caption).write_text(json.dumps(_caption(photo, parts), ensure_ascii=False), encoding="utf-8")
        if photo.masked:
            rows += mask_rows(Path(photo.job.file).name, parts)
    return len(photos), rows


def paint_parts(job: PhotoJob, *, microscopic: bool) -> tuple[Image.Image, dict[str, Mask]]:
    """Paints one photo at full size, and returns the mask of every part that can be seen, by the release's label."""
    if microscopic:
        picture, spores = paint_spores(job.specimen, job.rng(), FULL_PX, camera=job.camera)
        return picture, {"microscopic": spores}
    picture, parts = paint_with_parts(job.specimen, job.rng(), FULL_PX, camera=job.camera)
    return picture, {_label(part, job.specimen): mask for part, mask in parts.items() if mask.any()}


def _label(part: str, specimen: Specimen) -> str:
    # The painter counts teeth and ridges as gills; the release has labels of their own for them.
    return str(specimen["underside"]) if part in ("gills", "pores") else part


def mask_rows(file_name: str, parts: dict[str, Mask]) -> list[PublishedMask]:
    """Returns one row per part, and all of them merged as the last one; spores have no fruiting body."""
    layers = list(parts.items())
    if "microscopic" not in parts and layers:
        layers.append(("fruiting_body", np.logical_or.reduce(list(parts.values()))))
    return [PublishedMask(file_name, label, mask.shape[1], mask.shape[0], run_lengths(mask)) for label, mask in layers]


def run_lengths(mask: Mask) -> list[int]:
    """Returns how long background and part last by turns, row by row from the top, and then the box of the part.

    The first run is of background, if of length 0. The box is left, top, width and height.

    >>> run_lengths(np.array([[False, True, True], [False, False, False]]))
    [1, 2, 3, 1, 0, 2, 1]
    """
    flat = mask.ravel()
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    runs = np.diff(np.concatenate([[0], changes, [flat.size]])).tolist()
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    left, top = int(columns[0]), int(rows[0])
    box = [left, top, int(columns[-1]) - left + 1, int(rows[-1]) - top + 1]
    return [*([0] if flat[0] else []), *runs, *box]


def _caption(photo: ReleasePhoto, parts: dict[str, Mask]) -> str:
    noticed = {label for label, mask in parts.items() if mask.mean() >= _NOTICED_SHARE}
    visible = {"spores"} if photo.microscopic else noticed
    return caption_of(photo.job.specimen, visible, photo.job.rng(_CAPTION_ASPECT))


def _jpeg(picture: Image.Image) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=JPEG_QUALITY)
    return stream.getvalue()
