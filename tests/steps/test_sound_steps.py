"""Steps for answers in which any number of labels may hold at once."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.labels import Labels
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps import STEPS, step_from_data, step_to_data
from fieldmark.steps.class_thresholds import ClassThresholds, best_threshold
from fieldmark.steps.multilabel import mean_average_precision
from fieldmark.steps.neighbors import Neighbors
from fieldmark.steps.presence import PresenceCurve
from fieldmark.steps.priors.groups import SeasonPrior, SitePrior
from fieldmark.steps.temperature import Temperature
from tests.lessons import learned

LABELS = Labels(("wren", "owl", "crane", "rook"))
SEGMENTS = 24


def soundscapes(recordings: int = 10, *, seed: int = 0) -> tuple[LabelScores, np.ndarray, pl.DataFrame]:
    """Recordings at two sites with birds of their own, who sing for a while once they begin; noisy scores."""
    rng = np.random.default_rng(seed)
    holds, rows = [], []
    for number in range(recordings):
        site = "NORTH" if number % 2 else "SOUTH"
        likes = np.array([0.6, 0.1, 0.3, 0.02] if site == "NORTH" else [0.02, 0.3, 0.1, 0.6])
        sings = rng.random(4) < likes
        for segment in range(SEGMENTS):
            sings = np.where(rng.random(4) < 0.25, rng.random(4) < likes, sings)
            holds.append(sings)
            rows.append((f"r{number}/{5 * segment}", f"r{number}", 5.0 * segment, site, datetime.date(2020, 5, 1)))
    columns = ("item_id", "observation_id", "start_s", "site", "date")
    items = pl.DataFrame(rows, schema=columns, orient="row")
    truth = np.array(holds)
    scores = expit(2.0 * truth - 2.5 + rng.normal(0, 1.2, truth.shape)).astype(np.float32)
    return LabelScores(tuple(items["item_id"]), LABELS, scores, "score"), truth, items


def shuffled(predictions: LabelScores, items: pl.DataFrame) -> tuple[LabelScores, pl.DataFrame]:
    order = np.random.default_rng(4).permutation(len(items))
    return predictions.select([predictions.items[row] for row in order]), items.sample(fraction=1, shuffle=True, seed=1)


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


def test_smoothing_takes_from_the_segments_before_and_after_and_never_from_another_recording():
    items = pl.DataFrame(
        {
            "item_id": ["a/0", "a/5", "a/10", "b/0"],
            "observation_id": ["a", "a", "a", "b"],
            "start_s": [0.0, 5.0, 10.0, 0.0],
        }
    )
    scores = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=np.float32)
    smooth = Neighbors(share=0.5).apply(LabelScores(tuple(items["item_id"]), LABELS, scores, "score"), items).scores
    # At the ends of a recording a segment stands in for the neighbor it lacks.
    assert smooth[:3, :3] == pytest.approx(np.array([[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.25, 0.75]]))
    assert smooth[3].tolist() == [0, 0, 0, 1]


def test_val_never_loses_by_smoothing_or_by_a_prior():
    predictions, truth, items = soundscapes()
    before = mean_average_precision(predictions.scores.astype(float), truth)
    smooth = learned(Neighbors(), predictions, truth, items).apply(predictions, items)
    assert mean_average_precision(smooth.scores.astype(float), truth) >= before
    assert learned(Neighbors(), predictions, truth, items).share > 0  # birds go on singing here by construction


def test_a_site_prior_lifts_what_lives_there_and_leaves_unknown_sites_alone():
    predictions, truth, items = soundscapes()
    step = learned(SitePrior(), predictions, truth, items)
    assert step.weight > 0 and step.shifts["NORTH"][0] > 0 > step.shifts["NORTH"][3]
    elsewhere = items.with_columns(site=pl.lit("EAST"))
    assert step.apply(predictions, elsewhere).scores == pytest.approx(predictions.scores, abs=1e-6)
    nowhere = items.with_columns(site=pl.lit(None, pl.String))
    assert step.apply(predictions, nowhere).scores == pytest.approx(predictions.scores, abs=1e-6)


def test_a_group_that_tells_nothing_gets_no_shift():
    predictions, truth, items = soundscapes()  # one month only
    step = learned(SeasonPrior(), predictions, truth, items)
    assert np.abs(step.shifts["05"]).max() < 0.05


def test_a_prior_without_its_column_is_misuse():
    predictions, truth, items = soundscapes()
    with pytest.raises(MisuseError, match="needs to know the site of each item"):
        learned(SitePrior(), predictions, truth, items.drop("site"))


def test_what_scored_exactly_0_was_ruled_out_and_stays_so():
    predictions, truth, items = soundscapes()
    step = SitePrior(weight=1.0, shifts={"NORTH": [5.0] * 4, "SOUTH": [5.0] * 4})
    ruled_out = predictions.with_scores(np.where(truth, predictions.scores, 0), "score")
    assert not step.apply(ruled_out, items).scores[~truth].any()


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


def test_a_temperature_is_refused_where_several_labels_may_hold():
    with pytest.raises(MisuseError, match="take --step presence"):
        Temperature().check(BENCHMARKS["birdclef-2020"].task)
