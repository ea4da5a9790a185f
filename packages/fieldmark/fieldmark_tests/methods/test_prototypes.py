"""Prototypes that borrow from their relatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fieldmark.errors import MisuseError
from fieldmark.features.embeddings import unit_rows
from fieldmark.methods.base import features_of
from fieldmark.methods.em import Transductive
from fieldmark.methods.prototypes import Prototypes
from fieldmark_tests.methods.few_photos import LABELS, part, view_of


def test_prototypes_that_borrow_nothing_are_the_class_means(birds):
    shown, asked, _ = birds
    fitted = Prototypes(shrinkage=0.5, borrow=0).fit(shown)
    x, truth = unit_rows(features_of(shown.train)).astype(float), shown.train.truth
    means = np.stack([x[truth == code].mean(axis=0) for code in range(5)])
    from fieldmark.methods.prototypes import BorrowedClasses

    weights, bias = BorrowedClasses.of(shown).covariance.discriminants(means, 0.5)
    expected = unit_rows(features_of(asked)) @ weights.T + bias
    assert fitted.predict(asked, LABELS).scores[:, :5] == pytest.approx(expected, rel=1e-3)


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
