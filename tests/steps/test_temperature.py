from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.labels import Labels
from fieldmark.runs.predictions import Predictions
from fieldmark.steps import step_from_data, step_to_data
from fieldmark.steps.temperature import Temperature

LABELS, ITEMS = Labels(tuple("abcde")), pl.DataFrame()


def drawn(temperature: float, n: int = 4000) -> tuple[Predictions, np.ndarray]:
    """Logits whose true temperature is known: the label is drawn from softmax(logits / temperature)."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (n, 5)).astype(np.float32)
    truth = (logits / temperature + rng.gumbel(size=(n, 5))).argmax(axis=1).astype(np.int32)
    return Predictions(tuple(map(str, range(n))), LABELS, logits, "logit"), truth


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_the_temperature_that_made_the_labels_is_found(temperature):
    predictions, truth = drawn(temperature)
    assert Temperature().fit(predictions, truth, ITEMS).temperature == pytest.approx(temperature, rel=0.08)


def test_no_nearby_temperature_has_a_lower_log_loss():
    predictions, truth = drawn(2.0)

    def log_loss(temperature: float) -> float:
        scores = Temperature(temperature).apply(predictions, ITEMS).scores
        return -float(scores[np.arange(len(truth)), truth].mean(dtype=np.float64))

    best = Temperature().fit(predictions, truth, ITEMS).temperature
    assert log_loss(best) <= min(log_loss(best * 0.97), log_loss(best * 1.03))


def test_the_ranking_stays_and_probabilities_sum_to_one():
    predictions, truth = drawn(3.0, n=50)
    scaled = Temperature().fit(predictions, truth, ITEMS).apply(predictions, ITEMS)
    assert (scaled.top(5) == predictions.top(5)).all()
    assert scaled.probabilities().sum(axis=1) == pytest.approx(np.ones(50), abs=1e-5)


def test_a_val_without_errors_does_not_ask_for_infinite_confidence():
    scores = np.where(np.eye(5, dtype=bool), 3.0, 0.0).astype(np.float32).repeat(20, axis=0)
    predictions = Predictions(tuple(map(str, range(100))), LABELS, scores, "logit")
    truth = np.arange(5, dtype=np.int32).repeat(20)
    confidence = Temperature().fit(predictions, truth, ITEMS).apply(predictions, ITEMS).probabilities().max(axis=1)
    assert confidence == pytest.approx(np.full(100, 1 - 1 / 101 * 4 / 5), abs=1e-4)


def test_scores_that_say_nothing_are_left_alone():
    flat = Predictions(("x",), LABELS, np.zeros((1, 5), dtype=np.float32), "logit")
    assert Temperature().fit(flat, np.array([0], dtype=np.int32), ITEMS).temperature == 1.0


def test_a_fitted_step_is_plain_data():
    data = step_to_data(Temperature(1.7))
    assert data == {"step": "temperature", "temperature": 1.7}
    assert step_from_data(data) == Temperature(1.7)
