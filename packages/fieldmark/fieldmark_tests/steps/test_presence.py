"""Scores become probabilities of presence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.multilabel import PresenceCurve
from fieldmark.tables.labels import Labels
from fieldmark_tests.lessons import learned
from fieldmark_tests.steps.soundscapes import LABELS, soundscapes


def test_presence_finds_the_curve_that_made_the_truth():
    rng = np.random.default_rng(0)
    chances = rng.uniform(0.001, 0.999, (3000, 4))
    logits = np.log(chances / (1 - chances))
    truth = rng.random(chances.shape) < expit(0.7 * logits - 1.5)
    step = learned(
        PresenceCurve(), LabelScores(tuple(map(str, range(3000))), LABELS, chances.astype("f4"), "score"), truth, None
    )
    assert (step.slope, step.offset) == pytest.approx((0.7, -1.5), abs=0.08)


def test_presence_keeps_the_order_and_says_nothing_where_nothing_can_be_told_apart():
    predictions, truth, items = soundscapes()
    changed = learned(PresenceCurve(), predictions, truth, items).apply(predictions, items)
    assert (changed.scores.argsort(axis=0) == predictions.scores.argsort(axis=0)).all()
    assert learned(PresenceCurve(), predictions, np.zeros_like(truth), items) == PresenceCurve()


def test_presence_leaves_out_what_was_ruled_out():
    predictions, truth, items = soundscapes()
    without_rooks = np.where(np.arange(4) == 3, 0, predictions.scores).astype(np.float32)
    step = learned(PresenceCurve(), predictions.with_scores(without_rooks, "score"), truth, items)
    three = LabelScores(predictions.items, Labels(LABELS.names[:3]), predictions.scores[:, :3], "score")
    assert step == learned(PresenceCurve(), three, truth[:, :3], items)
    assert not step.apply(predictions.with_scores(without_rooks, "score"), items).scores[:, 3].any()
