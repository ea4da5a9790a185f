"""What is done to sounds in training, so that a network meets more than was recorded.

Each function takes a batch and, for each example, the number that was drawn for it, and returns a new batch: the same
numbers give the same sounds. Sounds are batch x samples, pictures batch x bands x frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Numbers = NDArray[np.float64]  # one per example


def shifted(sounds: torch.Tensor, shares: Numbers) -> torch.Tensor:
    """Each sound turned around in time by a share of its length: what falls off at one end comes in at the other."""
    import torch

    length = sounds.shape[1]
    starts = torch.from_numpy((shares * length).astype(np.int64) % length).to(sounds.device)
    places = (torch.arange(length, device=sounds.device) + starts[:, None]) % length
    return sounds.gather(1, places)


def louder(sounds: torch.Tensor, decibels: Numbers) -> torch.Tensor:
    """Each sound louder, or softer, by so many decibels."""
    return sounds * _column(sounds, 10 ** (decibels / 20))


def mixed(sounds: torch.Tensor, others: torch.Tensor, decibels: Numbers) -> torch.Tensor:
    """Each sound with another one on top, which is so many decibels louder than it; silence adds nothing.

    With a second bird for the other sound, it is a choir, whose labels are those of both; with a stretch in which
    nothing sings, it is the same bird in another background.
    """
    ratio = _loudness(sounds) / _loudness(others).clamp_min(1e-9)
    return sounds + louder(others * ratio, decibels)


def time_masked(pictures: torch.Tensor, widths: Numbers, places: Numbers) -> torch.Tensor:
    """Each picture with a stretch of time blanked (Park et al., SpecAugment, 2019).

    Args:
        pictures: The batch.
        widths: The share of the picture that is blanked.
        places: Where, from 0 (at its beginning) to 1 (at its end).
    """
    return pictures.masked_fill(_stretch(pictures, 2, widths, places)[:, None, :], 0.0)


def band_masked(pictures: torch.Tensor, widths: Numbers, places: Numbers) -> torch.Tensor:
    """Each picture with a range of bands blanked; arguments as in `time_masked`."""
    return pictures.masked_fill(_stretch(pictures, 1, widths, places)[:, :, None], 0.0)


def _stretch(pictures: torch.Tensor, axis: int, widths: Numbers, places: Numbers) -> torch.Tensor:
    """One interval along an axis for each picture, as batch x length of booleans."""
    import torch

    length = pictures.shape[axis]
    width = np.floor(widths * length)[:, None]
    first = np.round(places[:, None] * (length - width))
    bins = np.arange(length)
    return torch.from_numpy((bins >= first) & (bins < first + width)).to(pictures.device)


def _loudness(sounds: torch.Tensor) -> torch.Tensor:
    return sounds.square().mean(dim=1, keepdim=True).sqrt()


def _column(sounds: torch.Tensor, values: NDArray[Any]) -> torch.Tensor:
    import torch

    return torch.from_numpy(values.astype(np.float32)[:, None]).to(sounds.device)
