"""Steps for answers in which any number of labels may hold at once."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.steps import STEPS, step_from_data, step_to_data
from fieldmark.steps.multilabel import mean_average_precision
from fieldmark.steps.neighbors import Neighbors
from fieldmark.steps.temperature import Temperature
from fieldmark_tests.lessons import learned
from fieldmark_tests.steps.soundscapes import shuffled, soundscapes

ALL = ("presence", "neighbors", "site-prior", "season-prior", "class-thresholds")


@pytest.mark.parametrize("name", ALL)
def test_every_step_is_plain_data_and_keeps_scores_between_0_and_1(name):
    predictions, truth, items = soundscapes()
    step = learned(STEPS[name](), predictions, truth, items)
    again = step_from_data(step_to_data(step))
    assert again == step
    changed = again.apply(predictions, items)
    assert changed.scale == "score" and changed.scores.min() >= 0 and changed.scores.max() <= 1


@pytest.mark.parametrize("name", ALL)
def test_no_step_depends_on_the_order_of_the_items(name):
    predictions, truth, items = soundscapes()
    step = learned(STEPS[name](), predictions, truth, items)
    mixed, mixed_items = shuffled(predictions, items)
    changed = step.apply(mixed, mixed_items).select(predictions.items)
    assert changed.scores == pytest.approx(step.apply(predictions, items).scores, abs=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_one_label_per_item_is_a_truth_like_any_other(name):
    predictions, truth, items = soundscapes()
    codes = np.where(truth.any(axis=1), truth.argmax(axis=1), -1).astype(np.int32)
    one_each = truth & (np.arange(4) == codes[:, None])
    assert learned(STEPS[name](), predictions, codes, items) == learned(STEPS[name](), predictions, one_each, items)


def test_val_never_loses_by_smoothing_or_by_a_prior():
    predictions, truth, items = soundscapes()
    before = mean_average_precision(predictions.scores.astype(float), truth)
    smooth = learned(Neighbors(), predictions, truth, items).apply(predictions, items)
    assert mean_average_precision(smooth.scores.astype(float), truth) >= before
    assert learned(Neighbors(), predictions, truth, items).share > 0  # birds go on singing here by construction


def test_a_temperature_is_refused_where_several_labels_may_hold():
    with pytest.raises(MisuseError, match="take --step presence"):
        Temperature().check(BENCHMARKS["birdclef-2020"].task)
