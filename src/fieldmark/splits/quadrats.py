"""The draw of quadrats as the organizers of GeoLifeCLEF make it, and how far the two sides of a cut lie apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# The seed of the organizers, and their share of quadrats that is test.
ORGANIZERS_SEED, ORGANIZERS_SHARE = 1949, 0.025


def organizers_draw(quadrat: NDArray[Any], share: float, seed: int = ORGANIZERS_SEED) -> NDArray[np.bool_]:
    """Which places are held out: those of the last quadrats of a permutation.

    Names of quadrats are sorted; NumPy's older generator permutes their numbers, the first floor((1 - share) B) of B
    stay, the others are held out. The same places give the same answer on any machine.

    Args:
        quadrat: The name of the quadrat of each place.
        share: Of quadrats, held out.
        seed: Of the permutation.

    >>> organizers_draw(np.array(["e1n1", "e1n2", "e1n1", "e2n1"]), 1 / 3).tolist()
    [False, True, False, False]
    """
    names, number = np.unique(quadrat, return_inverse=True)
    order = np.random.RandomState(seed).permutation(len(names))
    kept = int(np.floor((1 - share) * len(names)))
    held_out = np.zeros(len(names), dtype=np.bool_)
    held_out[order[kept:]] = True
    return held_out[number]
