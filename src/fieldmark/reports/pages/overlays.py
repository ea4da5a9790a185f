"""Photos with the outlines and colors of true and answered masks, as text that can stand in a page."""

from __future__ import annotations

import base64
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from fieldmark.datasets.base import Dataset
from fieldmark.errors import InputError
from fieldmark.foundation.masks import Mask, resized

LONGEST_PX = 256
JPEG_QUALITY = 82
# The outline of the truth, what only it has, and what only the answer has: told apart without red and green.
OUTLINE, MISSED, EXTRA = (255, 255, 255), (0, 114, 178), (230, 159, 0)
STRENGTH = 0.6
DIMMED = 0.55


def overlay_uri(dataset: Dataset, media_id: str, true: Mask, answer: Mask) -> str | None:
    """A photo with its masks as a data URI, None where it cannot be read."""
    try:
        with Image.open(BytesIO(dataset.read_medium(media_id))) as opened:
            opened.draft("RGB", (2 * LONGEST_PX, 2 * LONGEST_PX))
            photo = ImageOps.exif_transpose(opened).convert("RGB")
    except (InputError, OSError, Image.DecompressionBombError):
        return None
    photo.thumbnail((LONGEST_PX, LONGEST_PX), Image.Resampling.LANCZOS)
    buffer = BytesIO()
    Image.fromarray(painted(np.asarray(photo), true, answer)).save(buffer, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def painted(pixels: NDArray[np.uint8], true: Mask, answer: Mask) -> NDArray[np.uint8]:
    """The photo with both masks: as it is where they agree on the object, colored where they differ, else dimmed."""
    shape = pixels.shape[:2]
    there, drawn = resized(true, shape), resized(answer, shape)
    colored = pixels.astype(np.float64)
    colored[~there & ~drawn] *= DIMMED
    for mask, color in ((there & ~drawn, MISSED), (drawn & ~there, EXTRA)):
        colored[mask] = (1 - STRENGTH) * colored[mask] + STRENGTH * np.array(color)
    colored[_outline(there)] = OUTLINE
    return np.asarray(colored.round(), dtype=np.uint8)


def _outline(mask: Mask) -> Mask:
    """The pixels of a mask that touch what is outside of it."""
    inside = np.pad(mask, 1, mode="edge")
    surrounded = inside[:-2, 1:-1] & inside[2:, 1:-1] & inside[1:-1, :-2] & inside[1:-1, 2:]
    return np.asarray(mask & ~surrounded)
