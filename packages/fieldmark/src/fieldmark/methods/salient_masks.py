"""Masks of what stands out in a photo."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from fieldmark.features.saliency import Saliency
from fieldmark.masks.parts import Mask, resized
from fieldmark.methods.base import ON_TRAIN, Arrays, Fitted, choices
from fieldmark.methods.grabcut import PERHAPS, PERHAPS_NOT, SURELY, SURELY_NOT, refined
from fieldmark.methods.mask_drawings import DrawsMasks, evenly_taken, mean_overlaps, of_whole
from fieldmark.settings import setting
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import View

THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
# With colors, values above the first are surely the object, those below the second surely background.
SURE, HARDLY = 0.9, 0.05
LONGEST_PX = 400


@dataclass(frozen=True)
class SalientMasks(DrawsMasks):
    """Draws what U²-Netp finds salient (`features.saliency`); it needs no training at all.

    Args:
        threshold: What is drawn reaches this share of the way from the lowest to the highest value of the map; 0 takes
            the one with the highest mean IoU on train.
        refine: Whether the boundary is then moved to where colors change, by GrabCut.
        mirrored: Whether a photo is looked at together with its mirror image.
    """

    threshold: float = setting(0.0, least=0, below=1)
    refine: bool = False
    mirrored: bool = True

    learns_from_val: ClassVar[bool] = False

    @property
    def external_data(self) -> tuple[str, ...]:
        return ("DUTS, by the weights of U²-Netp",)

    def fit(self, view: View) -> Fitted:
        if self.threshold:
            return Fitted(self, {})
        train, saliency = evenly_taken(view.train.of_known_labels()), Saliency()

        def draw(photo: Image.Image) -> list[Mask]:
            values = self._values(saliency, photo)
            return [self._mask(photo, values, threshold) for threshold in THRESHOLDS]

        means = mean_overlaps(train, "threshold", draw)
        chosen = replace(self, threshold=THRESHOLDS[int(means.argmax())])
        return Fitted(chosen, {}, chosen=choices(self, chosen, ON_TRAIN))

    def start(self, arrays: Arrays) -> Saliency:
        return Saliency()

    def draw(self, state: Any, arrays: Arrays, photo: Image.Image, labels: Labels) -> dict[str, Mask]:
        return of_whole(self._mask(photo, self._values(state, photo), self.threshold))

    def _values(self, saliency: Saliency, photo: Image.Image) -> NDArray[np.float32]:
        values = saliency.map(photo)
        if self.mirrored:
            values = values + saliency.map(ImageOps.mirror(photo))[:, ::-1]
        return spread(values)

    def _mask(self, photo: Image.Image, values: NDArray[np.float32], threshold: float) -> Mask:
        if not self.refine:
            return enlarged(values, photo.size) >= threshold
        scale = min(1.0, LONGEST_PX / max(photo.size))
        width, height = (max(1, round(side * scale)) for side in photo.size)
        small, pixels = enlarged(values, (width, height)), photo.resize((width, height), Image.Resampling.BILINEAR)
        start = np.where(small >= threshold, PERHAPS, PERHAPS_NOT).astype(np.uint8)
        start[small >= SURE], start[small < HARDLY] = SURELY, SURELY_NOT
        return resized(refined(np.asarray(pixels)[:, :, ::-1].copy(), start, rounds=3), (photo.height, photo.width))


def spread(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Values moved so that the lowest is 0 and the highest 1; all 0 where they are all the same."""
    low, high = float(values.min()), float(values.max())
    return np.asarray((values - low) / (high - low) if high > low else np.zeros_like(values), dtype=np.float32)


def enlarged(values: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    """Values between 0 and 1 at the width and height of a photo."""
    return np.asarray(Image.fromarray(values, mode="F").resize(size, Image.Resampling.BILINEAR), dtype=np.float32)
