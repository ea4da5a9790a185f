"""How well stated confidence agrees with how often an answer is right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


class Reliability(NamedTuple):
    """Bins of equal width over confidence, empty ones left out."""

    confidence: Values
    accuracy: Values
    items: NDArray[np.int64]


def reliability(confidence: Values, correct: NDArray[np.bool_], *, bins: int = 10) -> Reliability:
    """Mean confidence and accuracy of the items in each of `bins` equal bins of [0, 1]; 1.0 belongs to the last bin.

    >>> reliability(np.array([0.15, 0.95, 1.0]), np.array([False, True, True])).accuracy
    array([0., 1.])
    """
    place = np.minimum((np.asarray(confidence) * bins).astype(np.int64), bins - 1)
    items = np.bincount(place, minlength=bins)
    filled = items > 0
    mean_confidence = np.bincount(place, weights=confidence, minlength=bins)[filled] / items[filled]
    accuracy = np.bincount(place, weights=correct, minlength=bins)[filled] / items[filled]
    return Reliability(mean_confidence, accuracy, items[filled])


def expected_calibration_error(confidence: Values, correct: NDArray[np.bool_], *, bins: int = 10) -> float:
    """The mean over items of |accuracy - confidence| of the bin an item falls in.

    >>> round(expected_calibration_error(np.array([0.75, 0.75]), np.array([True, False])), 3)
    0.25
    """
    bands = reliability(confidence, correct, bins=bins)
    return float(np.average(np.abs(bands.accuracy - bands.confidence), weights=bands.items))
