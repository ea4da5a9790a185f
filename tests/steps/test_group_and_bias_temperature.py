from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

from fieldmark.errors import MisuseError
from fieldmark.labels import Labels
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps import step_from_data, step_to_data
from fieldmark.steps.bias_temperature import BiasTemperature
from fieldmark.steps.group_temperature import GroupTemperature
from fieldmark.steps.temperature import Temperature
from tests.lessons import learned

LABELS = Labels(tuple("abcde"))


def drawn(temperature: np.ndarray, biases: np.ndarray, seed: int = 0) -> tuple[LabelScores, np.ndarray]:
    """Logits z with the label drawn from softmax(z / temperature + biases)."""
    rng, n = np.random.default_rng(seed), len(temperature)
    logits = rng.normal(0, 3, (n, 5)).astype(np.float32)
    truth = (logits / temperature[:, None] + biases + rng.gumbel(size=(n, 5))).argmax(axis=1).astype(np.int32)
    return LabelScores(tuple(map(str, range(n))), LABELS, logits, "logit"), truth


def log_loss(predictions: LabelScores, truth: np.ndarray) -> float:
    p = predictions.probabilities()[np.arange(len(truth)), truth]
    return -float(np.log(np.maximum(p, 1e-12)).mean())


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
