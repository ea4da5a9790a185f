"""Networks that were trained here as sources of features of recordings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import torch
from numpy.typing import NDArray

from fieldmark.audio.clips import Padding
from fieldmark.audio.reading import Samples
from fieldmark.audio.spectrograms import MelSettings
from fieldmark.features.backbones import network_digest, pooled_outputs
from fieldmark.features.embedders import EMBEDDER_VERSION
from fieldmark.features.sounds import SALIENT_WINDOWS
from fieldmark.training.sounds import SoundTransform, Windowed


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
