"""FungiCLEF of two years."""

from __future__ import annotations

import pytest
from sklearn.metrics import f1_score

import fieldmark
from fieldmark_tests.benchmarks.open_set import CLASSES, OPEN_TRUTH


def test_fungiclef_2023_tracks(run):
    content = "observationID,class_id\n1,a\n2,b\n3,-1\n4,b\n5,-1\n6,a\n"
    metrics = fieldmark.score("fungiclef-2023", run(content), truth=OPEN_TRUTH, classes=CLASSES).metrics
    assert metrics["track_1"].value == pytest.approx(3 / 6)
    assert metrics["track_2"].value == pytest.approx(101 / 6)
    assert metrics["track_3"].value == pytest.approx(104 / 6)
    assert metrics["track_4"].value == pytest.approx((1 + 0.1 + 10) / 6)
    truth, first = OPEN_TRUTH["label"], ["a", "b", "-1", "b", "-1", "a"]
    assert metrics["macro_f1_union"].value == pytest.approx(f1_score(truth, first, average="macro"))


def test_fungiclef_2025_recall_at_5(run):
    truth = {"id": ["7", "8"], "label": ["5", "6"]}
    classes = {"label": [str(n) for n in range(12)]}
    content = "observationId,predictions\n7,0 1 2 3 5 6\n8,0 1 2 3 4 6\n"
    assert (
        fieldmark.score("fungiclef-2025", run(content), truth=truth, classes=classes).metrics["recall_at_5"].value
        == 0.5
    )
