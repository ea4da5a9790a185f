"""GrabCut: colors of the middle against colors of the edge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from PIL import Image
from scipy import ndimage

from fieldmark.masks.parts import Mask, resized
from fieldmark.methods.base import ON_TRAIN, Arrays, Fitted, choices
from fieldmark.methods.mask_drawings import DrawsMasks, evenly_taken, mean_overlaps, of_whole
from fieldmark.registry import require
from fieldmark.settings import setting
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import View

# Margins that are tried on train, and the longest side on which colors are compared.
MARGINS = (0.02, 0.05, 0.1, 0.15)
LONGEST_PX = 400


@dataclass(frozen=True)
class GrabCut(DrawsMasks):
    """Two mixtures of colors, of what lies inside a box and outside, and a smooth boundary between them.

    Rother et al., "GrabCut: interactive foreground extraction using iterated graph cuts" (2004), as OpenCV has it,
    started from a box around the middle. Needs no training; only the margin is chosen on train.

    Args:
        margin: The share of each side that is surely background; 0 takes the one with the highest mean IoU on train.
        rounds: How often mixtures and boundary are found anew.
    """

    margin: float = setting(0.0, least=0, below=0.5)
    rounds: int = setting(5, least=1)

    learns_from_val: ClassVar[bool] = False

    def fit(self, view: View) -> Fitted:
        if self.margin:
            return Fitted(self, {})
        train = evenly_taken(view.train.of_known_labels())
        means = mean_overlaps(train, "margin", lambda photo: [self._cut(photo, margin) for margin in MARGINS])
        chosen = replace(self, margin=MARGINS[int(means.argmax())])
        return Fitted(chosen, {}, chosen=choices(self, chosen, ON_TRAIN))

    def draw(self, state: Any, arrays: Arrays, photo: Image.Image, labels: Labels) -> dict[str, Mask]:
        return of_whole(self._cut(photo, self.margin))

    def _cut(self, photo: Image.Image, margin: float) -> Mask:
        pixels = small_pixels(photo, least_px=3)
        height, width = pixels.shape[:2]
        left, top = max(1, round(margin * width)), max(1, round(margin * height))
        inside = np.full((height, width), SURELY_NOT, dtype=np.uint8)
        inside[top : height - top, left : width - left] = PERHAPS
        return resized(refined(pixels, inside, self.rounds), (photo.height, photo.width))


# As OpenCV numbers them: surely background, surely the object, perhaps background, perhaps the object.
SURELY_NOT, SURELY, PERHAPS_NOT, PERHAPS = 0, 1, 2, 3


def small_pixels(photo: Image.Image, least_px: int = 1) -> Any:
    """A photo in the order of OpenCV's colors, its longest side as long as colors are compared on at most.

    Args:
        photo: The photo.
        least_px: The shortest that a side may become.
    """
    scale = min(1.0, LONGEST_PX / max(photo.size))
    width, height = (max(least_px, round(side * scale)) for side in photo.size)
    return np.asarray(photo.resize((width, height), Image.Resampling.BILINEAR))[:, :, ::-1].copy()


def refined(pixels: Any, start: Any, rounds: int) -> Mask:
    """The object that GrabCut finds from a first guess; the guess itself where colors cannot be told apart.

    Args:
        pixels: A picture of bytes.
        start: For each pixel what it is taken for at first, as OpenCV numbers it.
        rounds: How often mixtures and boundary are found anew.
    """
    cv2: Any = require("cv2", "grabcut")

    mask = start.copy()
    if len(np.unique(mask)) < 2:
        return np.asarray(mask % 2 == 1)
    cv2.setRNGSeed(0)  # the mixtures start at random
    background, inside = np.zeros((1, 65)), np.zeros((1, 65))
    try:
        cv2.grabCut(pixels, mask, None, background, inside, rounds, cv2.GC_INIT_WITH_MASK)
    except cv2.error:  # all of one side has been given up: one color everywhere
        return np.asarray(start % 2 == 1)
    return np.asarray(mask % 2 == 1)


def along_edges(photo: Image.Image, mask: Mask, reach: float) -> Mask:
    """A mask with its boundary moved to where colors change.

    Args:
        photo: The photo.
        mask: A mask as large as the photo.
        reach: How far the boundary may move, as a share of the square root of the area of the mask.
    """
    pixels = small_pixels(photo)
    inside = resized(mask, pixels.shape[:2])
    start = np.where(inside, PERHAPS, PERHAPS_NOT).astype(np.uint8)
    limit = reach * np.sqrt(np.count_nonzero(inside))
    # Beyond the edge of the photo lies neither one nor the other.
    start[inside & (ndimage.distance_transform_edt(inside) > limit)] = SURELY
    start[~inside & (ndimage.distance_transform_edt(~inside) > limit)] = SURELY_NOT
    return resized(refined(pixels, start, rounds=3), (photo.height, photo.width))
