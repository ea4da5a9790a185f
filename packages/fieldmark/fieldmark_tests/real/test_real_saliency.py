"""What U²-Netp finds on real butterflies, beside the masks that people have drawn."""

from __future__ import annotations

import numpy as np
from PIL import Image

from fieldmark.features.crops import Box, box_around
from fieldmark.features.saliency import Saliency


def overlap(one: Box, other: Box) -> float:
    """Intersection over union."""
    width = max(0.0, min(one.right, other.right) - max(one.left, other.left))
    height = max(0.0, min(one.bottom, other.bottom) - max(one.top, other.top))
    areas = [(box.right - box.left) * (box.bottom - box.top) for box in (one, other)]
    return width * height / (sum(areas) - width * height)


def test_the_box_lies_around_the_butterfly(real_data):
    folder, saliency = real_data / "butterflies_leeds", Saliency()
    photos = sorted((folder / "images").iterdir())[3::60]
    found = []
    for photo in photos:
        with Image.open(folder / "masks" / f"{photo.stem}_seg0.png") as mask:
            true = box_around(np.asarray(mask.convert("L")) > 127)
        *edges, _ = (float(value) for value in saliency.look(photo.read_bytes()))
        found.append((overlap(Box(*edges), true), overlap(Box(0, 0, 1, 1), true)))
    of_saliency, of_whole = np.mean(found, axis=0)
    assert len(photos) >= 6 and of_saliency > 0.75 and of_saliency > of_whole + 0.2
