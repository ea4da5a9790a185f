"""What all methods for places promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fieldmark.errors import MisuseError
from fieldmark.methods import METHODS
from fieldmark.methods.places.base import OnPlaces
from fieldmark.metrics.openset import roc_auc
from fieldmark.questions.targets import LabelTargets
from fieldmark.tables.labels import Labels
from fieldmark_tests.methods.places.conftest import LABELS, part_at

SMALL = {
    "neighbors": {},
    "random-forest": {"trees": 25},
    "boosting": {"trees": 10, "rounds": 30},
    "maxent": {"hinges": 4},
    "down-weighted-boosting": {"rounds": 60, "rate": 0.1},
    "spline-logistic": {},
    "sinr": {"epochs": 12, "width": 32, "depth": 1, "rate": 3e-3, "batch": 32, "dropout": 0.1},
    "deepmaxent": {"epochs": 12, "width": 32, "depth": 1, "rate": 3e-3, "batch": 32, "dropout": 0.1},
    "place-ensemble": {"members": "random-forest:trees=25,spline-logistic,neighbors"},
}
SPECIES = (0, 1, 2, 4)  # those that train has


def method_of(name: str, **settings) -> OnPlaces:
    given = {"inputs": "place" if name == "neighbors" else "environment", **SMALL[name], **settings}
    return METHODS[name](**given)


def fitted_once(name, kind, view, **settings):
    """Fits that several tests look at are made once."""
    key = (name, kind, *sorted(settings.items()))
    if key not in _FITTED:
        _FITTED[key] = method_of(name, **settings).fit(view)
    return _FITTED[key]


_FITTED: dict[tuple, object] = {}


def mean_auc(scores: np.ndarray, truth: np.ndarray) -> float:
    high = truth > np.median(truth, axis=0)
    return float(np.mean([roc_auc(scores[:, one], high[:, one]) for one in SPECIES]))


@pytest.mark.parametrize("name", SMALL)
def test_records_of_presences_teach_where_each_species_lives(name, presences, sites):
    part, truth = sites
    fitted = fitted_once(name, "presences", presences)
    answers = fitted.predict(part, LABELS)
    assert answers.scale == "score" and ((answers.scores >= 0) & (answers.scores <= 1)).all()
    assert mean_auc(answers.scores, truth) > 0.75


@pytest.mark.parametrize("name", SMALL)
def test_one_label_per_record_gives_probabilities_over_all_species(name, sightings, sites):
    part, truth = sites
    fitted = fitted_once(name, "sightings", sightings)
    answers = fitted.predict(part, LABELS)
    np.testing.assert_allclose(np.exp(answers.scores.astype(float)).sum(axis=1), 1, atol=1e-4)
    assert answers.scale == "log_probability"
    assert (answers.top(1)[:, 0] == truth.argmax(axis=1)).mean() > 0.6
    assert (answers.top(1)[:, 0] != 3).all()  # nobody ever saw it


@pytest.mark.parametrize("name", SMALL)
def test_a_survey_gives_the_chance_of_finding_a_species(name, survey, sites):
    part, truth = sites
    fitted = fitted_once(name, "survey", survey)
    chances = fitted.predict(part, LABELS).scores
    assert mean_auc(chances, truth) > 0.75
    shares = survey.train.targets.holds(len(LABELS)).mean(axis=0)[list(SPECIES)]
    assert np.abs(chances[:, list(SPECIES)].mean(axis=0) - shares).max() < 0.15


@pytest.mark.parametrize("name", SMALL)
def test_answers_come_again_from_the_arrays_alone_and_one_by_one(name, presences, sites):
    part, _ = sites
    fitted = fitted_once(name, "presences", presences)
    again = type(fitted.method)(**fitted.method.options)
    arrays = {key: np.array(value) for key, value in fitted.arrays.items()}
    whole = again.scores(arrays, part)
    assert (whole == fitted.predict(part, LABELS).scores).all()
    one = again.scores(arrays, part.take([3]))
    np.testing.assert_allclose(one[0], whole[3], atol=2e-6)


@pytest.mark.parametrize("name", ["neighbors", "random-forest", "maxent", "sinr"])
def test_the_background_changes_what_presences_teach(name, presences, sites):
    part, _ = sites
    answers = [
        fitted_once(name, "presences", presences, background=background).predict(part, LABELS).scores
        for background in ("random", "target-group")
    ]
    assert np.abs(answers[0] - answers[1]).max() > 0.02
    if name not in ("neighbors", "sinr"):
        return  # covariates do not tell east from west
    # People go east. Against the places of all records that cancels; against the whole region it does not.
    lon = part.items["lon"].to_numpy()
    east = [np.corrcoef(lon, scores[:, list(SPECIES)].mean(axis=1))[0, 1] for scores in answers]
    assert east[0] > east[1]


def test_what_learns_from_the_background_says_so():
    assert method_of("maxent", background="random").learns_from == ("train", "unlabeled")
    assert method_of("maxent", background="target-group").learns_from == ("train",)


def test_without_background_points_the_records_are_thinned_out(presences, sites):
    part, truth = sites
    alone = replace(presences, unlabeled=None)
    scores = method_of("spline-logistic", background="random").fit(alone).predict(part, LABELS).scores
    assert mean_auc(scores, truth) > 0.7


def test_with_more_labels_than_are_listed_the_best_are_kept_in_order(sightings, sites):
    part, _ = sites
    dense = fitted_once("random-forest", "sightings", sightings)
    listed = replace(dense.method, listed=2).answer(dense.arrays, part, LABELS)
    everything = dense.predict(part, LABELS)
    assert (np.diff(listed.offsets) == 2).all() and not listed.dense
    assert (listed.top(2) == everything.top(2)).all()
    rows = np.arange(len(part))
    np.testing.assert_array_equal(listed.scores[::2], everything.scores[rows, everything.top(1)[:, 0]])


def test_a_place_that_is_not_known_is_answered_with_what_is_common(sightings):
    nowhere = part_at(np.array([np.nan]), np.array([np.nan]))
    fitted = fitted_once("neighbors", "sightings", sightings)
    scores = fitted.predict(nowhere, LABELS).scores[0]
    np.testing.assert_allclose(scores, fitted.arrays["log_prior"], atol=1e-3)


@pytest.mark.parametrize(
    ("name", "wrong", "sentence"),
    [
        ("neighbors", {"k": 0}, "k=0: expected a whole number of at least 1"),
        ("neighbors", {"background": "dark"}, "background=dark: expected auto, random or target-group"),
        ("random-forest", {"sampling": "up"}, "sampling=up: expected auto, bootstrap or down-sampled"),
        ("random-forest", {"trees": 0}, "trees=0: expected a whole number of at least 1"),
        ("maxent", {"penalty": 0}, "penalty=0: expected a number above 0"),
        ("spline-logistic", {"knots": 2}, "knots=2: expected a whole number of at least 3"),
        ("down-weighted-boosting", {"bag": 2.0}, "bag=2.0: expected a number above 0 and at most 1"),
        ("boosting", {"candidates": 0}, "candidates=0: expected a whole number of at least 1"),
        ("sinr", {"loss": "maxent"}, "loss=maxent: expected full, slds or ssdl"),
        ("sinr", {"coordinates": "what3words"}, "coordinates=what3words: expected waves, geoclip or none"),
        ("place-ensemble", {"members": "linear"}, "no member called 'linear'"),
        ("place-ensemble", {"weights": "test"}, "weights=test: expected equal"),
        ("spline-logistic", {"least": 0}, "least=0: expected a whole number of at least 1"),
    ],
)
def test_impossible_settings_are_refused(name, wrong, sentence):
    with pytest.raises(MisuseError, match=sentence):
        METHODS[name](**wrong)


def test_frequencies_of_very_many_species_are_listed(sightings, sites):
    many = Labels(tuple(f"s{i:04}" for i in range(1200)))
    code = np.repeat([5, 1100, 7], [3, 2, 1]).astype(np.int32)
    view = replace(sightings, labels=many, train=part_at(np.zeros(6), np.zeros(6), LabelTargets(code)))
    answers = METHODS["frequent"]().fit(view).predict(sites[0], many)
    assert not answers.dense and (answers.top(3) == [5, 1100, 7]).all()
