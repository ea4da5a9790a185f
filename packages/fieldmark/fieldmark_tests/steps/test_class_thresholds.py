"""A threshold for each label."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.steps.class_thresholds import ClassThresholds, best_threshold
from fieldmark_tests.lessons import learned
from fieldmark_tests.steps.soundscapes import LABELS, soundscapes


def test_thresholds_are_those_of_highest_f1():
    predictions, truth, items = soundscapes()
    step = learned(ClassThresholds(), predictions, truth, items)

    def f1(threshold: float, code: int) -> float:
        said = predictions.scores[:, code] >= threshold
        return 2 * (said & truth[:, code]).sum() / (said.sum() + truth[:, code].sum())

    for code, name in enumerate(LABELS.names):
        assert f1(step.own[name], code) == max(f1(score, code) for score in predictions.scores[:, code])
    kept = step.apply(predictions, items).scores
    assert ((kept == 0) | (kept == predictions.scores)).all() and 0 < (kept > 0).mean() < 1


def test_a_label_that_val_hardly_has_takes_the_shared_threshold():
    predictions, truth, items = soundscapes()
    truth[:, 2] = False
    truth[:3, 2] = True
    step = learned(ClassThresholds(), predictions, truth, items)
    assert "crane" not in step.own and step.thresholds(LABELS.names)[2] == pytest.approx(step.shared)
    assert best_threshold(np.array([0.5, 0.4]), np.array([False, False])) == 0
