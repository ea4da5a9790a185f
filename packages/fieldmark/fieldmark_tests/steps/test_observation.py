from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.observation import ObservationMax, ObservationMean
from fieldmark.tables.labels import Labels

ITEMS = pl.DataFrame({"item_id": ["a1", "b1", "a2"], "observation_id": ["a", "b", "a"]})
PROBABILITIES = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]])
PREDICTIONS = LabelScores(
    ("a1", "b1", "a2"), Labels(("x", "y", "z")), np.log(PROBABILITIES).astype(np.float32), "logit"
)


def test_the_mean_is_the_normalized_geometric_mean_of_probabilities():
    pooled = ObservationMean().apply(PREDICTIONS, ITEMS).probabilities()
    expected = np.sqrt(PROBABILITIES[0] * PROBABILITIES[2])
    assert pooled[0] == pytest.approx(expected / expected.sum(), rel=1e-5)


def test_the_max_takes_the_best_photo_of_each_label():
    pooled = ObservationMax().apply(PREDICTIONS, ITEMS).probabilities()
    assert pooled[0] == pytest.approx(np.array([0.6, 0.8, 0.1]) / 1.5, rel=1e-5)


@pytest.mark.parametrize("step", [ObservationMean(), ObservationMax()])
def test_photos_of_an_observation_share_one_answer_and_a_single_photo_keeps_its_own(step):
    pooled = step.apply(PREDICTIONS, ITEMS)
    assert (pooled.scores[0] == pooled.scores[2]).all()
    assert pooled.probabilities()[1] == pytest.approx(PROBABILITIES[1], rel=1e-5)
