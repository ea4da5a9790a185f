"""Average precision of instances, as COCO counts it: boxes or masks, each with a class and a score.

For a class and a threshold of overlap, answers are taken by falling score (100 of an image at most), and each takes the
best object that is still free and overlaps enough. Precision, made falling, is read at 101 recalls; the mean over them
is the average precision, its mean over classes and over thresholds from 0.50 to 0.95 is `ap`. A crowd may be taken any
number of times and counts neither way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0.0, 1.0, 101)
MOST_ANSWERS = 100


def box_overlaps(answers: Floats, truth: Floats, crowd: Flags) -> Floats:
    """The overlap of boxes x, y, width, height: intersection over union; over the answer alone where truth is a crowd.

    >>> box_overlaps(np.array([[0, 0, 2, 2.0]]), np.array([[1, 0, 2, 2], [0, 0, 4, 4.0]]), np.array([False, True]))
    array([[0.33333333, 1.        ]])
    """
    low = np.maximum(answers[:, None, :2], truth[None, :, :2])
    high = np.minimum((answers[:, :2] + answers[:, 2:])[:, None], (truth[:, :2] + truth[:, 2:])[None])
    both = np.prod(np.maximum(high - low, 0), axis=2)
    return _shares(both, np.prod(answers[:, 2:], axis=1), np.prod(truth[:, 2:], axis=1), crowd)


def mask_overlaps(answers: Sequence[Flags], truth: Sequence[Flags], crowd: Flags) -> Floats:
    """The overlap of masks of one image, as for boxes."""
    if not answers or not truth:
        return np.zeros((len(answers), len(truth)))
    one, other = (np.stack([mask.ravel() for mask in masks]).astype(np.float32) for masks in (answers, truth))
    return _shares((one @ other.T).astype(np.float64), one.sum(axis=1), other.sum(axis=1), crowd)


def _shares(both: Floats, answers: Floats, truth: Floats, crowd: Flags) -> Floats:
    either = np.where(crowd[None], answers[:, None], answers[:, None] + truth[None] - both)
    return np.asarray(both / np.maximum(either, np.finfo(np.float64).tiny))


class Matched(NamedTuple):
    """The answers of one image and class, by falling score.

    Args:
        scores: Of the answers.
        right: Thresholds x answers: which took an object.
        ignored: Thresholds x answers: which took a crowd, and count neither way.
        objects: How many objects there are, crowds left out.
    """

    scores: Floats
    right: Flags
    ignored: Flags
    objects: int


def match_instances(overlaps: Floats, scores: Floats, crowd: Flags, thresholds: Floats = THRESHOLDS) -> Matched:
    """Gives each answer of an image the best object that is still free, the surest answer first.

    Args:
        overlaps: Answers x objects.
        scores: Of the answers.
        crowd: Which objects are crowds.
        thresholds: From which overlap on an object may be taken.
    """
    order = np.argsort(-scores, kind="mergesort")[:MOST_ANSWERS]
    last = np.argsort(crowd, kind="mergesort")  # crowds are taken where nothing else is left
    overlaps, crowd = overlaps[order][:, last], crowd[last]
    right = np.zeros((len(thresholds), len(order)), dtype=np.bool_)
    ignored = np.zeros_like(right)
    for number, threshold in enumerate(thresholds):
        free = np.ones(len(crowd), dtype=np.bool_)
        for answer, row in enumerate(overlaps):
            enough = (row >= min(threshold, 1 - 1e-10)) & (free | crowd)
            pool = enough & ~crowd if (enough & ~crowd).any() else enough
            if not pool.any():
                continue
            # Among equals COCO takes the last.
            best = len(row) - 1 - int(np.argmax(np.where(pool, row, -1.0)[::-1]))
            free[best] = False
            right[number, answer], ignored[number, answer] = not crowd[best], crowd[best]
    return Matched(scores[order], right, ignored, int((~crowd).sum()))


@dataclass(frozen=True)
class InstanceScores:
    """What instances score: `ap` over all thresholds, `ap_50` and `ap_75` at one; NaN where there is no object."""

    ap: float
    ap_50: float
    ap_75: float


def average_precision(classes: Sequence[Sequence[Matched]]) -> InstanceScores:
    """The mean over classes of their average precision; classes without an object have none.

    Args:
        classes: For each class its images.
    """
    found = [_of_class(images) for images in classes if sum(image.objects for image in images)]
    if not found:
        return InstanceScores(np.nan, np.nan, np.nan)
    mean = np.mean(found, axis=0)
    return InstanceScores(float(mean.mean()), float(mean[0]), float(mean[5]))


def _of_class(images: Sequence[Matched]) -> Floats:
    """The average precision of one class at each threshold."""
    scores = np.concatenate([image.scores for image in images])
    order = np.argsort(-scores, kind="mergesort")
    right = np.concatenate([image.right for image in images], axis=1)[:, order]
    ignored = np.concatenate([image.ignored for image in images], axis=1)[:, order]
    objects = sum(image.objects for image in images)
    hits, misses = np.cumsum(right, axis=1), np.cumsum(~right & ~ignored, axis=1)
    recall = hits / objects
    precision = hits / np.maximum(hits + misses, np.spacing(1))
    falling = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    read = np.zeros((len(right), len(RECALLS)))
    for number, (own, values) in enumerate(zip(recall, falling, strict=True)):
        places = np.searchsorted(own, RECALLS, side="left")
        reached = places < len(values)
        read[number, reached] = values[places[reached]]
    return np.asarray(read.mean(axis=1))
