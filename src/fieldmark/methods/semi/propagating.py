"""Labels spread over a graph of nearest neighbors."""

from __future__ import annotations

import numpy as np

from fieldmark.features.embeddings import unit_rows
from fieldmark.foundation.large_arrays import row_by_row
from fieldmark.foundation.nearest import Nearest, products_with
from fieldmark.methods.semi.soft_heads import Codes, Matrix, SoftTargets

BLOCK_ITEMS = 2048
STEPS = 30


def propagate(features: Matrix, truth: Codes, classes: int, neighbors: int, reach: float) -> SoftTargets:
    """What labels reach the unlabeled items, and how surely.

    Zhou et al. 2003: F = (1 - reach) sum of (reach S)^t Y with S the normalized graph of nearest neighbors by cosine,
    here for the first 30 steps. An item counts by one minus the entropy of what reached it, over the highest possible.

    Args:
        features: Labeled items first, then unlabeled ones.
        truth: The labels of the former.
        classes: How many labels there are.
        neighbors: How many neighbors each item has.
        reach: How far labels spread.
    """
    from scipy.sparse import coo_matrix  # takes long to import and is needed here alone

    rows, number = row_by_row(unit_rows, features), len(features)
    near = min(neighbors, number - 1)
    places, likeness = [], []
    for first in range(0, number, BLOCK_ITEMS):
        asked = np.arange(first, min(first + BLOCK_ITEMS, number))
        nearest = Nearest(len(asked), near)
        for block, cosine in products_with(rows, rows[first : first + BLOCK_ITEMS]):
            same = np.flatnonzero((asked >= block.start) & (asked < block.stop))
            cosine[same, asked[same] - block.start] = -np.inf  # nobody is a neighbor of itself
            nearest.see(cosine, block.start)
        places.append(nearest.items)
        likeness.append(np.clip(nearest.values, 0, None) ** 3)
    to, values = np.concatenate(places).ravel(), np.concatenate(likeness).ravel()
    graph = coo_matrix((values, (np.repeat(np.arange(number), near), to)), shape=(number, number)).tocsr()
    graph = graph + graph.T
    degree = np.maximum(np.asarray(graph.sum(axis=1)).ravel(), 1e-12)
    scaled = graph.multiply(1 / np.sqrt(degree)[:, None]).multiply(1 / np.sqrt(degree)[None, :]).tocsr()
    given = np.zeros((number, classes), dtype=np.float32)
    given[np.arange(len(truth)), truth] = 1
    given /= np.maximum(given.sum(axis=0), 1)  # every class sends out as much
    spread = given.copy()
    for _ in range(STEPS):
        spread = reach * (scaled @ spread) + given
    reached = np.asarray(spread[len(truth) :], dtype=np.float32)
    total = reached.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, reached / np.maximum(total, 1e-30), 1 / classes).astype(np.float32)
    entropy = -(shares * np.log(np.maximum(shares, 1e-12))).sum(axis=1)
    weights = np.clip(1 - entropy / np.log(max(classes, 2)), 0, 1).astype(np.float32)
    return SoftTargets(shares, weights)
