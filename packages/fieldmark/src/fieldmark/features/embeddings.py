"""What is done to features after the network and before any method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def unit_rows(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length one; rows of zeros stay zero."""
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    return np.asarray(features / np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)


def powered_rows(features: NDArray[np.float32], power: float) -> NDArray[np.float32]:
    """Rows raised to a power, signs kept, then scaled to length one.

    >>> powered_rows(np.array([[9.0, -16.0]], dtype=np.float32), 0.5).round(4)
    array([[ 0.6, -0.8]], dtype=float32)
    """
    if power == 1:
        return unit_rows(features)
    return unit_rows(np.sign(features) * np.abs(features) ** np.float32(power))


def quantized(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Unit-length features as they come back from 8 bits, the way the organizers of FungiTastic keep theirs.

    Each coordinate e is stored as uint8((e + 1) * 127.5), cut off and not rounded, and read as value / 255 * 2 - 1. The
    result is not scaled to length one again. Cutting off lowers every coordinate by half a step on average, which is
    a shift common to all photos.

    >>> quantized(np.array([[3.0, 4.0]], dtype=np.float32)).round(4)
    array([[0.6   , 0.7961]], dtype=float32)
    """
    stored = np.clip((unit_rows(features).astype(np.float64) + 1) * 127.5, 0, 255).astype(np.uint8)
    return np.asarray(stored / np.float32(255) * 2 - 1, dtype=np.float32)
