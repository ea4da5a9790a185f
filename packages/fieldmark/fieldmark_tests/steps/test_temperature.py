from __future__ import annotations

import tracemalloc

import numpy as np
import polars as pl
import pytest

from fieldmark.runs.code_sets import offsets_of
from fieldmark.runs.label_scores import LabelScores, log_softmax
from fieldmark.steps import step_from_data, step_to_data
from fieldmark.steps.temperature import LARGEST, SMALLEST, LogLoss, Temperature, best_temperature
from fieldmark.tables.labels import Labels
from fieldmark_tests.lessons import learned

LABELS, ITEMS = Labels(tuple("abcde")), pl.DataFrame()


def drawn(temperature: float, n: int = 4000) -> tuple[LabelScores, np.ndarray]:
    """Logits whose true temperature is known: the label is drawn from softmax(logits / temperature)."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (n, 5)).astype(np.float32)
    truth = (logits / temperature + rng.gumbel(size=(n, 5))).argmax(axis=1).astype(np.int32)
    return LabelScores(tuple(map(str, range(n))), LABELS, logits, "logit"), truth


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_the_temperature_that_made_the_labels_is_found(temperature):
    predictions, truth = drawn(temperature)
    assert learned(Temperature(), predictions, truth, ITEMS).temperature == pytest.approx(temperature, rel=0.08)


def test_no_nearby_temperature_has_a_lower_log_loss():
    predictions, truth = drawn(2.0)

    def log_loss(temperature: float) -> float:
        scores = Temperature(temperature).apply(predictions, ITEMS).scores
        return -float(scores[np.arange(len(truth)), truth].mean(dtype=np.float64))

    best = learned(Temperature(), predictions, truth, ITEMS).temperature
    assert log_loss(best) <= min(log_loss(best * 0.97), log_loss(best * 1.03))


def test_the_ranking_stays_and_probabilities_sum_to_one():
    predictions, truth = drawn(3.0, n=50)
    scaled = learned(Temperature(), predictions, truth, ITEMS).apply(predictions, ITEMS)
    assert (scaled.top(5) == predictions.top(5)).all()
    assert scaled.probabilities().sum(axis=1) == pytest.approx(np.ones(50), abs=1e-5)


def test_a_val_without_errors_does_not_ask_for_infinite_confidence():
    scores = np.where(np.eye(5, dtype=bool), 3.0, 0.0).astype(np.float32).repeat(20, axis=0)
    predictions = LabelScores(tuple(map(str, range(100))), LABELS, scores, "logit")
    truth = np.arange(5, dtype=np.int32).repeat(20)
    confidence = learned(Temperature(), predictions, truth, ITEMS).apply(predictions, ITEMS).probabilities().max(axis=1)
    assert confidence == pytest.approx(np.full(100, 1 - 1 / 101 * 4 / 5), abs=1e-4)


def test_scores_that_say_nothing_are_left_alone():
    flat = LabelScores(("x",), LABELS, np.zeros((1, 5), dtype=np.float32), "logit")
    assert learned(Temperature(), flat, np.array([0], dtype=np.int32), ITEMS).temperature == 1.0


def test_a_fitted_step_is_plain_data():
    data = step_to_data(Temperature(1.7))
    assert data == {"step": "temperature", "temperature": 1.7}
    assert step_from_data(data) == Temperature(1.7)


def by_bisection(scores: np.ndarray, truth: np.ndarray, weight: np.ndarray) -> float:
    """The same minimum the long way: bisection of the slope, all items at once, in double precision."""
    centered = scores.astype(np.float64) - scores[np.arange(len(truth)), truth].astype(np.float64)[:, None]
    spread = 1 / (weight.sum() + 1) / scores.shape[1]
    low, high = np.log(SMALLEST), np.log(LARGEST)
    for _ in range(60):
        middle = (low + high) / 2
        probability = np.exp(log_softmax(np.exp(middle) * centered))
        if (weight[:, None] * (probability - spread) * centered).sum() > 0:
            high = middle
        else:
            low = middle
    return float(np.exp(-(low + high) / 2))


@pytest.mark.parametrize("size", [1e-2, 1.0, 300.0])
@pytest.mark.parametrize("errors", [0.0, 0.3, 1.0])
def test_the_temperature_is_that_of_plain_bisection(size, errors):
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 40, 2500).astype(np.int32)
    logits = rng.normal(0, 1, (2500, 40))
    logits[np.arange(2500), truth] += 6 * (rng.random(2500) >= errors)
    scores = (size * logits + 20).astype(np.float32)
    for weight in (np.ones(2500), (np.arange(2500) < 9) + 0.01, (np.arange(2500) < 9) * 1.0):
        found = LogLoss(scores, truth).best_temperature(weight)
        assert found == pytest.approx(by_bisection(scores, truth, weight), rel=1e-5)


def test_memory_does_not_grow_with_items_times_classes():
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 1, (20_000, 300)).astype(np.float32)
    truth = scores.argmax(axis=1).astype(np.int32)
    predictions = LabelScores(tuple(map(str, range(len(truth)))), Labels(tuple(map(str, range(300)))), scores, "logit")
    tracemalloc.start()
    learned(Temperature(), predictions, truth, ITEMS)
    assert tracemalloc.get_traced_memory()[1] < scores.nbytes / 2
    tracemalloc.stop()


def test_lists_of_some_labels_are_left_as_they_are():
    labels = Labels(("a", "b", "c"))
    listed = LabelScores(
        ("p", "q"), labels, np.log(np.array([0.6, 0.2, 0.7, 0.1])), "log_probability",
        np.array([0, 1, 2, 0], dtype=np.int32), offsets_of(np.array([2, 2])),
    )  # fmt: skip
    assert best_temperature(listed, np.array([0, 2], dtype=np.int32)) == 1.0
    assert Temperature(temperature=3.0).apply(listed, pl.DataFrame()) is listed
