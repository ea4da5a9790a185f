"""The baseline of segmentation that never looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from fieldmark.masks.parts import Mask, resized, whole
from fieldmark.methods.base import ON_TRAIN, Arrays, Fitted, choices, targets_of
from fieldmark.methods.mask_drawings import DrawsMasks, of_whole, overlap
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import View

# Widths and heights that are tried, as shares of the photo, and the square on which they are compared.
SHARES = tuple(np.round(np.arange(0.3, 1.01, 0.1), 2).tolist())
SIDE_PX = 64


@dataclass(frozen=True)
class CenterEllipse(DrawsMasks):
    """Draws the same ellipse in the middle of every photo: what any method must beat.

    Args:
        width, height: Its axes as shares of the photo's sides; 0 takes those with the highest mean IoU on train.
    """

    width: float = 0.0
    height: float = 0.0

    def fit(self, view: View) -> Fitted:
        if self.width and self.height:
            return Fitted(self, {})
        masks = targets_of(view.train.of_known_labels()).masks
        true = [resized(whole(masks.open(item)), (SIDE_PX, SIDE_PX)) for item in masks.items]
        tried = [(width, height) for width in SHARES for height in SHARES]
        means = [
            float(np.mean([overlap(ellipse((SIDE_PX, SIDE_PX), width, height), mask) for mask in true]))
            for width, height in tried
        ]
        width, height = tried[int(np.argmax(means))]
        chosen = CenterEllipse(width, height)
        return Fitted(chosen, {}, chosen=choices(self, chosen, ON_TRAIN))

    def draw(self, state: Any, arrays: Arrays, photo: Image.Image, labels: Labels) -> dict[str, Mask]:
        return of_whole(ellipse((photo.height, photo.width), self.width, self.height))


def ellipse(shape: tuple[int, int], width: float, height: float) -> Mask:
    """The ellipse in the middle of a picture whose axes are shares of its sides.

    >>> ellipse((4, 4), 1.0, 0.5).astype(int).tolist()
    [[0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]]
    """
    rows, columns = ((np.arange(side) + 0.5) / side - 0.5 for side in shape)
    return np.asarray((rows[:, None] / (height / 2)) ** 2 + (columns[None, :] / (width / 2)) ** 2 <= 1)
