from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import polars as pl
import pytest

from fieldmark.errors import MisuseError
from fieldmark.methods import METHODS
from fieldmark.methods.base import Need
from fieldmark.methods.centroid import Centroid
from fieldmark.methods.em import Transductive
from fieldmark.methods.frequent import Frequent
from fieldmark.methods.knn import NearestNeighbors
from fieldmark.methods.lda import Discriminant
from fieldmark.methods.prototypes import Prototypes
from fieldmark.methods.ridge import Ridge
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import View
from fieldmark_tests.lessons import part_of
from fieldmark_tests.methods.photos_of_three import LABELS

# Methods that look at photos or hear recordings themselves have tests of their own.
OWN_TESTS = (
    *(
        "birdnet",
        "cnn",
        "cutout",
        "ellipse",
        "encoder",
        "finetune",
        "fusion",
        "grabcut",
        "joint",
        "published",
        "saliency",
        "sam",
        "tabular",
    ),
    "clustering",  # it scores no labels
    *("ccssl", "coarse-network", "distillation", "finetune-oracle", "fixmatch-network", "moco", "norm-online", "unet"),
    *("align", "fsada", "triplet", "two-stage"),  # they need two domains
    *("neighbors", "random-forest", "boosting", "maxent", "down-weighted-boosting", "spline-logistic"),  # for places
    *("sinr", "deepmaxent", "place-ensemble"),
    "ensemble",  # it has no members by itself
)
ON_FEATURES = [name for name in METHODS if name not in OWN_TESTS]


@pytest.mark.parametrize("name", ON_FEATURES)
def test_every_method_here_needs_features_of_the_media_or_nothing(name):
    assert METHODS[name]().needs in ((), (Need("features"),))


@pytest.mark.parametrize("name", ON_FEATURES)
def test_every_method_scores_every_label_of_every_item_and_again_from_its_arrays(name, view):
    fitted = METHODS[name]().fit(view)
    predictions = fitted.predict(view.test, LABELS)
    assert predictions.scores.shape == (42, 4) and np.isfinite(predictions.scores).all()
    again = fitted.method.scores({key: np.array(value) for key, value in fitted.arrays.items()}, view.test)
    assert (again == predictions.scores).all()


@pytest.mark.parametrize("name", ON_FEATURES)
def test_every_setting_that_a_fit_changes_is_recorded_with_the_part_that_chose_it(name, view):
    asked = METHODS[name]()
    fitted = asked.fit(view)
    before, after = asdict(asked), asdict(fitted.method)
    changed = {key for key in after if after[key] != before[key]} - {*asked.follows_from_task}
    recorded = {choice.name for choice in fitted.chosen}
    if "classifier_settings" in changed:  # the head of a method records its own
        changed -= {"classifier_settings", "chosen"}
    assert changed <= recorded and all(choice.on_val for choice in fitted.chosen)
    again = fitted.method.fit_again(fitted.arrays, replace(view.with_val_in_train(), val=None))
    assert again.chosen == ()  # what was given is not chosen


@pytest.mark.parametrize("name", ["centroid", "knn", "ridge", "lda", "linear"])
def test_methods_that_look_beat_the_one_that_does_not(name, view):
    def accuracy(method) -> float:
        return float((method.fit(view).predict(view.test, LABELS).top(1)[:, 0] == view.test.truth).mean())

    assert accuracy(METHODS[name]()) > accuracy(Frequent())


@pytest.mark.parametrize("name", ON_FEATURES)
def test_a_class_never_seen_is_never_the_first_answer(name, view):
    assert (METHODS[name]().fit(view).predict(view.test, LABELS).top(1) != 3).all()


def test_one_photo_per_class_is_enough_for_centroids_ridge_and_lda():
    features = np.eye(3, 8, dtype=np.float32) + 0.01
    train = part_of(["a", "b", "c"], np.arange(3), features)
    taxonomy = Taxonomy.of(LABELS, pl.DataFrame({"label": LABELS.names}))
    view = View(LABELS, taxonomy, train, train, None, None)
    for method in (Centroid(), NearestNeighbors(k=1), Ridge(l2=0.1), Discriminant(shrinkage=0.5)):
        answers = method.fit(view).predict(train, LABELS)
        assert answers.top(1)[:, 0].tolist() == [0, 1, 2] and np.isfinite(answers.scores).all()


def test_identical_features_are_answered_without_an_error():
    same = np.ones((6, 5), dtype=np.float32)
    train = part_of("abcdef", np.array([0, 0, 1, 1, 2, 2]), same)
    taxonomy = Taxonomy.of(LABELS, pl.DataFrame({"label": LABELS.names}))
    for name in ON_FEATURES:
        answers = METHODS[name]().fit(View(LABELS, taxonomy, train, train, None, None)).predict(train, LABELS)
        assert np.isfinite(answers.scores).all() and (answers.top(1) != 3).all()


@pytest.mark.parametrize("wrong", [{"k": 0}, {"temperature": 0.0}, {"floor": 1.0}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(MisuseError, match=f"{next(iter(wrong))}=.*: expected a"):
        NearestNeighbors(**wrong)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: NearestNeighbors(vote="loud"), "vote=loud: expected weighted or majority"),
        (lambda: NearestNeighbors(lengths="long"), "lengths=long: expected unit or given"),
        (lambda: Centroid(absent="maybe"), "absent=maybe: expected never or zero"),
        (lambda: Prototypes(borrow=-2), "borrow=-2: expected a number of at least 0, or -1"),
        (lambda: Transductive(weight=-1), "weight=-1: expected a number of at least 0"),
        (lambda: Transductive(frequencies="equal"), "frequencies=equal: expected flat or estimated"),
    ],
)
def test_impossible_settings_of_methods_for_few_photos_are_refused(make, sentence):
    with pytest.raises(MisuseError, match=sentence):
        make()
