"""What is done to sounds in training, so that a network meets more than was recorded.

Each function takes a batch and a generator and returns a new batch; sounds are batch x samples, pictures batch x bands
x frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

Range = tuple[float, float]


def shifted(sounds: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Each sound turned around in time by a random stretch: what falls off at the end comes in at the beginning."""
    import torch

    length = sounds.shape[1]
    starts = torch.from_numpy(rng.integers(0, length, len(sounds))).to(sounds.device)
    places = (torch.arange(length, device=sounds.device) + starts[:, None]) % length
    return sounds.gather(1, places)


def louder(sounds: torch.Tensor, rng: np.random.Generator, *, decibel: Range = (-12.0, 6.0)) -> torch.Tensor:
    """Each sound louder or softer by a random number of decibels."""
    gain = 10 ** (rng.uniform(*decibel, (len(sounds), 1)) / 20)
    return sounds * _like(sounds, gain)


def noisier(
    sounds: torch.Tensor, noises: torch.Tensor, rng: np.random.Generator, *, signal_to_noise_db: Range = (0.0, 25.0)
) -> torch.Tensor:
    """Each sound with one of the noises in its background, at a random signal-to-noise ratio."""
    chosen = noises[rng.integers(0, len(noises), len(sounds))].to(sounds.device)
    chosen = shifted(chosen, rng)
    ratio = 10 ** (-rng.uniform(*signal_to_noise_db, (len(sounds), 1)) / 20)
    return sounds + chosen * _loudness(sounds) / _loudness(chosen).clamp_min(1e-9) * _like(sounds, ratio)


def mixed(
    sounds: torch.Tensor,
    targets: torch.Tensor,
    rng: np.random.Generator,
    *,
    share: float = 0.5,
    decibel: Range = (-12.0, 0.0),
) -> tuple[torch.Tensor, torch.Tensor]:
    """A share of the sounds with another one of the batch on top, as birds sing at once; the targets are united.

    Args:
        sounds: The batch.
        targets: Batch x labels, 1 for what is heard.
        rng: The generator.
        share: The share that gets a second voice.
        decibel: How loud the second voice is beside the first.
    """
    other = rng.permutation(len(sounds))
    gain = 10 ** (rng.uniform(*decibel, (len(sounds), 1)) / 20) * (rng.random((len(sounds), 1)) < share)
    weight = _like(sounds, gain)
    voices = sounds[other] * (_loudness(sounds) / _loudness(sounds[other]).clamp_min(1e-9)) * weight
    return sounds + voices, targets.maximum(targets[other] * (weight > 0).to(targets.dtype))


def time_masked(pictures: torch.Tensor, rng: np.random.Generator, *, at_most: float = 0.2) -> torch.Tensor:
    """Each picture with a random stretch of time blanked, of at most this share of it (SpecAugment, 2019)."""
    return pictures.masked_fill(_stretch(pictures, 2, rng, at_most)[:, None, :], 0.0)


def band_masked(pictures: torch.Tensor, rng: np.random.Generator, *, at_most: float = 0.15) -> torch.Tensor:
    """Each picture with a random range of bands blanked, of at most this share of it."""
    return pictures.masked_fill(_stretch(pictures, 1, rng, at_most)[:, :, None], 0.0)


def _stretch(pictures: torch.Tensor, axis: int, rng: np.random.Generator, at_most: float) -> torch.Tensor:
    """One random interval along an axis for each picture, as batch x length of booleans."""
    import torch

    length, number = pictures.shape[axis], len(pictures)
    width = rng.integers(0, int(at_most * length) + 1, (number, 1))
    first = rng.integers(0, length - width + 1)
    places = np.arange(length)
    return torch.from_numpy((places >= first) & (places < first + width)).to(pictures.device)


def _loudness(sounds: torch.Tensor) -> torch.Tensor:
    return sounds.square().mean(dim=1, keepdim=True).sqrt()


def _like(sounds: torch.Tensor, values: np.ndarray) -> torch.Tensor:
    import torch

    return torch.from_numpy(values.astype(np.float32)).to(sounds.device)
