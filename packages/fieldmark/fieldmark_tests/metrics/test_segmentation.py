from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import jaccard_score

from fieldmark.metrics.segmentation import (
    PixelCounts,
    label_map_counts,
    mask_counts,
    mean_iou,
    mean_iou_without_each_unit,
    part_counts,
    pooled_miou,
    pooled_miou_without_each_unit,
)
from fieldmark_tests.metrics.drawing import draw_units, generators, recomputed

PARTS = ("background", "cap", "gills", "stem")


@st.composite
def maps(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Label maps of several small images, in which parts may be missing, and the unit of each image."""
    rng = draw(generators)
    images, most = int(rng.integers(2, 8)), int(rng.integers(1, 5))
    truth = rng.integers(0, most, (images, 4, 5))
    predicted = np.where(rng.random(truth.shape) < 0.6, truth, rng.integers(0, most, truth.shape))
    return truth, predicted, draw_units(rng, images)


def counted(truth: np.ndarray, predicted: np.ndarray) -> PixelCounts:
    counts = [label_map_counts(a, b, n_parts=len(PARTS)) for a, b in zip(truth, predicted, strict=True)]
    return PixelCounts(*(np.array(column) for column in zip(*counts, strict=True)))


@given(case=maps(), background=st.booleans())
def test_pooled_miou_equals_scikit_learn_over_the_labels_that_occur(case, background):
    truth, predicted, _ = case
    labels = [label for label in np.union1d(truth, predicted) if background or label > 0]
    found = pooled_miou(*counted(truth, predicted), parts=PARTS, background=background)
    if not labels:
        assert np.isnan(found)
        return
    expected = jaccard_score(truth.ravel(), predicted.ravel(), labels=labels, average="macro", zero_division=0)
    assert found == pytest.approx(expected)


@given(case=maps())
def test_mean_iou_equals_scikit_learn_image_by_image(case):
    truth, predicted, _ = case
    counts = [mask_counts(a > 0, b > 0) for a, b in zip(truth, predicted, strict=True)]
    both, either = (np.array(column) for column in zip(*counts, strict=True))
    expected = np.mean(
        [jaccard_score(a.ravel() > 0, b.ravel() > 0, zero_division=1) for a, b in zip(truth, predicted, strict=True)]
    )
    assert mean_iou(both, either) == pytest.approx(expected)


@given(case=maps(), background=st.booleans())
def test_leaving_out_a_unit_equals_computing_without_its_images(case, background):
    truth, predicted, unit = case
    counts = counted(truth, predicted)
    if unit.max() == 0:
        return
    options = {"parts": PARTS, "background": background}
    fast = pooled_miou_without_each_unit(*counts, unit, **options)
    np.testing.assert_allclose(fast, recomputed(pooled_miou, counts, unit, **options))
    caps = counts.intersection[:, 1], counts.union[:, 1]
    for empty in ("one", "zero"):
        fast = mean_iou_without_each_unit(*caps, unit, empty=empty)
        np.testing.assert_allclose(fast, recomputed(mean_iou, caps, unit, empty=empty))


@given(case=maps())
def test_masks_per_part_and_a_map_of_labels_count_alike_where_parts_do_not_overlap(case):
    truth, predicted, _ = case
    for a, b in zip(truth, predicted, strict=True):
        masks = [np.array([image == part for part in range(1, len(PARTS))]) for image in (a, b)]
        for by_mask, by_label in zip(part_counts(*masks), label_map_counts(a, b, n_parts=len(PARTS)), strict=True):
            assert by_mask.tolist() == by_label.tolist()


def test_parts_may_overlap_and_the_background_is_where_none_is():
    truth = np.array([[[True, True, False]], [[False, True, False]]])
    both, either = part_counts(truth, truth)
    assert both.tolist() == either.tolist() == [1, 2, 1]


def test_empty_against_empty_counts_one_and_something_against_empty_zero():
    assert mean_iou(np.array([0]), np.array([0])) == 1.0
    assert mean_iou(np.array([0]), np.array([7])) == 0.0


def test_a_part_that_only_the_answers_have_counts_zero_and_one_that_nobody_has_is_dropped():
    both, either = np.array([[5, 5, 0, 0]]), np.array([[5, 5, 3, 0]])
    assert pooled_miou(both, either, parts=PARTS, background=False) == 0.5
    assert pooled_miou(both, either, parts=PARTS, background=False, averaged=("cap", "stem")) == 1.0


def test_unknown_parts_and_masks_of_different_size_are_refused():
    counts = np.ones((1, 4), int), np.ones((1, 4), int)
    with pytest.raises(ValueError, match="no part is called 'hat'; the parts are background, cap"):
        pooled_miou(*counts, parts=PARTS, background=True, averaged=("hat",))
    with pytest.raises(ValueError, match="resize the answer"):
        mask_counts(np.ones((2, 3), bool), np.ones((3, 2), bool))
    with pytest.raises(ValueError, match="resize the answer"):
        label_map_counts(np.ones((2, 3), int), np.ones((3, 2), int), n_parts=2)
