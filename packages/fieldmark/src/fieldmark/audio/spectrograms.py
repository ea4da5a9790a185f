"""Mel spectrograms in batches, on the device, with the settings of published systems by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.audio.samples import Samples
from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.registry import require

if TYPE_CHECKING:
    import torch

# How far a bin must stand out of its band and of its frame.
MARGIN_DB = 10.0
Loudness = Literal["decibel", "power law"]

DECIBEL_RANGE = 80.0
# Below this power a bin counts as silent.
SMALLEST_POWER = 1e-10
# BirdNET raises magnitudes to this power, in place of a logarithm.
BIRDNET_POWER = 1 / (1 + float(np.exp(1.2)))


@dataclass(frozen=True)
class MelSettings:
    """How a window of sound becomes a picture of `bands` rows and `frames` columns with values from 0 to 1.

    Args:
        rate_hz: The sampling rate.
        window_s: The length of a window.
        bands, frames: The size of the picture; the hop between frames follows from it.
        fft: Samples under one frame.
        low_hz, high_hz: The range of the bands.
        loudness: "decibel": 80 dB below the loudest bin. "power law": magnitudes to a small power, as BirdNET has it.
        mel: Break frequency and factor of the mel scale, factor * log10(1 + f / break); None takes Slaney's scale, with
            bands of equal area.
        pre_emphasis: The share of the previous sample that is taken off each, which lifts high tones.
    """

    rate_hz: int
    window_s: float
    bands: int
    frames: int
    fft: int
    low_hz: float
    high_hz: float
    loudness: Loudness = "decibel"
    mel: tuple[float, float] | None = None
    pre_emphasis: float = 0.0

    @property
    def samples(self) -> int:
        return round(self.rate_hz * self.window_s)

    @property
    def hop(self) -> int:
        return self.samples // (self.frames - 1)


SPECTROGRAMS: Mapping[str, MelSettings] = {
    # Five seconds, as soundscapes are cut; small enough to train a network on a laptop.
    "segment": MelSettings(32_000, 5.0, bands=64, frames=251, fft=1024, low_hz=150, high_hz=15_000),
    # Kahl et al., BirdNET (2021): 48 kHz, three seconds.
    "birdnet": MelSettings(
        48_000, 3.0, 64, 512, fft=512, low_hz=150, high_hz=15_000, loudness="power law", mel=(1750.0, 4581.0)
    ),
    # Kahl et al., the baseline system of BirdCLEF (2018): 44.1 kHz, one second.
    "birdclef-baseline": MelSettings(44_100, 1.0, 128, 256, fft=1024, low_hz=500, high_hz=15_000, pre_emphasis=0.95),
}


def spectrogram_settings(name: str) -> MelSettings:
    """The settings of a name.

    Raises:
        MisuseError: When there are none.
    """
    if name not in SPECTROGRAMS:
        raise MisuseError(f"There is no spectrogram called {name!r}. {did_you_mean(name, SPECTROGRAMS)}")
    return SPECTROGRAMS[name]


class MelSpectrogram:
    """Turns batches of windows into pictures, on the processor or on a GPU.

    Args:
        settings: How.
        device: Where; a GPU if there is one.
    """

    def __init__(self, settings: MelSettings, device: str | None = None) -> None:
        torch: Any = require("torch", "Spectrograms")
        self.settings, self._torch = settings, torch
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")

    def __call__(self, windows: Samples | torch.Tensor) -> torch.Tensor:
        """Pictures of windows (batch x samples), as batch x bands x frames, each scaled to 0..1; silence is all 0."""
        picture = self.loudness(windows)
        low, high = picture.amin(dim=(1, 2), keepdim=True), picture.amax(dim=(1, 2), keepdim=True)
        return (picture - low) / (high - low).clamp_min(1e-6)

    def loudness(self, windows: Samples | torch.Tensor) -> torch.Tensor:
        """The pictures before they are scaled: decibels, or magnitudes under the power law."""
        how, torch = self.settings, self._torch
        sound = torch.as_tensor(windows).to(self.device, torch.float32)
        if how.pre_emphasis:
            sound = torch.cat([sound[:, :1], sound[:, 1:] - how.pre_emphasis * sound[:, :-1]], dim=1)
        mel = self._bands @ self._power(sound)
        return _decibel(mel, torch) if how.loudness == "decibel" else mel.clamp_min(SMALLEST_POWER) ** BIRDNET_POWER

    def _power(self, sound: torch.Tensor) -> torch.Tensor:
        """Power spectra (magnitudes under the power law), as batch x frequencies x frames."""
        how = self.settings
        spectrum = self._torch.stft(
            sound, how.fft, how.hop, window=self._hann, center=True, pad_mode="constant", return_complex=True
        )[:, :, : how.frames]
        parts = self._torch.view_as_real(spectrum)
        power = parts.square().sum(dim=-1)
        return power if how.loudness == "decibel" else power.sqrt()

    @cached_property
    def _hann(self) -> torch.Tensor:
        return self._torch.hann_window(self.settings.fft, device=self.device)

    @cached_property
    def _bands(self) -> torch.Tensor:
        return self._torch.tensor(mel_bands(self.settings), device=self.device)


def _decibel(power: torch.Tensor, torch: Any) -> torch.Tensor:
    """Decibels, at most 80 below the loudest bin of each window."""
    decibel = 10 * torch.log10(power.clamp_min(SMALLEST_POWER))
    return torch.maximum(decibel, decibel.amax(dim=(1, 2), keepdim=True) - DECIBEL_RANGE)


@cache
def mel_bands(how: MelSettings) -> NDArray[np.float32]:
    """Triangular bands over the frequencies of a spectrum, evenly spaced on the mel scale: bands x frequencies.

    The same settings get the same array, which cannot be written to.
    """
    frequencies = np.linspace(0, how.rate_hz / 2, how.fft // 2 + 1)
    edges = band_edges(how)
    rising = (frequencies - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - frequencies) / np.diff(edges)[1:, None]
    bands = np.maximum(0, np.minimum(rising, falling))
    if how.mel is None:
        bands *= 2 / (edges[2:] - edges[:-2])[:, None]
    made = bands.astype(np.float32)
    made.flags.writeable = False
    return made


def band_edges(how: MelSettings) -> NDArray[np.float64]:
    """Where bands begin, peak and end, in Hz: band i begins at edge i, peaks at the next and ends at the one after."""
    low, high = _to_mel(np.array([how.low_hz, how.high_hz]), how)
    return _from_mel(np.linspace(low, high, how.bands + 2), how)


# Slaney's scale: linear up to 1 kHz, then 27 steps for each factor of 6.4.
_LINEAR_HZ, _KNEE_HZ, _STEPS, _FACTOR = 200 / 3, 1000.0, 27, 6.4


def _to_mel(hz: NDArray[np.float64], how: MelSettings) -> NDArray[np.float64]:
    if how.mel is not None:
        return np.asarray(how.mel[1] * np.log10(1 + hz / how.mel[0]))
    above = _KNEE_HZ / _LINEAR_HZ + np.log(np.maximum(hz, _KNEE_HZ) / _KNEE_HZ) * _STEPS / np.log(_FACTOR)
    return np.where(hz < _KNEE_HZ, hz / _LINEAR_HZ, above)


def _from_mel(mel: NDArray[np.float64], how: MelSettings) -> NDArray[np.float64]:
    if how.mel is not None:
        return np.asarray(how.mel[0] * (10 ** (mel / how.mel[1]) - 1))
    knee = _KNEE_HZ / _LINEAR_HZ
    above = _KNEE_HZ * np.exp((np.maximum(mel, knee) - knee) * np.log(_FACTOR) / _STEPS)
    return np.where(mel < knee, mel * _LINEAR_HZ, above)


def salience(decibels: torch.Tensor) -> NDArray[np.float32]:
    """The share of each spectrogram that stands out of both the median of its band and the median of its frame.

    Steady noise fills whole bands and clicks fill whole frames; what stands out of both is a voice. The idea is that of
    Sprengel et al., "Audio based bird species identification using deep learning techniques" (2016).

    Args:
        decibels: Batch x bands x frames (`MelSpectrogram.loudness`).
    """
    from torch.nn.functional import avg_pool2d

    # A voice is wider than one bin; noise, which is not, averages out.
    smooth = avg_pool2d(decibels[:, None], kernel_size=3, stride=1)[:, 0]
    over_band = smooth > smooth.median(dim=2, keepdim=True).values + MARGIN_DB
    over_frame = smooth > smooth.median(dim=1, keepdim=True).values + MARGIN_DB
    share = (over_band & over_frame).float().mean(dim=(1, 2))
    return np.asarray(share.cpu().numpy(), dtype=np.float32)


def most_salient(scores: NDArray[np.floating], at_most: int) -> NDArray[np.int64]:
    """The places of the highest scores, in the order of time; of equal scores the earlier ones."""
    best = np.argsort(-np.asarray(scores), kind="stable")[:at_most]
    return np.sort(best)
