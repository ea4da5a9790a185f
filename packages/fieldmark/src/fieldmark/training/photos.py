"""Photos as examples, and what happens to them on the way into the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.training.boxes import Crops, EvalCrop, resample
from fieldmark.training.devices import constant
from fieldmark.training.draws import Draws
from fieldmark.training.fused_views import fused_view
from fieldmark.training.packs import KeptSquares, Pack, Pixels, UnpackedPhotos
from fieldmark.training.randaugment import rand_augment

Tensor = Any

# Packed squares are at least this much larger than what the network takes, so that a crop is seldom enlarged.
PACK_RATIO = 8 / 7
# What is wider than high loses in width when it is made square, and a square cut out of it would be enlarged again.
USUAL_ASPECT = 4 / 3


def pack_side(size_px: int, eval_crop: EvalCrop = "squash", eval_share: float = 1.0) -> int:
    """The side of packed squares for a network that takes `size_px` of what evaluation shows of a photo.

    >>> pack_side(224), pack_side(384), pack_side(224, "center", 0.875)
    (256, 440, 344)
    """
    ratio = (USUAL_ASPECT if eval_crop == "center" else 1.0) / eval_share
    return -(-round(size_px * max(PACK_RATIO, ratio)) // 8) * 8


@dataclass(frozen=True)
class PhotoSource:
    """Photos with their classes.

    Args:
        photos: Where the squares come from.
        rows: Which of them, in order.
        labels: The class of each.
        groups: The observation of each.
        crops: Which part of each is shown.
    """

    photos: Pack | UnpackedPhotos
    rows: NDArray[np.int64]
    labels: NDArray[np.int32]
    groups: NDArray[np.int64] | None
    crops: Crops

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, rows: NDArray[np.int64], draws: Draws | None) -> tuple[Pixels | KeptSquares, NDArray[np.float32]]:
        squares, aspects = self.photos.read(self.rows[rows])
        return squares, self.crops.boxes(aspects, draws)

    def read_targets(self, rows: NDArray[np.int64], draws: Draws | None) -> NDArray[np.int32]:
        return self.labels[rows]


@dataclass(frozen=True)
class PhotoTransform:
    """Cuts the boxes out of a batch of squares, augments and normalizes them.

    Args:
        size_px: What the network takes.
        mean, std: By what the network expects each channel to be normalized, for values between 0 and 1.
        randaugment_ops, randaugment_magnitude: See `recipe.Recipe`.
        compiled: Whether a GPU is given few kernels that were compiled rather than many; see `fused_views`.
    """

    size_px: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    randaugment_ops: int = 0
    randaugment_magnitude: int = 9
    compiled: bool = False

    def __call__(self, raw: Sequence[Tensor], draws: Draws | None) -> Tensor:
        squares, boxes = raw
        mean = constant(tuple(255 * value for value in self.mean), boxes.device).view(1, 3, 1, 1)
        scale = constant(tuple(1 / (255 * value) for value in self.std), boxes.device).view(1, 3, 1, 1)
        if self.compiled and draws is not None and boxes.device.type == "cuda":
            augmented = draws, self.randaugment_ops, self.randaugment_magnitude
            return fused_view(squares, boxes, self.size_px, mean, scale, *augmented)
        pixels = resample(squares.permute(0, 3, 1, 2), boxes, self.size_px)
        if draws is not None and self.randaugment_ops:
            whole = pixels.round().clamp(0, 255).to(torch.uint8)
            pixels = rand_augment(whole, draws, self.randaugment_ops, self.randaugment_magnitude)
        inputs = torch.empty(pixels.shape, device=pixels.device, memory_format=torch.channels_last)
        return torch.sub(pixels, mean, out=inputs).mul_(scale)
