from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.predictions import read_predictions
from fieldmark.steps import make_step, novelty
from fieldmark.steps.temperature import Temperature
from fieldmark.steps.unknown_score import SCORES, MaxSoftmax, UnknownScore
from fieldmark.tables.labels import Labels
from fieldmark_tests.open_release import write_open_release

ITEMS = pl.DataFrame()
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(0, 3, (5000, 6)).astype(np.float32)
PREDICTIONS = LabelScores(tuple(map(str, range(len(LOGITS)))), Labels(tuple("abcdef")), LOGITS, "logit")


@pytest.mark.parametrize("score", list(SCORES))
def test_the_step_gives_the_score_of_the_same_name_and_changes_nothing_else(score):
    made = make_step(f"unknown-score:score={score}").apply(PREDICTIONS, ITEMS)
    assert made.unknown == pytest.approx(novelty.SCORES[score](novelty.Seen(LOGITS, LOGITS, {})), rel=1e-5)
    assert replace(made, unknown=None) == PREDICTIONS


@pytest.mark.parametrize("score", list(SCORES))
def test_after_a_temperature_the_score_is_that_of_scaled_logits_of_mean_zero(score):
    centered = LOGITS - LOGITS.mean(axis=1, keepdims=True)
    made = UnknownScore(score).apply(Temperature(2.0).apply(PREDICTIONS, ITEMS), ITEMS)
    seen = novelty.Seen(centered / 2, centered, {})
    assert made.unknown == pytest.approx(novelty.SCORES[score](seen), rel=1e-4, abs=1e-5)
    assert np.ptp(made.unknown) > 0.1


@pytest.mark.parametrize("step", [MaxSoftmax(), UnknownScore("max-softmax")])
def test_confident_items_do_not_tie(step):
    scores = np.array([[0, 30, 1], [0, 40, 1], [0, 50, 1]], dtype=np.float32)
    found = step.apply(LabelScores(("a", "b", "c"), Labels(tuple("xyz")), scores, "logit"), ITEMS).unknown
    assert (np.diff(found) < 0).all() and (found > 0).all()


@pytest.mark.parametrize("score", list(SCORES))
def test_a_column_of_unknown_is_no_label_to_be_sure_of(score):
    scaled = Temperature().apply(PREDICTIONS, ITEMS)
    with_column = replace(scaled, unknown_label=scaled.scores.max(axis=1) + 1)
    assert UnknownScore(score).apply(with_column, ITEMS).unknown == pytest.approx(
        UnknownScore(score).apply(scaled, ITEMS).unknown
    )


def test_scores_that_only_rank_and_names_that_do_not_exist_are_refused():
    with pytest.raises(MisuseError, match="only rank"):
        UnknownScore().apply(replace(PREDICTIONS, scale="score"), ITEMS)
    with pytest.raises(MisuseError, match="--method openset"):
        UnknownScore("vim")


def test_any_method_answers_an_open_set_by_its_logits(tmp_path):
    root = write_open_release(tmp_path / "release")
    settings = {"backbone": "resnet10t", "weights": "random", "size": 32}
    steps = ["temperature", "unknown-score:score=energy", "unknown-threshold"]
    fieldmark.fit("fungitastic/open", root, "linear", tmp_path / "run", settings=settings, steps=steps)
    made = read_predictions(tmp_path / "run" / "predictions" / "test.parquet")
    assert made.unknown is not None and np.isfinite(made.unknown).all() and np.ptp(made.unknown) > 0
    assert "roc_auc" in fieldmark.score("fungitastic/open", tmp_path / "run", data=root).metrics
