"""Smooth noise, of which grounds, woods and skins are made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Array = NDArray[np.float32]


def cloud(rng: np.random.Generator, side: int, cells: int) -> Array:
    """Returns a square of smooth noise of about unit variance with so many swells across."""
    coarse = Image.fromarray(rng.standard_normal((cells, cells)).astype(np.float32))
    return np.asarray(coarse.resize((side, side), Image.Resampling.BICUBIC), dtype=np.float32)
