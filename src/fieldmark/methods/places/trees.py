"""Decision trees as flat arrays: they are saved without code, and answer without the library that grew them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.methods.base import Arrays

LEAF = -1


@dataclass(frozen=True)
class Trees:
    """Trees one after the other; nodes of all of them have numbers of their own.

    Args:
        roots: The first node of each tree.
        feature: The column that a node asks about; -1 for a leaf.
        threshold: Rows with a value up to this go left.
        left: The next node on the left.
        right: The next node on the right.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.roots)

    @classmethod
    def of(cls, grown: Sequence[Any]) -> Trees:
        """The trees that scikit-learn grew."""
        sizes = [tree.tree_.node_count for tree in grown]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64) if sizes else np.zeros(0, dtype=np.int64)
        feature = [np.maximum(tree.tree_.feature, LEAF).astype(np.int32) for tree in grown]
        left, right = (
            [
                (np.where(ids >= 0, ids + root, LEAF)).astype(np.int32)
                for tree, root in zip(grown, roots, strict=True)
                for ids in [getattr(tree.tree_, f"children_{side}")]
            ]
            for side in ("left", "right")
        )
        threshold = [tree.tree_.threshold for tree in grown]
        return cls(roots, *(np.concatenate(column) for column in (feature, threshold, left, right)))

    def leaves(self, tree: int, table: NDArray[np.float32]) -> NDArray[np.int64]:
        """The leaf in which each row ends."""
        node = np.full(len(table), self.roots[tree], dtype=np.int64)
        going = np.arange(len(table))
        while len(going):
            at = node[going]
            inner = self.feature[at] != LEAF
            going, at = going[inner], at[inner]
            goes_left = table[going, self.feature[at]] <= self.threshold[at]
            node[going] = np.where(goes_left, self.left[at], self.right[at])
        return node

    def arrays(self, prefix: str = "trees.") -> Arrays:
        """Everything, to be saved."""
        names = ("roots", "feature", "threshold", "left", "right")
        return {f"{prefix}{name}": getattr(self, name) for name in names}

    @classmethod
    def from_arrays(cls, arrays: Arrays, prefix: str = "trees.") -> Trees:
        """From what `arrays` made."""
        return cls(*(arrays[f"{prefix}{name}"] for name in ("roots", "feature", "threshold", "left", "right")))
