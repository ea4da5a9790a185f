"""Masks written down as run lengths that alternate from background, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Runs = NDArray[np.int64]

# A release may write left, top, width and height of what is drawn behind the run lengths.
BOX_NUMBERS = 4


class MaskRow(NamedTuple):
    """One mask of a photo: what it is of, the size of the picture, and its run lengths."""

    label: str
    height: int
    width: int
    runs: Runs

    @classmethod
    def of(cls, label: str, mask: Mask) -> MaskRow:
        """The mask as a row."""
        return cls(label, mask.shape[0], mask.shape[1], encode_runs(mask))

    def mask(self) -> Mask:
        """The pixels."""
        return decode_runs(self.runs, self.height, self.width)

    @property
    def area(self) -> int:
        """How many pixels are drawn."""
        return int(self.runs[1::2].sum())


def decode_runs(lengths: Sequence[int] | Runs, height: int, width: int) -> Mask:
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
    # What is left out at the end is one more run, of background: nothing is held twice.
    counts = np.append(counts, height * width - counts.sum())
    drawn = np.arange(len(counts)) % 2 == 1
    drawn[-1] = False
    return np.repeat(drawn, counts).reshape(height, width)


def encode_runs(mask: Mask) -> Runs:
    """The run lengths of a mask; they add up to the whole picture, so that nothing can be taken for a box behind them.

    >>> encode_runs(np.array([[0, 1, 1], [0, 0, 0]], dtype=bool))
    array([1, 2, 3])
    """
    flat = mask.ravel()
    if not flat.size:
        return np.zeros(1, dtype=np.int64)
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    first = [0, 0] if flat[0] else [0]
    return np.asarray(np.diff(np.concatenate([first, changes, [flat.size]])), dtype=np.int64)


def without_box(numbers: Runs, pixels: int) -> Runs:
    """The run lengths among the numbers of a release, which may end with the four numbers of a box.

    Numbers that add up to the picture are run lengths, all of them: a box would make them too many.

    >>> without_box(np.array([1, 2, 3, 1, 0, 2, 1]), 6).tolist(), without_box(np.array([1, 2, 3]), 6).tolist()
    ([1, 2, 3], [1, 2, 3])
    """
    return numbers if numbers.sum() == pixels else numbers[:-BOX_NUMBERS]


def box_of_runs(runs: Runs, width: int) -> list[int]:
    """Left, top, width and height of what run lengths draw; all 0 where they draw nothing.

    >>> box_of_runs(np.array([1, 2, 3]), width=3)
    [1, 0, 2, 1]
    """
    ends = np.cumsum(runs)
    first, last = ends[:-1][::2], ends[1::2] - 1
    drawn = last >= first[: len(last)]
    first, last = first[: len(last)][drawn], last[drawn]
    if not len(first):
        return [0, 0, 0, 0]
    top, bottom = int(first[0] // width), int(last[-1] // width)
    over_lines = bool((first // width != last // width).any())  # then it reaches both edges
    left, right = (0, width - 1) if over_lines else (int((first % width).min()), int((last % width).max()))
    return [left, top, right - left + 1, bottom - top + 1]
