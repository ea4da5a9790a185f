"""Networks that were trained here as sources of features of photos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fieldmark.features.backbones import Backbone
from fieldmark.features.cropping import Box
from fieldmark.training.boxes import EvalCrop, middle_boxes
from fieldmark.training.packing import PACK_VERSION, Pixels, decode_squashed
from fieldmark.training.photos import PhotoTransform, pack_side


@dataclass(frozen=True)
class TrainedBackbone(Backbone):
    """A trained network that is shown photos as it was shown those of val, so that its head makes the same logits."""

    @property
    def recipe(self) -> list[Any]:
        return [*super().recipe, "packed", PACK_VERSION, self._side_px]

    @property
    def squares_for_gpu(self) -> None:
        """Its squares come with their shape, which only `decode` tells."""
        return None

    def decode(self, data: bytes, box: Box | None = None) -> tuple[Pixels, float]:
        return decode_squashed(data, self._side_px, box)

    def inputs(self, decoded: Sequence[tuple[Pixels, float]]) -> Any:
        how, device = self.preprocessing, next(self.network.parameters()).device
        squares = np.stack([square for square, _ in decoded])
        aspects = np.array([aspect for _, aspect in decoded], dtype=np.float32)
        boxes = middle_boxes(aspects, self._eval_crop, how.crop, how.place)
        boxes = boxes[:, [2, 1, 0, 3]] if how.mirrored else boxes
        transform = PhotoTransform(how.size_px, how.mean, how.std)
        return transform([torch.from_numpy(array).to(device) for array in (squares, boxes)], None)

    @property
    def _side_px(self) -> int:
        return pack_side(self.preprocessing.size_px, self._eval_crop, self.preprocessing.crop)

    @property
    def _eval_crop(self) -> EvalCrop:
        return "squash" if self.preprocessing.resize == "squash" else "center"
