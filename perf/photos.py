"""Decoding camera-sized photos at the scale a network needs, beside decoding them in full."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image

from fieldmark.features.photos import Preprocessing, decode_photo, decode_square
from perf.timing import fastest

PHOTOS, SIDE_PX = 8, 2048


def run() -> dict[str, Any]:
    """The ratio of full decoding to decoding as needed."""
    rng = np.random.default_rng(0)
    how = Preprocessing(224, 0.875, (0.5,) * 3, (0.5,) * 3)
    photos = []
    for _ in range(PHOTOS):
        coarse = Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8))
        file = io.BytesIO()
        coarse.resize((SIDE_PX, SIDE_PX), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
        photos.append(file.getvalue())

    def in_full() -> None:
        for data in photos:
            decode_photo(data).resize((256, 256), Image.Resampling.BICUBIC)

    times = fastest({"ours": lambda: [decode_square(data, how) for data in photos], "full": in_full}, rounds=5)
    return {"photo_px": SIDE_PX, "needed_px": 224, "full_over_ours": round(times["full"] / times["ours"], 1)}
