"""Networks that were trained here as sources of features of photos and of recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.audio.clips import Padding
from fieldmark.audio.samples import Samples
from fieldmark.audio.spectrograms import MelSettings
from fieldmark.features.backbones import Backbone, network_digest, pooled_outputs
from fieldmark.features.crops import Box
from fieldmark.features.embedders import EMBEDDER_VERSION
from fieldmark.features.sounds import SALIENT_WINDOWS
from fieldmark.training.boxes import EvalCrop, middle_boxes
from fieldmark.training.packs import PACK_VERSION, Pixels, decode_squashed
from fieldmark.training.photos import PhotoTransform, pack_side
from fieldmark.training.sounds import SoundTransform, Windowed


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


@dataclass(frozen=True)
class TrainedEmbedder:
    """A trained network that is shown spectrograms as it was shown those of val; see `features.embedders.Embedder`.

    Args:
        name: The network.
        network: The network, with the front end it was trained with, if any.
        settings: The spectrogram, or what the front end began from.
        pictures: Whether it is shown spectrograms; one with a front end takes the sounds.
    """

    name: str
    network: Any
    settings: MelSettings
    pictures: bool = True

    @property
    def rate_hz(self) -> int:
        return self._windows.rate_hz

    @property
    def window_s(self) -> float:
        return self._windows.window_s

    @property
    def padding(self) -> Padding:
        return self._windows.padding

    @cached_property
    def digest(self) -> str:
        return network_digest(self.network, [EMBEDDER_VERSION, SALIENT_WINDOWS, asdict(self.settings)])

    @property
    def about(self) -> dict[str, Any]:
        return {"backbone": self.name, "weights": "fine-tuned", "digest": self.digest}

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def __call__(self, windows: Samples) -> dict[str, NDArray[Any]]:
        device = next(self.network.parameters()).device
        transform = SoundTransform(self.settings, str(device), pictures=self.pictures)
        return pooled_outputs(self.network, transform([torch.from_numpy(windows).to(device)], None))

    @property
    def _windows(self) -> Windowed:
        return Windowed.of(self.settings)
