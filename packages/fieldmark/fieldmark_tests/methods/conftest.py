"""Views that the tests of several methods share."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View
from fieldmark_tests.methods.few_photos import GENERA, part, view_of
from fieldmark_tests.methods.photos_of_three import LABELS as THREE
from fieldmark_tests.methods.photos_of_three import make_part


@pytest.fixture
def birds() -> tuple[View, Part, np.ndarray]:
    """Six species in three genera, few photos of each, and 300 photos to be answered."""
    rng = np.random.default_rng(1)
    genus = rng.normal(size=(3, 20)) * 1.5
    means = genus[[0, 0, 0, 1, 1, 2]] + rng.normal(size=(6, 20)) * 0.8

    def photos(truth: np.ndarray) -> np.ndarray:
        return means[truth] + rng.normal(size=(len(truth), 20)) + 5

    train_truth = np.array([0, 0, 0, 0, 1, 2, 2, 3, 4, 4])  # "f" has no photo at all, "b" and "d" one each
    val_truth, test_truth = np.tile(np.arange(5), 8), np.tile(np.arange(5), 60)
    shown = view_of(part(photos(train_truth), train_truth), part(photos(val_truth), val_truth, "v"), GENERA)
    return shown, part(photos(test_truth), None, "t"), test_truth


@pytest.fixture(params=[(60, 10), (30, 50)], ids=["more items than features", "more features than items"])
def view(request) -> View:
    n, dimensions = request.param
    rng = np.random.default_rng(3)
    centers = rng.normal(size=(3, dimensions)) + 1
    train, val, test = (make_part(rng, size, dimensions, centers) for size in (n, 41, 42))
    taxonomy = Taxonomy.of(THREE, pl.DataFrame({"label": THREE.names}))
    return View(THREE, taxonomy, train, val, None, test)
