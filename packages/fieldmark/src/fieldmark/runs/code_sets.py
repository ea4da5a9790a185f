"""Sets of label codes, one per item, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]
Offsets = NDArray[np.int64]


@dataclass(frozen=True)
class CodeSets:
    """A set of codes for each item: one answer, "unknown" (-1), several that go together, or none.

    Args:
        codes: The codes of all items, one item after the other.
        offsets: Where the codes of each item begin, and where the last ones end.

    >>> CodeSets.single(np.array([3, -1], dtype=np.int32)).of(1)
    array([-1], dtype=int32)
    """

    codes: Codes
    offsets: Offsets

    def __post_init__(self) -> None:
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.codes) or (np.diff(self.offsets) < 0).any():
            raise ValueError("offsets must rise from 0 to the number of codes")

    @classmethod
    def single(cls, codes: NDArray[np.integer]) -> CodeSets:
        """One code for each item."""
        return cls(codes.astype(np.int32), np.arange(len(codes) + 1, dtype=np.int64))

    @classmethod
    def of_lists(cls, lists: Sequence[Sequence[int]]) -> CodeSets:
        """The sets given as lists."""
        lengths = np.array([len(one) for one in lists], dtype=np.int64)
        codes = np.array([code for one in lists for code in one], dtype=np.int32)
        return cls(codes, offsets_of(lengths))

    @classmethod
    def concat(cls, parts: Sequence[CodeSets]) -> CodeSets:
        """The sets of several groups of items, one after the other."""
        lengths = np.concatenate([part.lengths for part in parts])
        return cls(np.concatenate([part.codes for part in parts]), offsets_of(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many codes each item has."""
        return np.diff(self.offsets)

    def of(self, row: int) -> Codes:
        """The codes of one item."""
        return self.codes[self.offsets[row] : self.offsets[row + 1]]

    def take(self, rows: NDArray[np.int64]) -> CodeSets:
        """The sets of some of the items."""
        return CodeSets(self.codes[places(self.offsets, rows)], offsets_of(self.lengths[rows]))

    def first(self, nothing: int) -> Codes:
        """The first code of each item, `nothing` where it has none."""
        padded = np.append(self.codes, np.int32(nothing))
        return np.where(self.lengths > 0, padded[self.offsets[:-1]], np.int32(nothing))


def offsets_of(lengths: NDArray[np.integer]) -> Offsets:
    """Where lists of these lengths begin, laid one after the other.

    >>> offsets_of(np.array([2, 0, 1]))
    array([0, 2, 2, 3])
    """
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def rows_of(offsets: Offsets) -> NDArray[np.int32]:
    """The item that each entry of the lists belongs to."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))


def places(offsets: Offsets, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the entries of some items lie, in the order of `rows`."""
    lengths = np.diff(offsets)[rows]
    begin = offsets_of(lengths)
    return np.repeat(offsets[:-1][rows] - begin[:-1], lengths) + np.arange(begin[-1])
