"""Masks written down as run lengths that alternate from background, row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def decode_runs(lengths: Sequence[int], height: int, width: int) -> NDArray[np.bool_]:
    """The mask behind run lengths; what they leave out at the end is background.

    >>> decode_runs([1, 2], height=2, width=3).astype(int)
    array([[0, 1, 1],
           [0, 0, 0]])

    Raises:
        ValueError: When the runs are longer than the picture.
    """
    counts = np.asarray(lengths, dtype=np.int64)
    if counts.sum() > height * width or (counts < 0).any():
        raise ValueError(f"runs of {counts.sum()} pixels for a picture of {height * width}")
    flat = np.zeros(height * width, dtype=np.bool_)
    drawn = np.repeat(np.arange(len(counts)) % 2 == 1, counts)
    flat[: len(drawn)] = drawn
    return flat.reshape(height, width)


def encode_runs(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The run lengths of a mask; they add up to the whole picture, so that nothing can be taken for a box behind them.

    >>> encode_runs(np.array([[0, 1, 1], [0, 0, 0]], dtype=bool))
    array([1, 2, 3])
    """
    flat = mask.ravel()
    changes = np.flatnonzero(np.diff(flat, prepend=False))
    return np.diff(np.append(changes, flat.size), prepend=0)
