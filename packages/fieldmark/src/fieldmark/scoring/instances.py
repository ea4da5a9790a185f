"""Instances scored as COCO does: a file of objects, a file of answers, and intervals over images."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.masks.coco_runlengths import mask_of_coco
from fieldmark.metrics.instances import (
    Matched,
    average_precision,
    box_overlaps,
    mask_overlaps,
    match_instances,
)
from fieldmark.scoring.scorecard import Score
from fieldmark.stats.intervals import interval, pseudo_values

Kind = Literal["masks", "boxes"]
Annotation = Mapping[str, Any]
# With more images than this, groups of them are left out in turn, as many as this.
MOST_GROUPS = 200


@dataclass(frozen=True)
class InstanceCard:
    """What answers score on the objects of a file.

    Args:
        kind: Whether masks or boxes were compared.
        images, objects, answers: How many there are; crowds are no objects.
        metrics: `ap`, `ap_50` and `ap_75` with their intervals over images.
    """

    kind: Kind
    images: int
    objects: int
    answers: int
    metrics: dict[str, Score]

    def to_json(self) -> dict[str, Any]:
        """The card as plain data."""
        return asdict(self)


def score_instances(truth: Path, answers: Path, kind: Kind = "masks") -> InstanceCard:
    """Scores instances as COCO does, with intervals over images.

    Args:
        truth: COCO JSON with images, categories and annotations.
        answers: A list of COCO results: image_id, category_id, score, and segmentation (run lengths) or bbox.
        kind: Whether masks or boxes are compared.

    Raises:
        InputError: When a file is something else, or answers name images or categories that the truth does not have.
    """
    objects, images, categories = _read_truth(truth)
    said = _read_answers(answers, images, categories)
    of_truth, of_answers = _grouped(objects), _grouped(said)
    classes = [
        [
            _matched(kind, of_truth.get((image, category), ()), of_answers.get((image, category), ()), truth, answers)
            for image in images
        ]
        for category in categories
    ]
    scores = asdict(average_precision(classes))
    if math.isnan(scores["ap"]):
        raise InputError(truth, found="no object", expected="annotations that are no crowds")
    left_out = _without_each_group(classes, len(images))
    metrics = {}
    for name, value in scores.items():
        made = interval(value, pseudo_values(value, left_out[name]))
        metrics[name] = Score(value, made.low, made.high, made.method, made.reason, made.rests_on)
    return InstanceCard(kind, len(images), sum(not one.get("iscrowd") for one in objects), len(said), metrics)


def _read_truth(path: Path) -> tuple[list[Annotation], list[Any], list[Any]]:
    try:
        data = json.loads(path.read_bytes())
        images = [image["id"] for image in data["images"]]
        categories = [category["id"] for category in data["categories"]]
        objects = list(data["annotations"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        expected = "COCO JSON with images, categories and annotations"
        raise InputError(path, found="something else", expected=expected) from error
    _refuse_strange(path, "annotation", objects, images, categories)
    return objects, images, categories


def _read_answers(path: Path, images: Sequence[Any], categories: Sequence[Any]) -> list[Annotation]:
    try:
        said = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(path, found="no JSON", expected="a list of COCO results") from error
    if not isinstance(said, list):
        hint = "That is a file of objects; results are a list of image_id, category_id, score and segmentation or bbox."
        raise InputError(path, found=f"a {type(said).__name__}", expected="a list of COCO results", hint=hint)
    _refuse_strange(path, "result", said, images, categories)
    for number, one in enumerate(said):
        score = one.get("score")
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
            raise InputError(f"{path}, result {number}", found=f"the score {score!r}", expected="a finite number")
    return said


def _refuse_strange(
    path: Path, what: str, listed: Sequence[Any], images: Sequence[Any], classes: Sequence[Any]
) -> None:
    known = {"image_id": set(images), "category_id": set(classes)}
    for number, one in enumerate(listed):
        for key, allowed in known.items():
            value = one.get(key) if isinstance(one, dict) else None
            if not isinstance(value, (int, str)) or value not in allowed:
                expected = f"one of the {len(allowed):,} that the truth lists"
                raise InputError(f"{path}, {what} {number}", found=f"{key} {value!r}", expected=expected)


def _grouped(annotations: Sequence[Annotation]) -> dict[tuple[Any, Any], list[tuple[int, Annotation]]]:
    found: dict[tuple[Any, Any], list[tuple[int, Annotation]]] = {}
    for number, one in enumerate(annotations):
        found.setdefault((one["image_id"], one["category_id"]), []).append((number, one))
    return found


def _matched(
    kind: Kind,
    objects: Sequence[tuple[int, Annotation]],
    said: Sequence[tuple[int, Annotation]],
    truth: Path,
    answers: Path,
) -> Matched:
    crowd = np.array([bool(one.get("iscrowd")) for _, one in objects], dtype=np.bool_)
    scores = np.array([one["score"] for _, one in said], dtype=np.float64)
    if not said or not objects:
        overlaps = np.zeros((len(said), len(objects)))
    elif kind == "boxes":
        overlaps = box_overlaps(_boxes(said, answers), _boxes(objects, truth), crowd)
    else:
        drawn = [_mask(one, f"{answers}, result {number}") for number, one in said]
        own = [_mask(one, f"{truth}, annotation {number}") for number, one in objects]
        strange = next((mask.shape for mask in drawn if mask.shape != own[0].shape), None)
        if strange is not None:
            where = f"{answers}, result {said[0][0]}"
            raise InputError(where, found=f"a mask of {strange}", expected=f"one of {own[0].shape}, as its image")
        overlaps = mask_overlaps(drawn, own, crowd)
    return match_instances(overlaps, scores, crowd)


def _boxes(annotations: Sequence[tuple[int, Annotation]], path: Path) -> NDArray[np.float64]:
    made = np.zeros((len(annotations), 4))
    for row, (number, one) in enumerate(annotations):
        box: Any = one.get("bbox")
        plain = isinstance(box, list) and len(box) == 4 and all(isinstance(edge, (int, float)) for edge in box)
        if not plain or not all(math.isfinite(edge) for edge in box) or min(box[2:]) < 0:
            raise InputError(f"{path}, number {number}", found=f"bbox {box!r}", expected="x, y, width and height")
        made[row] = box
    return made


def _mask(annotation: Annotation, where: str) -> NDArray[np.bool_]:
    rle = annotation.get("segmentation")
    if isinstance(rle, list):
        hint = "pycocotools turns polygons into run lengths: `COCO.annToRLE`."
        raise InputError(where, found="polygons", expected="run lengths (size and counts)", hint=hint)
    try:
        return mask_of_coco(rle)
    except ValueError as error:
        raise InputError(where, found=str(error), expected="run lengths that fill the picture") from error


def _without_each_group(classes: Sequence[Sequence[Matched]], images: int) -> dict[str, NDArray[np.float64]]:
    """The scores with one image left out, or one group of many."""
    groups = min(images, MOST_GROUPS)
    group_of = np.arange(images) % groups
    found: list[dict[str, float]] = []
    for group in range(groups):
        kept = np.flatnonzero(group_of != group).tolist()
        found.append(asdict(average_precision([[own[image] for image in kept] for own in classes])))
    values = {name: np.array([one[name] for one in found]) for name in (found[0] if found else ())}
    return {name: np.nan_to_num(own, nan=0.0) for name, own in values.items()}
