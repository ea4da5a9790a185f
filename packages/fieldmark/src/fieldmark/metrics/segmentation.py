"""Metrics of segmentation, from the pixels that truth and answer share and cover.

Masks are counted one image at a time (`mask_counts`, `part_counts`, `label_map_counts`), so that a set of any size
needs two numbers per image and part: the intersection and the union, in pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldmark.metrics.classification import Codes, Mask, Values, mean_without_each_unit

Pixels = NDArray[np.int64]
Empty = Literal["one", "zero"]

BACKGROUND = "background"


class PixelCounts(NamedTuple):
    """Pixels in both masks and in either; one number, or one per part."""

    intersection: Pixels
    union: Pixels


def mask_counts(truth: Mask, predicted: Mask) -> PixelCounts:
    """Counts the pixels of two masks of one image; leading axes (parts) stay apart, the last two are the image.

    >>> truth, predicted = np.array([[True, True, False]]), np.array([[False, True, True]])
    >>> tuple(int(count) for count in mask_counts(truth, predicted))
    (1, 3)
    """
    if truth.shape != predicted.shape:
        raise ValueError(f"the masks have shapes {truth.shape} and {predicted.shape}; resize the answer to the truth")
    both, either = (np.sum(pixels, axis=(-2, -1)) for pixels in (truth & predicted, truth | predicted))
    return PixelCounts(both, either)


def part_counts(truth: Mask, predicted: Mask) -> PixelCounts:
    """Counts the pixels of each part, with the background as one more part in front: where no part is.

    Args:
        truth: One mask per part (part, height, width); parts may overlap.
        predicted: The same for the answer.

    >>> truth = np.array([[[True, True, False]]])
    >>> part_counts(truth, np.array([[[False, True, False]]])).union.tolist()
    [2, 2]
    """
    with_background = (np.concatenate([~masks.any(axis=0, keepdims=True), masks]) for masks in (truth, predicted))
    return mask_counts(*with_background)


def label_map_counts(truth: Codes, predicted: Codes, *, n_parts: int) -> PixelCounts:
    """Counts the pixels of each label in two maps of labels from 0 to `n_parts` - 1; 0 is usually the background.

    >>> label_map_counts(np.array([[0, 1, 1]]), np.array([[0, 0, 1]]), n_parts=3).intersection.tolist()
    [1, 1, 0]
    """
    if truth.shape != predicted.shape:
        raise ValueError(f"the maps have shapes {truth.shape} and {predicted.shape}; resize the answer to the truth")
    both = np.bincount(truth[truth == predicted], minlength=n_parts)
    either = np.bincount(truth.ravel(), minlength=n_parts) + np.bincount(predicted.ravel(), minlength=n_parts) - both
    return PixelCounts(both, either)


def mean_iou(intersection: Pixels, union: Pixels, *, empty: Empty = "one") -> float:
    """Binary intersection over union, averaged over images: each image has the same weight.

    Args:
        intersection: Pixels in truth and answer, one number per image.
        union: Pixels in truth or answer.
        empty: What an image counts in which neither has a pixel: "one" (nothing was there, and nothing was found), or
            "zero", as the `eval.py` of FungiTastic counts.

    >>> [mean_iou(np.array([1, 0]), np.array([2, 0]), empty=empty) for empty in ("one", "zero")]
    [0.75, 0.25]
    """
    return float(_iou(intersection, union, empty).mean())


def mean_iou_without_each_unit(intersection: Pixels, union: Pixels, unit: Codes, *, empty: Empty = "one") -> Values:
    """The mean over images of binary intersection over union, with each unit left out in turn."""
    return mean_without_each_unit(_iou(intersection, union, empty), unit)


def pooled_miou(
    intersection: Pixels, union: Pixels, *, parts: Sequence[str], background: bool, averaged: Sequence[str] = ()
) -> float:
    """Mean over parts of the intersection over union of all pixels of a part in the set: each part has the same weight.

    mIoU = 1/C sum_c |P_c and G_c| / |P_c or G_c|, the pixels pooled over images. A part that occurs neither in the
    truth nor in the answers is dropped from the mean; a part that only one of them has counts 0. NaN if none is left.

    Args:
        intersection: Pixels in truth and answer, one row per image, one column per part.
        union: Pixels in truth or answer.
        parts: The names of the columns; the background is called "background".
        background: Whether the background is averaged as a part.
        averaged: The parts to average; all if none is named.

    >>> both, either = np.array([[90, 5, 0], [80, 0, 0]]), np.array([[100, 10, 0], [100, 10, 0]])
    >>> parts = ("background", "cap", "ring")
    >>> [round(pooled_miou(both, either, parts=parts, background=included), 3) for included in (True, False)]
    [0.55, 0.25]
    """
    columns = _columns(parts, background, averaged)
    return float(_mean_of_parts(intersection[:, columns].sum(axis=0), union[:, columns].sum(axis=0)))


def pooled_miou_without_each_unit(
    intersection: Pixels,
    union: Pixels,
    unit: Codes,
    *,
    parts: Sequence[str],
    background: bool,
    averaged: Sequence[str] = (),
) -> Values:
    """The pooled mIoU with each unit left out in turn; a part that only this unit has leaves the mean with it."""
    columns = _columns(parts, background, averaged)
    both, either = (_left_without_each_unit(pixels[:, columns], unit) for pixels in (intersection, union))
    return _mean_of_parts(both, either)


def _iou(intersection: Pixels, union: Pixels, empty: Empty = "one") -> Values:
    nothing = np.full(np.shape(union), 1.0 if empty == "one" else 0.0)
    return np.asarray(np.divide(intersection, union, out=nothing, where=np.asarray(union) > 0))


def _columns(parts: Sequence[str], background: bool, averaged: Sequence[str]) -> list[int]:
    strange = [name for name in averaged if name not in parts]
    if strange:
        raise ValueError(f"no part is called {strange[0]!r}; the parts are {', '.join(parts)}")
    wanted = averaged or parts
    return [number for number, name in enumerate(parts) if (background if name == BACKGROUND else name in wanted)]


def _left_without_each_unit(pixels: Pixels, unit: Codes) -> Pixels:
    own = np.zeros((int(unit.max()) + 1, pixels.shape[1]), dtype=np.int64)
    np.add.at(own, unit, pixels)
    return np.asarray(pixels.sum(axis=0, dtype=np.int64) - own)


def _mean_of_parts(intersection: Pixels, union: Pixels) -> Values:
    """The mean over the last axis of the parts that occur."""
    occurs = union > 0
    total = np.where(occurs, _iou(intersection, union), 0.0).sum(axis=-1)
    parts = occurs.sum(axis=-1)
    return np.asarray(np.divide(total, parts, out=np.full(np.shape(parts), np.nan), where=parts > 0))
