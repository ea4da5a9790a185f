"""How far two names lie apart in a tree of taxa cut to a few ranks.

Each name has a path from the root: one code per rank, from the highest rank down, -1 below the rank at which it ends.
The distance of two names is the number of edges between them, len(a) + len(b) - 2 x (ranks they share from the top).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.classification import Codes, Values, mean_without_each_unit

Paths = NDArray[np.int32]


def tree_distance(truth: Codes, answer: Codes, *, paths: Paths, unnamed: int) -> NDArray[np.int64]:
    """The number of edges between the true and the answered name of each item.

    Args:
        truth: The row of the true name in `paths`.
        answer: The row of the answered one, negative where nothing that stands in the tree was answered.
        paths: One row per name, one column per rank, highest first.
        unnamed: What such an answer counts.

    >>> paths = np.array([[0, 1, 2], [0, 1, 3], [0, 1, -1]])
    >>> tree_distance(np.array([0, 0, 0]), np.array([1, 2, -1]), paths=paths, unnamed=12)
    array([ 2,  1, 12])
    """
    depth = (paths >= 0).sum(axis=1)
    one, other = paths[truth], paths[np.maximum(answer, 0)]
    same = np.cumprod((one == other) & (one >= 0), axis=1).sum(axis=1)
    edges = depth[truth] + depth[np.maximum(answer, 0)] - 2 * same
    return np.asarray(np.where(answer < 0, unnamed, edges))


def mean_tree_distance(truth: Codes, answer: Codes, *, paths: Paths, unnamed: int) -> float:
    """The mean over items of `tree_distance`; lower is better."""
    return float(tree_distance(truth, answer, paths=paths, unnamed=unnamed).mean())


def mean_tree_distance_without_each_unit(
    truth: Codes, answer: Codes, unit: Codes, *, paths: Paths, unnamed: int
) -> Values:
    """The same with each unit left out in turn."""
    distance = tree_distance(truth, answer, paths=paths, unnamed=unnamed).astype(np.float64)
    return mean_without_each_unit(distance, unit)
