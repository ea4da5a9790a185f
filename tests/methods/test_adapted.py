"""Networks on sheets and field photos: each way trains, answers every observation, and is loaded again."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.datasets import open_dataset
from fieldmark.errors import MisuseError
from fieldmark.methods import METHODS
from fieldmark.opening import open_benchmark
from fieldmark.training.adaptation import nearest_sheets

SMALL = {"network": "test_efficientnet", "weights": "random", "size": 32, "sheet_epochs": 1, "field_epochs": 1}


@pytest.fixture(scope="module")
def view(plant_world):
    return open_benchmark(BENCHMARKS["plantclef-2020"], open_dataset("plantclef-2020", plant_world)).view


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("two-stage", {"answers": "classifier", "auxiliary": 0.3}),
        ("fsada", {"jigsaw": 0.2}),
        ("triplet", {"answers": "nearest"}),
    ],
)
def test_each_way_scores_every_species_of_every_observation(view, name, settings):
    fitted = METHODS[name](**SMALL, batch=16, **settings).fit(view)
    scores = fitted.method.scores(fitted.arrays, view.test.unlabeled())
    assert scores.shape == (len(view.test), len(view.labels)) and np.isfinite(scores).all()
    assert fitted.method.asked == "photo" and not fitted.method.external_data


def test_neuons_rule_weighs_by_the_fifth_power_of_the_distance():
    sheets = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    asked = np.array([[0.6, 0.8]], dtype=np.float32)
    weights = np.exp(nearest_sheets(sheets, np.array([0, 1]), 3, asked))[0]
    assert weights[1] / weights[0] == pytest.approx((0.4 / 0.2) ** 5, rel=1e-3)
    assert weights.sum() == pytest.approx(1.0) and weights[2] < 1e-3


def test_settings_that_do_not_go_together_are_refused():
    with pytest.raises(MisuseError, match="fsada has no answers=nearest: expected align, classifier"):
        METHODS["fsada"](answers="nearest")
