"""Boxes: which part of a photo is shown to a network.

A box is found by a network (`features.finders`), by a mask or by a person, around the organism and close to it. Then
it grows: by a margin, to a square as far as the photo reaches, and to a smallest side. A photo without a box is shown
whole, and so is one whose box would cover nearly all of it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError

# Where boxes come from; empty shows whole photos.
FOUND, GIVEN = ("saliency", "sam", "yolox", "detector"), ("masks", "boxes")
SOURCES = (*FOUND, *GIVEN)
# What the file of a detector ends with that was trained on boxes (`fieldmark detector`).
DETECTOR_FILE = ".detector"
# What keeps the organism in sight when a network cuts the middle 0.875 out of a photo: 1.2 x 0.875 > 1.
USUAL_MARGIN = 0.1
WIDEST_MARGIN = 2.0
# A box is at least this share of the short side of the photo: less is a few pixels, blown up.
SMALLEST_SIDE = 0.25
# A box that covers at least this share of the photo leaves out nothing that is worth a second look.
NEARLY_ALL = 0.9
# Boxes are drawn by hand and rounded: so many pixels beyond the edge are forgiven.
BEYOND_EDGE_PX = 1.0

WITHOUT_BOX = {
    "saliency": "have nothing that stands out, or little else",
    "sam": "have an outline that covers nearly everything",
    "yolox": "have no animal in sight, or one that covers nearly everything",
    "detector": "have no thing of COCO in sight, or one that covers nearly everything",
    "masks": "have no mask, or one that covers nearly everything",
    "boxes": "have no box, or one that covers nearly everything",
}


UNSEEN = "have nothing in sight that it was trained on, or a box that covers nearly everything"


class Box(NamedTuple):
    """A part of a photo: its edges as shares of the width and height of the upright photo."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def shortest(self) -> float:
        """The smaller of its two sides, each as a share of that side of the photo."""
        return min(self.right - self.left, self.bottom - self.top)

    @property
    def key(self) -> bytes:
        """Bytes that are the same for the same box and for no other."""
        return struct.pack("<4d", *self)

    def pixels(self, width: int, height: int) -> tuple[int, int, int, int]:
        """The box on a photo of some size in whole pixels, at least one each way.

        >>> Box(0.1, 0.5, 0.35, 1.0).pixels(10, 10), Box(0.99, 0.99, 1.0, 1.0).pixels(1, 1)
        ((1, 5, 4, 10), (0, 0, 1, 1))
        """
        left, top = min(int(self.left * width), width - 1), min(int(self.top * height), height - 1)
        right, bottom = -int(-self.right * width // 1), -int(-self.bottom * height // 1)
        return left, top, min(max(right, left + 1), width), min(max(bottom, top + 1), height)


class DrawnBox(Protocol):
    """A box as people write it down: pixels of the upright photo, and the line it comes from."""

    @property
    def x(self) -> float: ...

    @property
    def y(self) -> float: ...

    @property
    def width(self) -> float: ...

    @property
    def height(self) -> float: ...

    @property
    def written_in(self) -> str: ...


@dataclass(frozen=True)
class PhotoBoxes:
    """The boxes of photos by their ids.

    Args:
        source: One of `SOURCES`, or empty where all photos are shown whole.
        boxes: The box of each photo that is cropped.
        photos: How many photos were looked at.
    """

    source: str = ""
    boxes: Mapping[str, Box] = field(default_factory=dict)
    photos: int = 0

    def of(self, media_id: str) -> Box | None:
        """The box of one photo, None where it is shown whole."""
        return self.boxes.get(media_id)

    @property
    def remark(self) -> str:
        """What a person should know: how many photos are shown whole although crops were asked for."""
        return remark_on_whole(self.source, self.photos - len(self.boxes), self.photos)


def finder_digest(name: str, *recipe: object) -> str:
    """A fingerprint of everything that the boxes of a finder depend on, under its name."""
    text = " ".join(str(part) for part in recipe)
    return f"{name}-{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"


def look_of(box: Box | None, aspect: float) -> NDArray[np.float32]:
    """What is kept of a look at a photo: the box, zeros where there is none, and width / height of the photo."""
    return np.array([*(box or Box(0.0, 0.0, 0.0, 0.0)), aspect], dtype=np.float32)


def remark_on_whole(source: str, whole: int, photos: int) -> str:
    """The sentence about photos that are shown whole although crops were asked for; empty where there are none.

    >>> remark_on_whole("boxes", 2, 40)
    'crop=boxes: 2 of 40 photos have no box, or one that covers nearly everything, and are shown whole.'
    """
    return (
        f"crop={source}: {whole:,} of {photos:,} photos {WITHOUT_BOX.get(source, UNSEEN)}, and are shown whole."
        if whole
        else ""
    )


def cropped_key(content: bytes, box: Box | None) -> bytes:
    """The key of what a network sees: that of the content for a whole photo, and another one for each box of it."""
    return content if box is None else hashlib.blake2b(content + box.key, digest_size=len(content)).digest()


def grown(box: Box, aspect: float, margin: float = USUAL_MARGIN) -> Box | None:
    """The box as it is cut out, None where that is nearly the whole photo.

    The longer side, in pixels, grows by the margin at both ends and is at least `SMALLEST_SIDE` of the short side of
    the photo. The other side grows to the same length, so that the crop is a square. What does not fit between two
    edges of the photo ends there; what sticks out at one edge moves inside.

    Args:
        box: The box close around the organism.
        aspect: Width / height of the photo.
        margin: The share of the longer side that is added at each end.

    >>> grown(Box(0.4, 0.4, 0.6, 0.5), aspect=1.0, margin=0.5)
    Box(left=0.3, top=0.25, right=0.7, bottom=0.65)
    >>> grown(Box(0.0, 0.0, 0.9, 0.9), aspect=1.0) is None
    True
    """
    width, height = (aspect, 1.0) if aspect >= 1 else (1.0, 1 / aspect)  # the short side of the photo is 1
    longer = max((box.right - box.left) * width, (box.bottom - box.top) * height)
    side = max(longer * (1 + 2 * margin), SMALLEST_SIDE)
    left, right = _around(box.left, box.right, side / width)
    top, bottom = _around(box.top, box.bottom, side / height)
    if (right - left) * (bottom - top) >= NEARLY_ALL:
        return None
    return Box(left, top, right, bottom)


def _around(low: float, high: float, length: float) -> tuple[float, float]:
    """A stretch of some length around the middle of another one, moved to lie between 0 and 1."""
    if length >= 1:
        return 0.0, 1.0
    start = min(max((low + high - length) / 2, 0.0), 1.0 - length)
    return round(start, 6), round(start + length, 6)


def box_around(mask: NDArray[np.bool_]) -> Box | None:
    """The smallest box around all that is marked, None where nothing is.

    >>> box_around(np.array([[0, 0, 0, 0], [0, 1, 1, 0]], dtype=bool))
    Box(left=0.25, top=0.5, right=0.75, bottom=1.0)
    """
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    height, width = mask.shape
    edges = columns[0] / width, rows[0] / height, (columns[-1] + 1) / width, (rows[-1] + 1) / height
    return Box(*(float(edge) for edge in edges))


def box_of_masks(masks: Mapping[str, NDArray[Any]], margin: float) -> Box | None:
    """The box around all parts of a photo that are masked."""
    if not masks:
        return None
    together = np.logical_or.reduce([np.asarray(mask, dtype=np.bool_) for mask in masks.values()])
    box = box_around(together)
    return None if box is None else grown(box, together.shape[1] / together.shape[0], margin)


def box_of_pixels(drawn: DrawnBox, size: tuple[int, int], where: str, margin: float) -> Box | None:
    """The box that a person has drawn on a photo, as it is cut out; see `box_as_drawn` and `grown`."""
    return grown(box_as_drawn(drawn, size, where), size[0] / size[1], margin)


def box_as_drawn(drawn: DrawnBox, size: tuple[int, int], where: str) -> Box:
    """The box that a person has drawn on a photo, close around the organism.

    Args:
        drawn: The box.
        size: Width and height of the upright photo in pixels.
        where: The place of the photo, for messages.

    Raises:
        InputError: When the box does not lie on the photo.
    """
    width, height = size
    right, bottom = drawn.x + drawn.width, drawn.y + drawn.height
    if right > width + BEYOND_EDGE_PX or bottom > height + BEYOND_EDGE_PX:
        raise InputError(
            drawn.written_in or where,
            found=f"a box to x = {right:g}, y = {bottom:g} for {where}",
            expected=f"one within its {width} x {height} pixels",
            hint="Boxes count pixels from the upper left corner of the upright photo, at its full size.",
        )
    return Box(drawn.x / width, drawn.y / height, min(right / width, 1.0), min(bottom / height, 1.0))
