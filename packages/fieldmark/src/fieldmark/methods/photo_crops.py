"""The boxes of the photos of a part, by whatever source a setting names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fieldmark.errors import MisuseError
from fieldmark.features.crops import DETECTOR_FILE, FOUND, Box, PhotoBoxes, box_of_masks, box_of_pixels
from fieldmark.features.finders import found_boxes, make_finder
from fieldmark.features.photos import PhotoError, upright_size
from fieldmark.features.store import default_store
from fieldmark.methods.base import media_of
from fieldmark.releases.photo_boxes import ShareBox
from fieldmark.tables.inputs import MediaFiles
from fieldmark.views.parts import Part
from fieldmark.work.blocks import all_cores, blocks_of, map_blocks
from fieldmark.work.progress import progress

BLOCK_PHOTOS = 64


def boxes_of(part: Part, crop: str, margin: float, store: Path | None = None) -> PhotoBoxes:
    """The boxes of all photos of a part.

    Args:
        part: The part.
        crop: The name of a finder, the file of a detector, "masks", "boxes", or empty (or "none") for whole photos.
        margin: See `features.crops.grown`.
        store: The root of the feature store, if not in the user's cache.

    Raises:
        MisuseError: When the part has no masks or boxes.
        InputError: When a box does not lie on its photo.
    """
    if crop in ("", "none"):
        return PhotoBoxes()
    media = media_of(part)
    ids = part.items["media_ids"].explode().drop_nulls().unique(maintain_order=True).to_list()
    if crop in FOUND or crop.endswith(DETECTOR_FILE):
        return found_boxes(make_finder(crop), ids, media.read, store or default_store(), margin)
    if crop not in part.layers:
        raise MisuseError(
            f"crop={crop}: there are no {crop} of these photos, or the task does not allow them. "
            "crop=saliency finds the organism in any photo."
        )
    box_of = _of_mask(margin) if crop == "masks" else _of_pixels(media, margin)
    return _given_boxes(ids, part.layers[crop].read, box_of, crop)


def _of_mask(margin: float) -> Callable[[str, Any], Box | None]:
    return lambda _, masks: box_of_masks(masks, margin)


def _of_pixels(media: MediaFiles, margin: float) -> Callable[[str, Any], Box | None]:
    def box_of(media_id: str, drawn: Any) -> Box | None:
        try:
            size = upright_size(media.read(media_id))
        except PhotoError:  # whoever decodes the photo says so
            return None
        on_photo = drawn.on(*size) if isinstance(drawn, ShareBox) else drawn
        return box_of_pixels(on_photo, size, media.where(media_id), margin)

    return box_of


def _given_boxes(
    ids: Sequence[str],
    read: Callable[[Sequence[str]], list[Any]],
    box_of: Callable[[str, Any], Box | None],
    crop: str,
) -> PhotoBoxes:
    def of_block(block: Sequence[str]) -> dict[str, Box]:
        found = {
            media_id: None if given is None else box_of(media_id, given)
            for media_id, given in zip(block, read(block), strict=True)
        }
        return {media_id: box for media_id, box in found.items() if box is not None}

    boxes: dict[str, Box] = {}
    with progress(f"reading {crop}", len(ids)) as tick:
        for more in map_blocks(of_block, blocks_of(ids, BLOCK_PHOTOS), all_cores("thread")):
            boxes |= more
            tick(min(BLOCK_PHOTOS, len(ids)))
    return PhotoBoxes(crop, boxes, len(ids))
