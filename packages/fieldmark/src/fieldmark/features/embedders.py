"""What turns windows of sound into features."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fieldmark.audio.clips import Padding
from fieldmark.audio.samples import Samples
from fieldmark.audio.spectrograms import SPECTROGRAMS, MelSpectrogram
from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.features.settings import EMBEDDERS, FeatureSettings
from fieldmark.features.sounds import SALIENT_WINDOWS, SoundEmbedder

# Raised whenever the same settings would give other numbers.
EMBEDDER_VERSION = 1


class Embedder(SoundEmbedder, Protocol):
    """An embedder that can be named in a run, and whose outputs can be stored."""

    @property
    def digest(self) -> str:
        """A fingerprint of everything the outputs depend on."""
        ...

    @property
    def about(self) -> dict[str, Any]:
        """What a run records about its features."""
        ...


class LogMelStatistics:
    """The mean and the spread over time of each band: the plainest features of a sound."""

    padding: Padding = "repeat"

    def __init__(self) -> None:
        self._picture = MelSpectrogram(SPECTROGRAMS["segment"])
        self.rate_hz, self.window_s = self._picture.settings.rate_hz, self._picture.settings.window_s

    @property
    def digest(self) -> str:
        settings = [EMBEDDER_VERSION, SALIENT_WINDOWS, asdict(self._picture.settings)]
        return "logmel-" + hashlib.blake2b(json.dumps(settings).encode(), digest_size=16).hexdigest()

    @property
    def about(self) -> dict[str, Any]:
        return {"backbone": "logmel", "digest": self.digest}

    def __call__(self, windows: Samples) -> dict[str, NDArray[Any]]:
        pictures = self._picture(windows)
        statistics = [pictures.mean(dim=2), pictures.std(dim=2)]
        return {"features": np.concatenate([part.cpu().numpy() for part in statistics], axis=1)}


def load_embedder(settings: FeatureSettings) -> Embedder:
    """The embedder of a name.

    Raises:
        MisuseError: When there is none, or its extra is not installed.
    """
    if settings.backbone == "logmel" and settings.output == "features":
        return LogMelStatistics()
    if settings.backbone == "birdnet" and settings.output in ("features", "logits"):
        from fieldmark.features.birdnet import BirdNet

        return BirdNet()
    if settings.backbone in EMBEDDERS:
        raise MisuseError(f"backbone={settings.backbone} has features and no {settings.output}.")
    hint = did_you_mean(settings.backbone, EMBEDDERS)
    raise MisuseError(f"There is no backbone for recordings called {settings.backbone!r}. {hint}")
