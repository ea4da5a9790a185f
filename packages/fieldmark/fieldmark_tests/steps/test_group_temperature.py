"""A temperature for each group."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

from fieldmark.errors import MisuseError
from fieldmark.steps import step_from_data, step_to_data
from fieldmark.steps.bias_temperature import BiasTemperature
from fieldmark.steps.group_temperature import GroupTemperature
from fieldmark.steps.temperature import Temperature
from fieldmark_tests.lessons import learned
from fieldmark_tests.steps.sharp_and_biased import drawn


def items_in(months: np.ndarray) -> pl.DataFrame:
    dates = [datetime.date(2021, int(month), 3) if month else None for month in months]
    ids = [str(row) for row in range(len(months))]
    return pl.DataFrame({"item_id": ids, "date": dates, "habitat": ["bog" if m == 5 else None for m in months]})


def test_each_large_group_gets_its_own_temperature():
    months = np.array([5, 9] * 2000)
    predictions, truth = drawn(np.where(months == 5, 1.0, 4.0), np.zeros(5))
    step = learned(GroupTemperature(), predictions, truth, items_in(months))
    assert step.temperatures["05"] == pytest.approx(1.0, rel=0.15)
    assert step.temperatures["09"] == pytest.approx(4.0, rel=0.15)


def test_a_small_group_stays_near_the_common_temperature_and_an_unseen_one_has_it():
    months = np.array([9] * 997 + [5] * 3)
    predictions, truth = drawn(np.where(months == 5, 0.2, 4.0), np.zeros(5))
    step = learned(GroupTemperature(), predictions, truth, items_in(months))
    alone = learned(GroupTemperature(borrowed=0), predictions, truth, items_in(months))
    assert abs(np.log(step.temperatures["05"] / step.temperature)) < abs(
        np.log(alone.temperatures["05"] / step.temperature)
    )
    elsewhere = step.apply(predictions, items_in(np.where(months == 9, 12, 0)))
    assert elsewhere.scores == pytest.approx(Temperature(step.temperature).apply(predictions, pl.DataFrame()).scores)


def test_one_group_of_everything_is_plain_temperature_scaling():
    predictions, truth = drawn(np.full(500, 2.0), np.zeros(5))
    months = np.full(500, 7)
    step = learned(GroupTemperature(), predictions, truth, items_in(months))
    plain = learned(Temperature(), predictions, truth).temperature
    assert step.temperature == plain and step.temperatures["07"] == pytest.approx(plain, rel=1e-3)


def test_ranking_stays_and_the_step_is_plain_data():
    months = np.array([5, 9] * 100)
    predictions, truth = drawn(np.where(months == 5, 1.0, 4.0), np.zeros(5))
    step = learned(GroupTemperature("habitat"), predictions, truth, items_in(months))
    assert (step.apply(predictions, items_in(months)).top(5) == predictions.top(5)).all()
    assert step_from_data(step_to_data(step)) == step
    biased = learned(BiasTemperature(), predictions, truth)
    again = step_from_data(step_to_data(biased))
    assert again.apply(predictions, pl.DataFrame()).scores == pytest.approx(
        biased.apply(predictions, pl.DataFrame()).scores
    )


def test_a_column_that_the_task_does_not_show_is_refused():
    predictions, truth = drawn(np.full(10, 1.0), np.zeros(5))
    with pytest.raises(MisuseError, match="finds no column 'genus'"):
        learned(GroupTemperature("genus"), predictions, truth, items_in(np.full(10, 7)))
