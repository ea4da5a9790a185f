"""How far two names lie apart in a tree of taxa cut to a few ranks.

Each name has a path from the root: one code per rank, from the highest rank down, -1 behind the rank at which it ends.
The distance of two names is the number of edges between them, len(a) + len(b) - 2 x (ranks they share from the top).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.classification import Codes, Values, mean_without_each_unit

Paths = NDArray[np.int32]
# Where a name without any rank stands: outside the tree, or at its root.
Pathless = Literal["outside", "root"]


def tree_distance(
    truth: Codes, answer: Codes, *, paths: Paths, unnamed: int, pathless: Pathless = "outside"
) -> NDArray[np.int64]:
    """The number of edges between the true and the answered name of each item.

    Args:
        truth: The row of the true name in `paths`.
        answer: The row of the answered one, negative where nothing that stands in the tree was answered.
        paths: One row per name, one column per rank, highest first.
        unnamed: What such an answer counts.
        pathless: Where a name without any rank stands. Outside the tree it counts as much for every other name, and
            nothing for itself.

    >>> paths = np.array([[0, 1, 2], [0, 1, 3], [0, 1, -1], [-1, -1, -1]])
    >>> tree_distance(np.array([0, 0, 0, 0, 3]), np.array([1, 2, -1, 3, 3]), paths=paths, unnamed=12)
    array([ 2,  1, 12, 12,  0])
    """
    depth = (paths >= 0).sum(axis=1)
    one, other = paths[truth], paths[np.maximum(answer, 0)]
    same = np.cumprod((one == other) & (one >= 0), axis=1).sum(axis=1)
    edges = depth[truth] + depth[np.maximum(answer, 0)] - 2 * same
    outside = (depth[truth] == 0) | (depth[np.maximum(answer, 0)] == 0)
    apart = outside & (truth != answer) if pathless == "outside" else np.zeros(len(truth), dtype=np.bool_)
    return np.asarray(np.where((answer < 0) | apart, unnamed, edges))


def mean_tree_distance(
    truth: Codes, answer: Codes, *, paths: Paths, unnamed: int, pathless: Pathless = "outside"
) -> float:
    """The mean over items of `tree_distance`; lower is better."""
    return float(tree_distance(truth, answer, paths=paths, unnamed=unnamed, pathless=pathless).mean())


def mean_tree_distance_without_each_unit(
    truth: Codes, answer: Codes, unit: Codes, *, paths: Paths, unnamed: int, pathless: Pathless = "outside"
) -> Values:
    """The same with each unit left out in turn."""
    distance = tree_distance(truth, answer, paths=paths, unnamed=unnamed, pathless=pathless).astype(np.float64)
    return mean_without_each_unit(distance, unit)
