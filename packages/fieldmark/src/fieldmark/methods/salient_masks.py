"""Masks of what stands out in a photo."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from fieldmark.features.saliency import NETWORK_FILE, NETWORKS, Saliency, best_at_hand, declared
from fieldmark.masks.parts import Mask, resized
from fieldmark.methods.base import ON_TRAIN, USUAL, Arrays, Fitted, choices
from fieldmark.methods.grabcut import PERHAPS, PERHAPS_NOT, SURELY, SURELY_NOT, refined, small_pixels
from fieldmark.methods.mask_drawings import DrawsMasks, evenly_taken, mean_overlaps, of_whole
from fieldmark.settings import setting
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import View

THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
# With colors, values above the first are surely the object, those below the second surely background.
SURE, HARDLY = 0.9, 0.05


@dataclass(frozen=True)
class SalientMasks(DrawsMasks):
    """Draws what U²-Net or U²-Netp finds salient (`features.saliency`); it needs no training at all.

    Args:
        network: u2netp, u2net (about ten times the computing) or a file of the latter; empty takes the full one where
            it is installed.
        threshold: What is drawn reaches this share of the way from the lowest to the highest value of the map; 0 takes
            the one with the highest mean IoU on train.
        refine: Whether the boundary is then moved to where colors change, by GrabCut.
        mirrored: Whether a photo is looked at together with its mirror image.
    """

    threshold: float = setting(0.0, least=0, below=1)
    refine: bool = False
    mirrored: bool = True
    network: str = setting("", choices=("", *NETWORKS), file=NETWORK_FILE)

    learns_from_val: ClassVar[bool] = False

    @property
    def external_data(self) -> tuple[str, ...]:
        return (trained_on(self.network),)

    def fit(self, view: View) -> Fitted:
        method = replace(self, network=self.network or best_at_hand())
        if self.threshold:
            return Fitted(method, {}, chosen=choices(self, method, USUAL))
        train, saliency = evenly_taken(view.train.of_known_labels()), method.start({})

        def draw(photo: Image.Image) -> list[Mask]:
            values = salient_values(saliency, photo, mirrored=self.mirrored)
            return [cut(photo, values, threshold, refine=self.refine) for threshold in THRESHOLDS]

        means = mean_overlaps(train, "threshold", draw)
        chosen = replace(method, threshold=THRESHOLDS[int(means.argmax())])
        return Fitted(chosen, {}, chosen=(*choices(self, method, USUAL), *choices(method, chosen, ON_TRAIN)))

    def start(self, arrays: Arrays) -> Saliency:
        return Saliency(network=self.network or best_at_hand())

    def draw(self, state: Any, arrays: Arrays, photo: Image.Image, labels: Labels) -> dict[str, Mask]:
        values = salient_values(state, photo, mirrored=self.mirrored)
        return of_whole(cut(photo, values, self.threshold, refine=self.refine))


def trained_on(network: str) -> str:
    """What a network for saliency brings in from outside the release."""
    return f"DUTS, by the weights of {declared(network or best_at_hand()).title}"


def salient_values(saliency: Saliency, photo: Image.Image, *, mirrored: bool) -> NDArray[np.float32]:
    """How much each place of a photo stands out, from 0 to 1, looked at together with its mirror image or not."""
    values = saliency.map(photo)
    if mirrored:
        values = values + saliency.map(ImageOps.mirror(photo))[:, ::-1]
    return spread(values)


def cut(photo: Image.Image, values: NDArray[np.float32], threshold: float, *, refine: bool) -> Mask:
    """What reaches a threshold, as large as the photo; its boundary may be moved to where colors change (GrabCut)."""
    if not refine:
        return enlarged(values, photo.size) >= threshold
    pixels = small_pixels(photo)
    small = enlarged(values, (pixels.shape[1], pixels.shape[0]))
    start = np.where(small >= threshold, PERHAPS, PERHAPS_NOT).astype(np.uint8)
    start[small >= SURE], start[small < HARDLY] = SURELY, SURELY_NOT
    return resized(refined(pixels, start, rounds=3), (photo.height, photo.width))


def spread(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Values moved so that the lowest is 0 and the highest 1; all 0 where they are all the same."""
    low, high = float(values.min()), float(values.max())
    return np.asarray((values - low) / (high - low) if high > low else np.zeros_like(values), dtype=np.float32)


def enlarged(values: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    """Values between 0 and 1 at the width and height of a photo."""
    return np.asarray(Image.fromarray(values, mode="F").resize(size, Image.Resampling.BILINEAR), dtype=np.float32)
