"""What holds for every step."""

from __future__ import annotations

from fieldmark.steps import STEPS, step_from_data, step_to_data
from fieldmark.steps.base import fit_step
from fieldmark.steps.temperature import Temperature
from fieldmark.steps.unknown_probability import UnknownProbability
from fieldmark.steps.unknown_threshold import UnknownThreshold
from fieldmark_tests.lessons import learned, lesson
from fieldmark_tests.steps.unknown_items import ITEMS, drawn


def test_steps_are_named_as_they_are_registered():
    assert [STEPS[name].name for name in STEPS] == list(STEPS)


def test_steps_that_know_nothing_of_the_unknown_are_fitted_on_known_items_alone():
    predictions, truth = drawn()
    known = [item for item, code in zip(predictions.items, truth, strict=True) if code >= 0]
    alone = learned(Temperature(), predictions.select(known), truth[truth >= 0])
    assert fit_step(Temperature(), predictions, lesson(predictions, truth)) == alone


def test_fitted_steps_are_plain_data():
    predictions, truth = drawn()
    for step in (UnknownProbability(), UnknownThreshold("tpr-95")):
        fitted = learned(step, predictions, truth, ITEMS)
        assert step_from_data(step_to_data(fitted)) == fitted
