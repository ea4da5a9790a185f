"""Whether a photo was taken through a microscope: spores and cells in even, bright light of one color.

Four numbers of the photo, scaled down, decide: most of it has the color of the background, the background is bright,
the light differs little, and so does the color. The lines were drawn by eye on the 535 photos of `fungi_amanita`, where
they find 24, all of them microscopy, and miss two (25 and one, as `identify` decodes photos); they were not changed for
the 540 field photos of `fungi_genera`, of which none is taken for one. It is asked of fungi only: a bird in the sky
looks much the same to it.
"""

from __future__ import annotations

import numpy as np

from fieldmark.features.photos import is_plain, small_photo

SIDE_PX = 64
LUMA = np.array((0.299, 0.587, 0.114))
# Below this spread of gray values there is nothing in the light.
ALL_ONE = 0.5
# Sum over the channels of the distance from the color of the background, of 3 x 255.
NEAR_BACKGROUND = 60.0
LEAST_BACKGROUND, LEAST_BRIGHTNESS, MOST_CONTRAST, MOST_COLOR = 0.7, 85.0, 73.0, 23.0


def is_microscopic(data: bytes) -> bool:
    """Whether a photo looks as if taken through a microscope.

    Raises:
        PhotoError: When the bytes are no photo or end too early.
    """
    colors = np.asarray(small_photo(data, SIDE_PX), dtype=np.float64).reshape(-1, 3)
    background = np.median(colors, axis=0)
    share = float((np.abs(colors - background).sum(axis=1) < NEAR_BACKGROUND).mean())
    light = colors @ LUMA
    low, high = np.percentile(light, (2, 98))
    tint = colors - light[:, None]
    color = float(np.abs(tint - np.median(tint, axis=0)).sum(axis=1).mean())
    even = high - low <= MOST_CONTRAST and color <= MOST_COLOR
    bright = float(np.median(light)) >= LEAST_BRIGHTNESS
    return share >= LEAST_BACKGROUND and bright and bool(even) and not is_plain(data, ALL_ONE)
