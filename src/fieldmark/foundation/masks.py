"""Masks of photos as arrays: the whole and its parts, and another size."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Mask = NDArray[np.bool_]

WHOLE = "fruiting_body"
NEVER_PARTS = (WHOLE, "microscopic", "background")


def whole(parts: Mapping[str, Mask]) -> Mask:
    """The mask of the fruiting body: the merged one where there is one, else everything that is a part of it.

    Where nothing is a part of it (a photo of spores), it is empty. There must be a mask of something.
    """
    if WHOLE in parts:
        return parts[WHOLE]
    empty = np.zeros_like(next(iter(parts.values())))
    return np.asarray(np.logical_or.reduce([empty, *(mask for name, mask in parts.items() if name not in NEVER_PARTS)]))


def resized(mask: Mask, shape: tuple[int, ...]) -> Mask:
    """A mask at another size, each pixel from the nearest one."""
    if mask.shape == shape:
        return mask
    size = (shape[1], shape[0])
    return np.asarray(Image.fromarray(mask).resize(size, Image.Resampling.NEAREST), dtype=np.bool_)
