"""A learnable front end for sounds: a bank of Gabor filters in place of a mel spectrogram."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

from fieldmark.audio.augmentations import band_masked, time_masked
from fieldmark.audio.spectrograms import DECIBEL_RANGE, SMALLEST_POWER, MelSettings, band_edges

Tensor = Any

# A filter's power falls to a half within this many of its deviations, to both sides together.
HALF_POWER_WIDTH = 2 * math.sqrt(math.log(2))
# Envelopes are sampled this often before they are smoothed: twice the widest band.
ENVELOPE_HZ = 4000


class GaborFrontEnd(torch.nn.Module):  # type: ignore[misc]
    """Sounds to pictures: complex Gabor filters, squared modulus, Gaussian smoothing, decibels scaled to 0..1.

    Zeghidour et al., "LEAF: a learnable frontend for audio classification" (2021). A filter of center f and deviation
    s is exp(-t^2 / (2 s^2)) exp(2 pi i f t) / (sqrt(2 pi) s). Filters begin where the bands of a mel spectrogram of the
    same settings lie, as wide as those; centers, widths and smoothing are learned, each as a logarithm, so that all of
    them move at the pace of one learning rate. The filters are moved on by a few samples at a time, which envelopes of
    such bands allow. Loudness is scaled as that of mel spectrograms, so that a network meets the pictures it knows.

    Args:
        settings: Those of the mel spectrogram it stands for.
        mask_time, mask_bands: The largest share of a picture that is blanked in training.
    """

    def __init__(self, settings: MelSettings, mask_time: float = 0.15, mask_bands: float = 0.1) -> None:
        super().__init__()
        self.settings, self.mask_time, self.mask_bands = settings, mask_time, mask_bands
        edges = torch.from_numpy(band_edges(settings)).float()
        widths = (edges[2:] - edges[:-2]) / 2  # at half the height of a triangular band
        deviation = settings.rate_hz * HALF_POWER_WIDTH / (2 * math.pi * widths)
        self.stride = stride_of(settings.hop, settings.rate_hz)
        self.log_center = torch.nn.Parameter(torch.log(edges[1:-1] / settings.rate_hz))
        self.log_deviation = torch.nn.Parameter(torch.log(deviation))
        self.log_smoothing = torch.nn.Parameter(torch.full((settings.bands,), math.log(0.4 * settings.hop)))

    def forward(self, sounds: Tensor) -> Tensor:
        """Batch x samples to batch x 1 x bands x frames."""
        with torch.autocast(sounds.device.type, enabled=False):
            pictures = self._scaled(self.power(sounds.float()))
        if self.training:
            pictures = self._masked(pictures)
        return pictures[:, None]

    def power(self, sounds: Tensor) -> Tensor:
        """The smoothed power in each band, as batch x bands x frames."""
        half = self.settings.fft // 2
        waves = functional.conv1d(sounds[:, None], self.filters(half), stride=self.stride, padding=half)
        real, imaginary = waves.chunk(2, dim=1)
        power = real.square() + imaginary.square()
        step, half = self.settings.hop // self.stride, self.settings.fft // self.stride // 2
        lacking = (self.settings.frames - 1) * step + 1 - power.shape[2]
        power = functional.pad(power, (half, half + max(0, lacking)))
        smoothed = functional.conv1d(power, self._smoothing(half), stride=step, groups=power.shape[1])
        return smoothed[:, :, : self.settings.frames]

    def filters(self, half: int) -> Tensor:
        """The real parts of all filters, then the imaginary ones, as (2 x bands) x 1 x samples."""
        time = torch.arange(-half, half + 1, device=self.log_center.device, dtype=torch.float32)
        center = self.log_center.exp().clamp(max=0.5)[:, None]
        deviation = self.log_deviation.exp().clamp(2.0, half / 2)[:, None]
        envelope = torch.exp(-(time**2) / (2 * deviation**2)) / (math.sqrt(2 * math.pi) * deviation)
        angle = 2 * math.pi * center * time
        return torch.cat([envelope * angle.cos(), envelope * angle.sin()])[:, None]

    def _smoothing(self, half: int) -> Tensor:
        time = torch.arange(-half, half + 1, device=self.log_smoothing.device, dtype=torch.float32)
        deviation = (self.log_smoothing.exp()[:, None] / self.stride).clamp(0.5, half / 2)
        window = torch.exp(-(time**2) / (2 * deviation**2))
        return (window / window.sum(dim=1, keepdim=True))[:, None]

    def _scaled(self, power: Tensor) -> Tensor:
        decibel = 10 * torch.log10(power.clamp_min(SMALLEST_POWER))
        high = decibel.amax(dim=(1, 2), keepdim=True)
        decibel = torch.maximum(decibel, high - DECIBEL_RANGE)
        low = decibel.amin(dim=(1, 2), keepdim=True)
        return (decibel - low) / (high - low).clamp_min(1e-6)

    def _masked(self, pictures: Tensor) -> Tensor:
        # The seed of torch is set at every step of a training, so that these draws are a function of the step.
        time, when, bands, which = torch.rand(4, len(pictures)).double().numpy()
        pictures = time_masked(pictures, self.mask_time * time, when)
        return band_masked(pictures, self.mask_bands * bands, which)


def listen_through(network: Any, front_end: GaborFrontEnd) -> None:
    """Lets a network for pictures of one channel take sounds; the front end is learned and saved with it."""
    look = network.forward_features
    network.front_end = front_end
    network.forward_features = lambda sounds: look(front_end(sounds))


def stride_of(hop: int, rate_hz: int) -> int:
    """The largest number of samples between envelopes that divides the hop and keeps to `ENVELOPE_HZ`."""
    return next(step for step in range(max(1, rate_hz // ENVELOPE_HZ), 0, -1) if hop % step == 0)
