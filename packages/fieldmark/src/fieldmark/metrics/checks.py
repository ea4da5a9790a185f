"""What every metric refuses rather than turn into a number that looks like a score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def refuse_nan(score: NDArray[Any], what: str = "the scores") -> None:
    """Raises a ValueError that names the first NaN; a NaN has no place in any order.

    >>> refuse_nan(np.array([0.5, np.nan]))
    Traceback (most recent call last):
        ...
    ValueError: the scores contain NaN, first at position 1
    """
    missing = np.isnan(score)
    if missing.any():
        raise ValueError(f"{what} contain NaN, first at position {int(missing.argmax())}")


def refuse_negative(labels: NDArray[Any], what: str = "the true labels") -> None:
    """Raises a ValueError where a label is -1 and the metric has no meaning for "unknown"."""
    if labels.size and int(labels.min()) < 0:
        raise ValueError(f"{what} contain -1, first at position {int((labels < 0).argmax())}: a known label is needed")
