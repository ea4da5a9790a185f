"""Intersection over union of masks."""

from __future__ import annotations

from functools import partial
from typing import Literal

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.measures.readers import Arguments
from fieldmark.benchmarks.measures.support import on_pixels_of_parts
from fieldmark.metrics import segmentation
from fieldmark.metrics.segmentation import Empty
from fieldmark.questions.masks import MaskEvaluation

__all__ = ["iou", "miou"]


def _pixels(evaluation: MaskEvaluation) -> Arguments:
    return {"intersection": evaluation.intersection, "union": evaluation.union}


def _pixels_of_joined(evaluation: MaskEvaluation) -> Arguments:
    intersection, union = evaluation.joined_counts
    return {"intersection": intersection, "union": union}


def _pixels_of_parts(evaluation: MaskEvaluation) -> Arguments:
    parts = evaluation.parts
    return {"intersection": evaluation.part_table[0], "union": evaluation.part_table[1], "parts": parts}


Whole = Literal["merged", "joined"]


def iou(*, empty: Empty = "one", whole: Whole = "merged") -> Metric:
    """Binary intersection over union, each photo with the same weight.

    Args:
        empty: Whether empty against empty counts one or zero.
        whole: What the true fruiting body is: the mask that the organizers merged, or all its parts joined.
    """
    counted = "1" if empty == "one" else "0, as in the organizers' code"
    name, title, body = "iou", "IoU", "the fruiting body"
    if whole == "joined":
        name, title, body = "iou_joined", "IoU with all parts joined", "the fruiting body, all true parts joined"
    return Metric(
        name=name if empty == "one" else f"{name}_empty_zero",
        title=title if empty == "one" else f"{title}, empty counts 0",
        value=segmentation.mean_iou,
        without_each_unit=segmentation.mean_iou_without_each_unit,
        reads=_pixels if whole == "merged" else _pixels_of_joined,
        options={"empty": empty},
        about=f"mean over photos of intersection over union of {body}; empty against empty counts {counted}",
        otherwise={"empty=zero": partial(iou, empty="zero"), "whole=joined": partial(iou, whole="joined")}
        if (empty, whole) == ("one", "merged")
        else {},
    )


def miou(*, background: bool) -> Metric:
    """Intersection over union of each part, pixels pooled over the set, averaged over parts."""
    included = "the background is a part" if background else "the background is no part"
    return Metric(
        name="miou_with_background" if background else "miou",
        title="mIoU with background" if background else "mIoU",
        value=segmentation.pooled_miou,
        without_each_unit=segmentation.pooled_miou_without_each_unit,
        rests_on=on_pixels_of_parts,
        reads=_pixels_of_parts,
        options={"background": background},
        about="mean over the parts of truth and run of pooled intersection over union; parts that never occur are "
        f"dropped; {included}",
        few_units=True,
        optional=True,
    )
