"""Lists of the best labels of many items, from a method that scores a block of items at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fieldmark.runs.best_labels import BLOCK_CELLS, MOST_LISTED, best_labels
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part


def best_of_blocks(
    part: Part, labels: Labels, scale: Scale, score: Callable[[Part], NDArray[np.float32]]
) -> LabelScores:
    """The best labels of each item of a part, best first; the method is given a block of items at a time."""
    size = max(BLOCK_CELLS // max(len(labels), 1), 1)
    return best_labels(part.item_ids, labels, scale, (score(block) for block in part.blocks(size)), MOST_LISTED)


__all__ = ["BLOCK_CELLS", "MOST_LISTED", "best_labels", "best_of_blocks"]
