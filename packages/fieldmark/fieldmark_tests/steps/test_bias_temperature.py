"""Temperature with biases."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.steps.bias_temperature import BiasTemperature
from fieldmark.steps.temperature import Temperature
from fieldmark_tests.lessons import learned
from fieldmark_tests.steps.sharp_and_biased import drawn, log_loss


def test_temperature_and_biases_that_made_the_labels_are_found():
    biases = np.array([1.0, 0.5, 0, -0.5, -1.0])
    predictions, truth = drawn(np.full(4000, 2.0), biases)
    step = learned(BiasTemperature(), predictions, truth)
    assert step.temperature == pytest.approx(2.0, rel=0.1)
    assert np.array(step.biases) - np.mean(step.biases) == pytest.approx(biases, abs=0.15)


def test_biases_lower_the_log_loss_where_there_are_some():
    fitted, later = (drawn(np.full(2000, 2.0), np.array([1.5, 0, 0, 0, -1.5]), seed) for seed in (0, 1))
    plain, biased = (
        learned(step, *fitted, pl.DataFrame()).apply(later[0], pl.DataFrame())
        for step in (Temperature(), BiasTemperature())
    )
    assert log_loss(biased, later[1]) < log_loss(plain, later[1])


def test_a_label_that_val_lacks_is_not_ruled_out():
    predictions, truth = drawn(np.full(60, 1.0), np.zeros(5))
    seen = truth != 4
    kept = predictions.select([item for item, keep in zip(predictions.items, seen, strict=True) if keep])
    step = learned(BiasTemperature(), kept, truth[seen], pl.DataFrame())
    assert min(step.biases) > -4
