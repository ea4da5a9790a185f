"""Labels that a model which has not learned from them doubts.

Confident learning (Northcutt, Jiang, Chuang 2021): with p_ik the out-of-fold probability of class k for item i, and t_k
the mean of p_ik over the items that are labeled k, item i counts as truly of class k if p_ik >= t_k (the likeliest such
k, where there are several). Items that count as another class than their label are doubted. The thresholds make up for
classes about which the model is less sure. Doubted items are ordered by p of their label less the highest p of another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Probabilities = NDArray[np.floating]
Codes = NDArray[np.int32]


class Doubts(NamedTuple):
    """For each item: whether its label is doubted, what it might be, and how far its label falls behind."""

    doubted: NDArray[np.bool_]
    suggested: NDArray[np.int64]
    margin: NDArray[np.float64]


def label_doubts(probabilities: Probabilities, labels: Codes) -> Doubts:
    """Which labels to look at.

    Args:
        probabilities: Out of fold, one row per item, one column per class.
        labels: The label of each item.

    Returns:
        The doubts; `margin` is lowest where the doubt is strongest.

    >>> sure = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.1, 0.9], [0.9, 0.1]])
    >>> label_doubts(sure, np.array([0, 0, 1, 1, 1], dtype=np.int32)).doubted.tolist()
    [False, False, False, False, True]
    """
    p = np.asarray(probabilities, dtype=np.float64)
    rows = np.arange(len(p))
    own = p[rows, labels]
    count = np.bincount(labels, minlength=p.shape[1])
    # A class that nobody is labeled as can be no item's true class.
    threshold = np.full(p.shape[1], np.inf)
    np.divide(np.bincount(labels, weights=own, minlength=p.shape[1]), count, out=threshold, where=count > 0)
    confident = np.where(p >= threshold, p, -1.0)
    counted_as = confident.argmax(axis=1)
    others = p.copy()
    others[rows, labels] = -1.0
    likeliest = others.argmax(axis=1) if p.shape[1] > 1 else labels.astype(np.int64)
    doubted = (confident.max(axis=1) >= 0) & (counted_as != labels)
    return Doubts(doubted, np.where(doubted, counted_as, likeliest), own - others[rows, likeliest])
