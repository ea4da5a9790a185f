from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.methods.base import features_of, with_targets
from fieldmark.methods.openset import (
    AVERAGE,
    AVERAGED,
    COMBINED,
    Combination,
    Judged,
    OpenSet,
    best_score,
    combine,
    cross_fitted,
    label_rounds,
    without_labels,
)
from fieldmark.metrics.openset import known_roc_auc
from fieldmark.runs.predictions import read_predictions
from fieldmark.steps.novelty import SCORES, residual
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View
from fieldmark_tests.lessons import learned, part_of

LABELS = Labels(tuple("abcdef"))
FAST = {"classifier": "centroid"}


def make_part(rng: np.random.Generator, counts: dict[int, int], centers: np.ndarray, name: str) -> Part:
    """Items around the center of their label; -1 are items around centers that nobody knows."""
    truth = np.repeat(list(counts), list(counts.values())).astype(np.int32)
    where = np.where(truth < 0, rng.integers(len(LABELS), len(centers), len(truth)), truth)
    features = (centers[where] + rng.normal(0, 0.7, (len(truth), centers.shape[1]))).astype(np.float32)
    ids = [f"{name}-{row}" for row in range(len(truth))]
    return part_of(ids, truth, features)


@pytest.fixture(scope="module")
def view() -> View:
    rng = np.random.default_rng(2)
    centers = rng.normal(0, 1.5, (10, 16))
    known = dict.fromkeys(range(6), 12)
    parts = [make_part(rng, counts, centers, name) for name, counts in
             (("train", known), ("val", known | {-1: 20}), ("test", known | {-1: 30}))]  # fmt: skip
    return View(LABELS, Taxonomy.of(LABELS, pl.DataFrame({"label": LABELS.names})), parts[0], parts[1], None, parts[2])


@pytest.mark.parametrize("score", [*SCORES, AVERAGE, COMBINED])
def test_each_score_can_be_named_and_is_what_the_predictions_carry(view, score):
    fitted = OpenSet(score=score, **FAST).fit(view)
    predictions = fitted.predict(view.test, LABELS)
    assert fitted.method.chosen == score
    assert predictions.unknown == pytest.approx(fitted.method.unknown_scores(fitted.arrays, view.test)[score])
    assert known_roc_auc(predictions.unknown, view.test.truth >= 0) > 0.5


@pytest.mark.parametrize("classifier", ["linear", "centroid", "knn", "lda", "ridge"])
def test_separated_unknown_items_are_stranger_by_every_score_whatever_the_logits_look_like(view, classifier):
    fitted = OpenSet(score="all", classifier=classifier).fit(view)
    values = fitted.method.unknown_scores(fitted.arrays, view.test)
    areas = {name: known_roc_auc(score.astype(np.float64), view.test.truth >= 0) for name, score in values.items()}
    assert min(areas.values()) > 0.5, areas
    assert fitted.arrays["score.alpha"] > 0


@pytest.mark.parametrize("classifier", ["linear", "lda"])
def test_vim_is_matched_on_the_scaled_logits_that_it_is_added_to(view, classifier):
    fitted = OpenSet(score="vim", classifier=classifier).fit(view)
    scaled = fitted.method.scores(fitted.arrays, view.train) / fitted.arrays["temperature"]
    outside = residual(features_of(view.train), fitted.arrays["score.origin"], fitted.arrays["score.principal"])
    largest = (scaled - scaled.mean(axis=1, keepdims=True)).max(axis=1)
    assert fitted.arrays["temperature"] != 1
    assert fitted.arrays["score.alpha"] * outside.mean() == pytest.approx(largest.mean(), rel=1e-4)


def test_max_softmax_is_what_the_steps_temperature_and_max_softmax_say(view):
    from fieldmark.steps.temperature import Temperature
    from fieldmark.steps.unknown_score import MaxSoftmax

    method = OpenSet(score="max-softmax")
    predictions = method.fit(view).predict(view.test, LABELS)
    known = view.val.of_known_labels()
    val = method.fit(view).predict(known, LABELS)
    scaled = learned(Temperature(), val, known.truth, known.items).apply(predictions, view.test.items)
    assert predictions.unknown == pytest.approx(MaxSoftmax().apply(scaled, view.test.items).unknown, abs=1e-5)


def test_by_default_scores_are_averaged_on_the_scale_of_known_items_of_val(view):
    fitted = OpenSet(**FAST).fit(view)
    everything = OpenSet(score="all", **FAST).fit(view)
    known = view.val.of_known_labels()
    usual, asked = (everything.method.unknown_scores(everything.arrays, part) for part in (known, view.test))
    expected = np.mean([(asked[name] - usual[name].mean()) / usual[name].std() for name in AVERAGED], axis=0)
    assert fitted.predict(view.test, LABELS).unknown == pytest.approx(expected, abs=1e-3)
    assert fitted.method.chosen == AVERAGE


def test_without_val_nothing_can_be_averaged(view):
    fitted = OpenSet(classifier="centroid").fit(replace(view, val=None))
    assert fitted.method.chosen == "max-softmax" and "no known items in val" in fitted.remarks[0]


def test_models_of_fewer_scores_still_answer(view):
    fitted = OpenSet(score="all", **FAST).fit(view)
    earlier = {name: one for name, one in fitted.arrays.items() if not name.startswith(("average", "score.round"))}
    names = [name for name in SCORES if "round" not in name and "relative" not in name]
    values = fitted.method.unknown_scores(fitted.arrays, view.val)
    earlier |= combine({name: values[name] for name in names}, view.val.truth < 0).to_arrays(COMBINED)
    assert set(fitted.method.unknown_scores(earlier, view.test)) == {*names, COMBINED}


def test_all_takes_the_score_of_highest_area_on_val(view):
    fitted = OpenSet(score="all", **FAST).fit(view)
    values = fitted.method.unknown_scores(fitted.arrays, view.val)
    assert set(values) == {*SCORES, AVERAGE, COMBINED}
    areas = {name: known_roc_auc(values[name].astype(np.float64), view.val.truth >= 0) for name in (*SCORES, AVERAGE)}
    assert fitted.method.chosen == COMBINED or areas[fitted.method.chosen] == max(areas.values())


def test_the_answers_are_those_of_the_classifier_alone(view):
    from fieldmark.methods.linear import Linear

    known = replace(view, val=view.val.of_known_labels())
    alone = Linear(l2=0.1).fit(known).predict(view.test, LABELS)
    wrapped = OpenSet(classifier_settings="l2=0.1").fit(view).predict(view.test, LABELS)
    assert wrapped.scores == pytest.approx(alone.scores)


@pytest.mark.parametrize("choose", ["val-unknowns", "held-out"])
def test_nothing_is_learned_from_test(view, choose):
    method = OpenSet(score="all", choose=choose, **FAST)
    first = method.fit(view)
    rng = np.random.default_rng(0)
    shuffled = with_targets(view.test, values=rng.permutation(view.test.truth))
    for other in (replace(view, test=shuffled), replace(view, test=None)):
        again = method.fit(other)
        assert again.method == first.method
        assert all((again.arrays[name] == values).all() for name, values in first.arrays.items())


def test_held_out_labels_never_look_at_the_unknown_of_val(view):
    method = OpenSet(score="all", choose="held-out", **FAST)
    without = method.fit(replace(view, val=view.val.of_known_labels()))
    first = method.fit(view)
    assert first.method == without.method
    assert all((without.arrays[name] == values).all() for name, values in first.arrays.items())


def test_labels_kept_back_are_in_no_item_that_is_learned_from(view):
    rounds = label_rounds(view, 0.34)
    assert sorted(np.concatenate(rounds)) == list(range(6)) and [len(back) for back in rounds] == [2, 2, 2]
    asked, kept = without_labels(view, rounds[0])
    back = set(view.train.truth) - set(kept.train.truth)
    assert back == set(rounds[0]) and not back & set(kept.val.truth) and not back & set(asked.val.truth)
    assert (asked.val.truth < 0).sum() == sum(
        (part.truth == label).sum() for part in (view.train, view.val) for label in back
    )


@pytest.mark.parametrize(("unknown_after", "chosen"), [((3, 0, 0), "average"), ((3, 3, 2), "energy")])
def test_only_what_is_ahead_in_round_after_round_takes_the_place_of_the_average(unknown_after, chosen):
    """`energy` puts the unknown item after so many of three known ones; the average tells nothing."""
    unknown = np.array([False, False, False, True])
    rounds = [
        Judged({"average": np.zeros(4), "energy": np.array([0.0, 1.0, 2.0, after - 0.5])}, unknown, np.arange(4))
        for after in unknown_after
    ]
    assert best_score(rounds) == chosen


def test_a_val_without_unknown_species_is_refused_with_a_way_out(view):
    with pytest.raises(MisuseError, match="choose=held-out"):
        OpenSet(score="all", **FAST).fit(replace(view, val=view.val.of_known_labels()))


def test_refitting_keeps_what_was_chosen(view):
    fitted = OpenSet(score="all").fit(view)
    again = fitted.method.fit_again(fitted.arrays, replace(view, val=None))
    assert again.method == fitted.method
    assert again.predict(view.test, LABELS).unknown == pytest.approx(
        fitted.predict(view.test, LABELS).unknown, rel=1e-4
    )


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"score": "vmi"}, "Did you mean vim"),
        ({"choose": "test"}, "val-unknowns"),
        ({"classifier": "openset"}, "no classifier"),
        ({"classifier": "frequent"}, "no classifier"),
        ({"rule": "best"}, "tpr-95"),
        ({"classifier_settings": "l3=1"}, "l2"),
    ],
)
def test_what_does_not_exist_is_refused_before_anything_is_read(settings, found):
    with pytest.raises(MisuseError, match=found):
        OpenSet(**settings)


def test_a_combination_survives_as_arrays_and_is_judged_on_units_it_has_not_seen():
    rng = np.random.default_rng(1)
    unknown = np.arange(60) % 3 == 0
    values = {"told": unknown + rng.normal(0, 0.5, 60), "noise": rng.normal(size=60)}
    fitted = combine(values, unknown)
    assert fitted.weights[0] > abs(fitted.weights[1])
    assert Combination.from_arrays(fitted.to_arrays(COMBINED), COMBINED)(values) == pytest.approx(fitted(values))
    unit = np.arange(60)
    judged = cross_fitted(values, unknown, unit)
    flipped = cross_fitted(values, np.where(np.isin(unit, [0]), ~unknown, unknown), unit)
    assert judged is not None and flipped is not None
    assert cross_fitted(values, np.zeros(60, dtype=bool), unit) is None
    # Scores that know nothing of the labels stay near one half, however many of them are combined.
    nothing = {str(number): rng.normal(size=60) for number in range(9)}
    assert known_roc_auc(combine(nothing, unknown)(nothing), ~unknown) > 0.6
    assert known_roc_auc(cross_fitted(nothing, unknown, unit), ~unknown) < 0.75


def test_identical_features_are_answered_by_every_score_without_an_error(view):
    parts = (view.train, view.val, view.test)
    same = [replace(part, features={"photo": np.ones_like(features_of(part))}) for part in parts]
    alike = replace(view, train=same[0], val=same[1], test=same[2])
    fitted = OpenSet(score="all", **FAST).fit(alike)
    values = fitted.method.unknown_scores(fitted.arrays, alike.test)
    assert all(np.isfinite(score).all() for score in values.values())


@pytest.mark.parametrize("settings", [{"choose": "held-out", "score": "all"}, {"score": "energy"}])
def test_photos_of_ones_own_need_no_unknown_species(color_model, tmp_path, settings):
    photos = color_model.parent / "photos"
    given = {**settings, **FAST, "size": 32}
    result = fieldmark.fit("folder", photos, "openset", tmp_path / "run", settings=given)
    assert [step["step"] for step in result.run.steps][:1] == ["temperature"]
    assert not any(step["step"] == "unknown-threshold" for step in result.run.steps)
    assert any(remark.startswith("The task has no unknown species, so no threshold") for remark in result.run.remarks)
    predictions = read_predictions(tmp_path / "run/predictions/test.parquet")
    assert predictions.unknown is not None and (predictions.top(1) >= 0).all()
    with pytest.raises(MisuseError, match="unknown-threshold needs a benchmark with unknown species"):
        fieldmark.fit("folder", photos, "openset", tmp_path / "other", settings=given, steps=["unknown-threshold"])
