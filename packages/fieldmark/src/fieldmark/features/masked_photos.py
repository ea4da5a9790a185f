"""Photos of which some pixels are hidden: the object alone, what surrounds it, or one part of it.

What is hidden has the mean color of what is shown: that of the whole photo would tell the color of a hidden object.
Everything is cut from the photo at its own size, before any resizing.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from fieldmark.features.crops import box_of_masks
from fieldmark.features.photos import decode_photo
from fieldmark.masks.parts import Mask, masks_by_part, resized, whole
from fieldmark.masks.runlengths import MaskRow

# The margin around a box, as for crops of photos.
MARGIN = 0.1
GRAY = 128
SHOWN = {
    "whole": "the photo as it is",
    "crop": "the box around the object, with a margin of 10 %",
    "foreground": "the object alone",
    "background": "everything but the object, whose outline is left",
    "surroundings": "everything but the box around the object",
}


@dataclass(frozen=True)
class MaskedPhotos:
    """Photos as they are shown with some pixels hidden; one without a mask is shown as it is.

    Args:
        read_photo: Returns the bytes of a photo.
        rows_of: The masks of each photo as run lengths.
        shown: One of `SHOWN`, or the name of a part.
    """

    read_photo: Callable[[str], bytes]
    rows_of: Mapping[str, Sequence[MaskRow]]
    shown: str

    def read(self, media_id: str) -> bytes:
        """The bytes of the changed photo, the same whenever it is asked for."""
        data, rows = self.read_photo(media_id), self.rows_of.get(media_id, ())
        if self.shown == "whole" or not rows:
            return data
        buffer = io.BytesIO()
        hide(decode_photo(data), masks_by_part(rows), self.shown).save(buffer, "PNG", compress_level=1)
        return buffer.getvalue()


def hide(photo: Image.Image, masks: Mapping[str, Mask], shown: str) -> Image.Image:
    """The photo with some pixels hidden, and cut where only a box is shown.

    Args:
        photo: The photo.
        masks: Its masks by part.
        shown: One of `SHOWN`, or the name of a part; a part that is not there leaves nothing to see.
    """
    pixels = np.array(photo)
    shape = pixels.shape[:2]
    body = resized(whole(masks), shape)
    if shown == "whole":
        return photo
    if shown in SHOWN:
        seen = {"crop": np.ones(shape, dtype=np.bool_), "foreground": body, "background": ~body}
        visible = seen[shown] if shown in seen else ~_box(body)
    else:
        visible = resized(masks[shown], shape) if shown in masks else np.zeros(shape, dtype=np.bool_)
    pixels[~visible] = pixels[visible].mean(axis=0).round().astype(np.uint8) if visible.any() else GRAY
    changed = Image.fromarray(pixels)
    cut = body if shown == "crop" else visible
    if shown in ("background", "surroundings") or (box := box_of_masks({"": cut}, MARGIN)) is None:
        return changed
    edges = np.array(box) * np.array([*photo.size, *photo.size])
    left, top, right, bottom = (int(edge) for edge in edges.round())
    return changed.crop((left, top, max(right, left + 1), max(bottom, top + 1)))


def _box(mask: Mask) -> Mask:
    """The box around a mask, filled."""
    filled = np.zeros_like(mask)
    lines, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if len(lines):
        filled[lines[0] : lines[-1] + 1, columns[0] : columns[-1] + 1] = True
    return filled
