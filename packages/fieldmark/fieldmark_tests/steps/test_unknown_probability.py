"""The probability of unknown."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.bias_temperature import BiasTemperature
from fieldmark.steps.group_temperature import GroupTemperature
from fieldmark.steps.observation import ObservationMax, ObservationMean
from fieldmark.steps.temperature import Temperature
from fieldmark.steps.unknown_probability import UnknownProbability
from fieldmark.tables.labels import Labels
from fieldmark_tests.lessons import learned
from fieldmark_tests.steps.unknown_items import ITEMS, drawn


def test_stated_probabilities_of_unknown_come_true_and_all_sum_to_one():
    val, truth = drawn(n=4000)
    test, later = drawn(n=4000, seed=1)
    stated = learned(UnknownProbability(), val, truth, ITEMS).apply(test, ITEMS).probabilities()
    assert stated.sum(axis=1) == pytest.approx(np.ones(4000), abs=1e-5)
    for low in np.arange(0, 0.8, 0.2):
        inside = (stated[:, 3] >= low) & (stated[:, 3] < low + 0.2)
        assert (later[inside] < 0).mean() == pytest.approx(stated[inside, 3].mean(), abs=0.07)


def test_known_labels_keep_their_odds_whatever_is_unknown():
    predictions, truth = drawn()
    scaled = learned(UnknownProbability(), predictions, truth, ITEMS).apply(predictions, ITEMS).scores[:, :3]
    before = predictions.scores - predictions.scores[:, :1]
    assert scaled - scaled[:, :1] == pytest.approx(before, abs=1e-3)


@pytest.mark.parametrize(
    "step", [Temperature(), BiasTemperature(), GroupTemperature("habitat"), ObservationMean(), ObservationMax()]
)
def test_a_probability_of_unknown_is_scaled_and_pooled_like_that_of_any_label(step):
    predictions, truth = drawn(n=60)
    items = pl.DataFrame(
        {
            "item_id": predictions.items,
            "observation_id": [str(row // 3) for row in range(60)],
            "habitat": ["bog", "meadow"] * 30,
        }
    )
    stated = UnknownProbability(1.5, -1.0).apply(predictions, ITEMS)
    as_label = LabelScores(stated.items, Labels(("a", "b", "c", "other")), stated.columns, stated.scale)
    known = truth >= 0
    changed, expected = (
        learned(step, one.select(np.array(one.items)[known]), truth[known], items.filter(known)).apply(one, items)
        for one in (stated, as_label)
    )
    assert changed.unknown_label is not None
    assert changed.probabilities() == pytest.approx(expected.probabilities(), abs=1e-6)
