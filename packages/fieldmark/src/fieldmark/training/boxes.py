"""Which part of a photo the network sees, and cutting it out.

Photos arrive as squares that were squashed, with their width / height. A crop is a box in a photo's own proportions;
cropping, mirroring and scaling are one resampling of the square, done on the device for the whole batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from fieldmark.training.draws import Draws

Tensor = Any
EvalCrop = Literal["squash", "center"]
Boxes = NDArray[np.float32]  # left, top, right, bottom as shares of the photo; right < left mirrors it

# The range of width / height that random crops may have, as in torchvision's RandomResizedCrop.
CROP_RATIO = (3 / 4, 4 / 3)
TRIES = 10


@dataclass(frozen=True)
class Crops:
    """Which part of a photo the network sees; the settings are those of `recipe.Recipe`."""

    eval_crop: EvalCrop = "squash"
    scale: float = 1.0
    flip: bool = False
    eval_share: float = 1.0

    def boxes(self, aspects: NDArray[np.float32], draws: Draws | None) -> Boxes:
        """A box for each photo: at random for training, always the same one for evaluation."""
        if draws is not None:
            return random_boxes(aspects, self.scale, self.flip, draws)
        return middle_boxes(aspects, self.eval_crop, self.eval_share)


def middle_boxes(
    aspects: NDArray[np.float32], eval_crop: EvalCrop, share: float, place: tuple[float, float] = (0.5, 0.5)
) -> Boxes:
    """A share of the whole photo, squashed, or of the largest square in it; in its middle, if no place is given.

    Args:
        aspects: Width / height of each photo.
        eval_crop: Which of the two.
        share: The share of its sides.
        place: The shares of the room left that lie to the left of the box and above it.
    """
    ones = np.ones_like(aspects)
    wide, tall = (ones, ones) if eval_crop == "squash" else (np.minimum(1, 1 / aspects), np.minimum(1, aspects))
    width, height = share * wide, share * tall
    left, top = place[0] * (1 - width), place[1] * (1 - height)
    return np.stack([left, top, left + width, top + height], axis=1).astype(np.float32)


def random_boxes(aspects: NDArray[np.float32], scale: float, flip: bool, draws: Draws) -> Boxes:
    """Boxes of a random share of the area and a random shape, anywhere in the photo.

    The rule is that of torchvision's RandomResizedCrop: ten tries for a box that fits, then the largest one of an
    allowed shape in the middle.
    """
    low, high = CROP_RATIO
    width, height = np.minimum(1, high / aspects), np.minimum(1, aspects / low)  # where no try fits
    fits = np.zeros(len(aspects), dtype=bool)
    for attempt in range(TRIES):
        area = draws.uniform(f"area {attempt}", scale, 1.0)
        ratio = np.exp(draws.uniform(f"ratio {attempt}", np.log(low), np.log(high)))
        wide, tall = np.sqrt(area * ratio / aspects), np.sqrt(area * aspects / ratio)
        taken = ~fits & (wide <= 1) & (tall <= 1)
        width, height = np.where(taken, wide, width), np.where(taken, tall, height)
        fits |= taken
    left = np.where(fits, draws.uniform("left"), 0.5) * (1 - width)
    top = np.where(fits, draws.uniform("top"), 0.5) * (1 - height)
    boxes = np.stack([left, top, left + width, top + height], axis=1).astype(np.float32)
    if flip:
        mirrored = draws.chance("flip")
        boxes[mirrored] = boxes[mirrored][:, [2, 1, 0, 3]]
    return boxes


def resample(squares: Tensor, boxes: Tensor, size_px: int) -> Tensor:
    """Boxes of squares scaled to `size_px`, values 0 to 255 in single precision."""
    left, top, right, bottom = boxes.unbind(1)
    grid = (torch.arange(size_px, device=squares.device) + 0.5) / size_px
    x = 2 * (left[:, None] + (right - left)[:, None] * grid) - 1
    y = 2 * (top[:, None] + (bottom - top)[:, None] * grid) - 1
    where = torch.stack(torch.broadcast_tensors(x[:, None, :], y[:, :, None]), dim=-1)
    return functional.grid_sample(squares.float(), where, mode="bilinear", padding_mode="border", align_corners=False)
