"""Prototypes that borrow from their relatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fieldmark.errors import MisuseError
from fieldmark.features.embeddings import powered_rows, unit_rows
from fieldmark.methods.base import features_of
from fieldmark.methods.em import Transductive
from fieldmark.methods.prototypes import MEASURES, BorrowedClasses, Prototypes
from fieldmark_tests.methods.few_photos import LABELS, answers, part, view_of


def test_prototypes_that_borrow_nothing_are_the_class_means(birds):
    shown, asked, _ = birds
    fitted = Prototypes(shrinkage=0.5, borrow=0, measure="distance", power=1).fit(shown)
    x, truth = unit_rows(features_of(shown.train)).astype(float), shown.train.truth
    means = np.stack([x[truth == code].mean(axis=0) for code in range(5)])
    weights, bias = BorrowedClasses.of(shown, power=1).covariance.discriminants(means, 0.5)
    expected = unit_rows(features_of(asked)) @ weights.T + bias
    assert fitted.predict(asked, LABELS).scores[:, :5] == pytest.approx(expected, rel=1e-3)


def test_cosines_are_those_of_whitened_photos_and_prototypes(birds):
    shown, asked, _ = birds
    fitted = Prototypes(shrinkage=0.5, borrow=1, measure="cosine", power=0.5).fit(shown)
    classes = BorrowedClasses.of(shown, power=0.5)
    means = classes.posterior(1).means
    photos = powered_rows(features_of(asked), 0.5).astype(float)
    white = [classes.covariance.whitened(rows - means.mean(axis=0), 0.5) for rows in (photos, means)]
    projected = white[0] @ (white[1] / np.linalg.norm(white[1], axis=1, keepdims=True)).T
    assert fitted.predict(asked, LABELS).scores[:, :5] == pytest.approx(projected, rel=1e-3, abs=1e-3)


def test_a_species_with_one_photo_is_not_lost_among_those_with_many():
    rng = np.random.default_rng(3)
    centers = rng.normal(size=(6, 40))
    truth = np.repeat(np.arange(6), [1, 12, 12, 12, 12, 12])
    train, asked = (
        part(centers[codes] + 2 * rng.normal(size=(len(codes), 40)), codes, name)
        for codes, name in ((truth, "t"), (np.zeros(300, dtype=int), "a"))
    )
    found = {
        measure: (answers(Prototypes(0.5, 0, measure=measure), view_of(train), asked) == 0).mean()
        for measure in MEASURES
    }
    assert found["cosine"] > found["distance"] + 0.05


def test_models_that_know_no_power_answer_from_plain_features(birds):
    shown, asked, _ = birds
    fitted = Prototypes(shrinkage=0.5, borrow=1, power=1).fit(shown)
    earlier = {name: values for name, values in fitted.arrays.items() if name != "power"}
    now = Prototypes(shrinkage=0.5, borrow=1)
    assert (now.scores(earlier, asked) == fitted.method.scores(fitted.arrays, asked)).all()


def test_prototypes_need_no_taxonomy_and_no_second_photo_of_any_species():
    rng = np.random.default_rng(5)
    train = part(rng.normal(size=(6, 4)) + 3, np.arange(6))
    predicted = Prototypes().fit(view_of(train, train)).predict(train, LABELS)
    assert np.isfinite(predicted.scores).all() and predicted.top(1)[:, 0].tolist() == list(range(6))


@pytest.mark.parametrize("method", [Prototypes(), Transductive()], ids=["prototypes", "em"])
def test_what_is_left_open_comes_from_val_and_is_kept_for_the_final_fit(method, birds):
    shown, _, _ = birds
    fitted = method.fit(shown)
    assert fitted.method.shrinkage > 0 and fitted.method.borrow > 0
    assert fitted.method.fit(shown.with_val_in_train()).method == fitted.method
    with pytest.raises(MisuseError, match="on val, and there is none"):
        method.fit(replace(shown, val=None))
