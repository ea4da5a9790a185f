"""Average precision of instances against pycocotools, on boxes and masks with crowds, ties and several classes."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

from fieldmark.masks.coco_runlengths import coco_rle
from fieldmark.metrics.instances import average_precision, box_overlaps, mask_overlaps, match_instances

IMAGES, CLASSES, SIDE = 6, 3, 40


def drawn(seed: int):
    """Objects and answers of some images: the answers are objects that were moved, and others."""
    rng = np.random.default_rng(seed)
    truth, answers = [], []
    for image in range(1, IMAGES + 1):
        for _ in range(rng.integers(1, 7)):
            box = [*rng.integers(0, 25, 2), *rng.integers(4, 15, 2)]
            one = {"image_id": image, "category_id": int(rng.integers(1, CLASSES)), "bbox": [int(x) for x in box]}
            truth.append(one | {"iscrowd": int(rng.random() < 0.15)})
            if rng.random() < 0.8:
                moved = [int(max(x, 1)) for x in np.array(box) + rng.integers(-2, 3, 4)]
                answers.append(one | {"bbox": moved, "score": float(rng.integers(1, 8)) / 8})
        if rng.random() < 0.7:
            false = {"image_id": image, "category_id": int(rng.integers(1, CLASSES + 1)), "bbox": [3, 3, 9, 9]}
            answers.append(false | {"score": float(rng.integers(1, 8)) / 8})
    return truth, answers


def mask_of(box):
    mask = np.zeros((SIDE, SIDE), dtype=bool)
    x, y, width, height = box
    mask[y : y + height, x : x + width] = True
    mask[y, x] = False  # no longer a rectangle
    return mask


def theirs(truth, answers, kind):
    coco = pytest.importorskip("pycocotools.coco")
    evaluation = pytest.importorskip("pycocotools.cocoeval")
    with contextlib.redirect_stdout(io.StringIO()):
        one = coco.COCO()
        one.dataset = {
            "images": [{"id": image, "width": SIDE, "height": SIDE} for image in range(1, IMAGES + 1)],
            "categories": [{"id": number} for number in range(1, CLASSES + 1)],
            "annotations": [
                own
                | {"id": number, "area": own["bbox"][2] * own["bbox"][3]}
                | {"segmentation": coco_rle(mask_of(own["bbox"]), compressed=True)}
                for number, own in enumerate(truth, 1)
            ],
        }
        one.createIndex()
        listed = [
            own
            if kind == "bbox"
            else {key: own[key] for key in ("image_id", "category_id", "score")}
            | {"segmentation": coco_rle(mask_of(own["bbox"]), compressed=True)}
            for own in answers
        ]
        made = evaluation.COCOeval(one, one.loadRes(listed), kind)
        made.evaluate()
        made.accumulate()
        made.summarize()
    return made.stats[:3]


def ours(truth, answers, kind):
    classes = []
    for category in range(1, CLASSES + 1):
        images = []
        for image in range(1, IMAGES + 1):
            own = [one for one in truth if (one["image_id"], one["category_id"]) == (image, category)]
            said = [one for one in answers if (one["image_id"], one["category_id"]) == (image, category)]
            crowd = np.array([bool(one["iscrowd"]) for one in own], dtype=bool)
            if kind == "bbox":
                boxes = [np.array([one["bbox"] for one in some], dtype=float).reshape(-1, 4) for some in (said, own)]
                overlaps = box_overlaps(*boxes, crowd)
            else:
                masks = [[mask_of(one["bbox"]) for one in some] for some in (said, own)]
                overlaps = mask_overlaps(*masks, crowd)
            images.append(match_instances(overlaps, np.array([one["score"] for one in said], dtype=float), crowd))
        classes.append(images)
    return average_precision(classes)


@pytest.mark.parametrize("kind", ["bbox", "segm"])
@pytest.mark.parametrize("seed", range(8))
def test_average_precision_is_that_of_pycocotools(kind, seed):
    truth, answers = drawn(seed)
    made = ours(truth, answers, kind)
    assert (made.ap, made.ap_50, made.ap_75) == pytest.approx(theirs(truth, answers, kind), abs=1e-12)


def test_the_objects_themselves_score_one_and_no_answer_scores_zero():
    truth, _ = drawn(1)
    truth = [one | {"iscrowd": 0} for one in truth]
    assert ours(truth, [one | {"score": 1.0} for one in truth], "segm").ap == pytest.approx(1.0)
    assert ours(truth, [], "bbox").ap == 0.0
    assert np.isnan(ours([], [], "bbox").ap)
