"""Predictions adapted to how frequent labels are among all items asked about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from fieldmark.errors import MisuseError
from fieldmark.runs.label_scores import LabelScores, log_softmax
from fieldmark.steps import make_step, step_from_data, step_to_data
from fieldmark.steps.base import apply_step
from fieldmark.steps.prior_shift import LEAST_ITEMS, default_step
from fieldmark.tables.labels import Labels
from fieldmark_tests.lessons import learned

ON_TEST_SET = ("prior-em", "prior-map", "prior-map:toward=flat", "prior-confusion", "prior-confusion:solve=bbse")
LABELS = Labels(("a", "b", "c"))
# The last of the four bells is unknown, and looks like c.
MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [1.2, 2.2]])
SOURCE, SHIFTED = (0.4, 0.3, 0.2, 0.1), (0.1, 0.2, 0.1, 0.6)
NOTHING = pl.DataFrame()


def drawn(number: int, prior: tuple[float, ...], seed: int = 0) -> tuple[LabelScores, np.ndarray]:
    """Calibrated predictions of an open set under `SOURCE`, and the truth: -1 for unknown."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, size=number, p=prior)
    points = MEANS[truth] + rng.normal(size=(number, 2))
    logs = log_softmax(np.log(SOURCE) + points @ MEANS.T - 0.5 * (MEANS**2).sum(axis=1))
    items = tuple(f"i{row}" for row in range(number))
    scores = LabelScores(items, LABELS, logs[:, :3], "log_probability", unknown=logs[:, 3], unknown_label=logs[:, 3])
    return scores, np.where(truth == 3, -1, truth)


def fitted(name: str, number: int = 4000):
    val, truth = drawn(number, SOURCE, seed=1)
    return learned(make_step(name), val, truth, benchmark="fungitastic/open")


def accuracy(predictions: LabelScores, truth: np.ndarray) -> float:
    return float((predictions.top(1)[:, 0] == truth).mean())


@pytest.mark.parametrize("name", ON_TEST_SET)
def test_more_answers_are_right_after_a_shift_and_unknown_has_a_frequency_of_its_own(name):
    test, truth = drawn(3000, SHIFTED)
    step = fitted(name)
    adapted = apply_step(step, test, NOTHING)
    assert accuracy(adapted, truth) > accuracy(test, truth) + 0.1
    assert step.prior(test)[3] == pytest.approx(0.6, abs=0.06)
    assert adapted.probabilities().sum(axis=1) == pytest.approx(1)
    assert np.mean(adapted.unknown) > np.mean(test.unknown)


@pytest.mark.parametrize("name", ON_TEST_SET[:4])
def test_without_a_shift_little_changes(name):
    test, truth = drawn(3000, SOURCE)
    adapted = apply_step(fitted(name), test, NOTHING)
    assert accuracy(adapted, truth) == pytest.approx(accuracy(test, truth), abs=0.01)


def test_the_source_is_the_mean_posterior_of_val_and_not_the_counts_of_its_labels():
    val, truth = drawn(4000, SOURCE, seed=1)
    step = learned(make_step("prior-em"), val, truth, benchmark="fungitastic/open")
    other = learned(make_step("prior-em"), val, np.zeros_like(truth), benchmark="fungitastic/open")
    np.testing.assert_array_equal(step.source, other.source)
    np.testing.assert_allclose(step.source, val.probabilities().mean(axis=0), atol=1e-3)


def test_left_out_unknown_items_would_be_taken_for_a_look_alike():
    test, _ = drawn(3000, SHIFTED)
    val, truth = drawn(4000, SOURCE, seed=1)
    known = [replace(one, unknown_label=None) for one in (val, test)]
    blind = learned(make_step("prior-em"), known[0], np.maximum(truth, 0)).prior(known[1])
    assert blind[2] > 0.3 and fitted("prior-em").prior(test)[2] < 0.2  # c has a tenth


@pytest.mark.parametrize("name", ON_TEST_SET)
@pytest.mark.parametrize("number", [0, 1, LEAST_ITEMS - 1])
def test_a_few_items_are_answered_as_they_were(name, number):
    test, _ = drawn(number, SHIFTED)
    assert apply_step(fitted(name, 400), test, NOTHING) is test


@pytest.mark.parametrize("name", ON_TEST_SET)
def test_hostile_predictions_end_in_probabilities(name):
    """All unknown; a label that is never possible; certain answers throughout."""
    step = fitted(name, 400)
    test, _ = drawn(100, (0.0, 0.0, 0.0, 1.0))
    never = replace(test, scores=np.where(np.arange(3) == 1, -np.inf, test.scores))
    sure = np.full((100, 3), -np.inf)
    sure[:, 0] = 0.0
    certain = replace(test, scores=sure, unknown_label=np.full(100, -np.inf))
    for one in (test, never, certain):
        with np.errstate(all="ignore"):
            adapted = apply_step(step, one, NOTHING)
        assert np.isfinite(adapted.probabilities()).all() and not np.isnan(adapted.unknown).any()


@pytest.mark.parametrize("name", ON_TEST_SET)
def test_what_was_learned_is_kept_with_the_model(name):
    step, (test, _) = fitted(name, 400), drawn(200, SHIFTED)
    again = step_from_data(step_to_data(step), step.arrays)
    np.testing.assert_array_equal(apply_step(again, test, NOTHING).scores, apply_step(step, test, NOTHING).scores)


def test_em_is_the_default_up_to_a_hundred_labels_and_pseudo_counts_above():
    assert default_step(Labels(tuple(map(str, range(100))))) == "prior-em"
    assert default_step(Labels(tuple(map(str, range(101))))) == "prior-map"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"scale": "score"}, "these scores only rank"),
        ({"scale": "logit"}, "put --step temperature"),
        ({"unknown_label": None}, "unknown is a label of its own"),
    ],
)
@pytest.mark.parametrize("name", [*ON_TEST_SET[:2], "prior-confusion", "prior-online"])
def test_what_no_frequency_can_be_told_from_is_refused_with_the_step_that_helps(name, changed, sentence):
    val, truth = drawn(50, SOURCE)
    with pytest.raises(MisuseError, match=sentence):
        learned(make_step(name), replace(val, **changed), truth, benchmark="fungitastic/open")


@pytest.mark.parametrize("wrong", ["prior-map:alpha=0.5", "prior-map:toward=up", "prior-confusion:solve=guess"])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(MisuseError, match="prior-"):
        make_step(wrong)
