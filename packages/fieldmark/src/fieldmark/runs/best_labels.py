"""Lists of the best labels of many items, made from blocks of scores: items x labels is never held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.runs.code_sets import offsets_of
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.tables.labels import Labels

# Cells of items x labels that are held at once.
BLOCK_CELLS = 4_000_000
# How many labels are kept of an item, where nobody says otherwise.
MOST_LISTED = 1000


def best_labels(
    item_ids: Sequence[str], labels: Labels, scale: Scale, blocks: Iterable[NDArray[np.floating[Any]]], listed: int
) -> LabelScores:
    """The best labels of each item, best first, from blocks of the scores of all labels."""
    codes, scores = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.float32)]
    for block in blocks:
        best = np.argpartition(-block, listed - 1, axis=1)[:, :listed]
        order = np.lexsort((best, -np.take_along_axis(block, best, axis=1)), axis=1)
        best = np.take_along_axis(best, order, axis=1)
        codes.append(best.ravel().astype(np.int32))
        scores.append(np.take_along_axis(block, best, axis=1).ravel())
    offsets = offsets_of(np.full(len(item_ids), listed))
    return LabelScores(item_ids, labels, np.concatenate(scores), scale, np.concatenate(codes), offsets)
