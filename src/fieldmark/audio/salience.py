"""Where something sounds: recordings of one bird are silent for much of their length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

# How far a bin must stand out of its band and of its frame.
MARGIN_DB = 10.0


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
