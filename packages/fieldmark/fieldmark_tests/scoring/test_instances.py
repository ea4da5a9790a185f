"""Instances from files: scores with intervals over images, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fieldmark.errors import InputError
from fieldmark.masks.coco_runlengths import coco_rle
from fieldmark.scoring.instances import score_instances


def mask(row: int, column: int, side: int = 6):
    drawn = np.zeros((20, 20), dtype=bool)
    drawn[row : row + side, column : column + side] = True
    return coco_rle(drawn, compressed=True)


@pytest.fixture
def files(tmp_path):
    """Four images with one object each; the answers hit three of them."""
    objects = [
        {"id": n, "image_id": n, "category_id": 1, "segmentation": mask(n, n), "bbox": [n, n, 6, 6], "iscrowd": 0}
        for n in range(1, 5)
    ]
    images = [{"id": n} for n in range(1, 5)]
    truth, results = tmp_path / "truth.json", tmp_path / "results.json"
    truth.write_text(json.dumps({"images": images, "categories": [{"id": 1}], "annotations": objects}))
    said = [
        {"image_id": n, "category_id": 1, "score": n / 10, "segmentation": mask(n, n), "bbox": [n, n, 6, 6]}
        for n in range(2, 5)
    ]
    results.write_text(json.dumps(said))
    return truth, results


@pytest.mark.parametrize("kind", ["masks", "boxes"])
def test_three_of_four_objects_found_score_the_recalls_that_are_reached(files, kind):
    card = score_instances(*files, kind)
    assert card.metrics["ap"].value == pytest.approx(76 / 101)  # recalls from 0.00 to 0.75
    assert card.metrics["ap_50"].low < 76 / 101 < card.metrics["ap_50"].high
    assert (card.images, card.objects, card.answers) == (4, 4, 3)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"image_id": 9}, "result 0: found image_id 9, expected one of the 4"),
        ({"category_id": None}, "result 0: found category_id None"),
        ({"score": float("nan")}, "result 0: found the score nan"),
        ({"segmentation": [[0, 0, 1, 1]]}, "result 0: found polygons"),
        ({"segmentation": {"size": [20, 20], "counts": [7]}}, "result 0: found runs of 7 pixels"),
        ({"segmentation": coco_rle(np.ones((5, 5), dtype=bool))}, r"a mask of \(5, 5\), expected one of \(20, 20\)"),
    ],
)
def test_results_that_cannot_be_are_refused_with_their_number(files, change, sentence):
    truth, results = files
    said = json.loads(results.read_text())
    said[0] |= change
    results.write_text(json.dumps(said))
    with pytest.raises(InputError, match=sentence):
        score_instances(truth, results)


def test_files_that_are_exchanged_are_told_apart(files):
    truth, results = files
    with pytest.raises(InputError, match="expected COCO JSON with images"):
        score_instances(results, truth)
    with pytest.raises(InputError, match="That is a file of objects"):
        score_instances(truth, truth)
