"""Logistic regression on features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from fieldmark.errors import MisuseError
from fieldmark.methods.base import features_of
from fieldmark.methods.centroid import Centroid
from fieldmark.methods.linear import Linear
from fieldmark.methods.ridge import Ridge
from fieldmark.questions.targets import LabelTargets, PairTargets
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import MEMORY_SETTING
from fieldmark_tests.lessons import with_columns
from fieldmark_tests.methods.photos_of_three import LABELS
from fieldmark_tests.peak_memory import peak_bytes


def test_linear_finds_the_minimum_that_scikit_learn_finds(view):
    l2 = 0.1
    fitted = Linear(l2=l2, iterations=2000).fit(view)
    train, test = features_of(view.train), features_of(view.test)
    mean, spread = train.mean(axis=0), train.std(axis=0)
    reference = LogisticRegression(C=1 / (l2 * len(train)), max_iter=5000, tol=1e-8)
    reference.fit((train - mean) / spread, view.train.truth)
    logits = fitted.predict(view.test, LABELS).scores[:, :3]
    ours = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert ours == pytest.approx(reference.predict_proba((test - mean) / spread), abs=0.02)


def test_linear_takes_its_regularizer_from_val_and_keeps_it(view):
    fitted = Linear().fit(view)
    assert fitted.method.l2 > 0
    assert fitted.method.fit(view.with_val_in_train()).method.l2 == fitted.method.l2
    with pytest.raises(MisuseError, match="chooses l2 on val"):
        Linear().fit(view.with_val_in_train())


def test_linear_is_the_same_with_features_in_files(view, monkeypatch, tmp_path):
    in_memory = Linear().fit(view)
    monkeypatch.setenv(MEMORY_SETTING, "0")
    monkeypatch.setenv("FIELDMARK_CACHE", str(tmp_path))
    in_files = Linear().fit(view)
    assert in_files.arrays.keys() == in_memory.arrays.keys()
    assert all(np.array_equal(in_files.arrays[name], in_memory.arrays[name]) for name in in_memory.arrays)
    scores = [fitted.predict(view.test, LABELS).scores for fitted in (in_files, in_memory)]
    assert np.array_equal(*scores)


def test_linear_takes_one_copy_of_the_features(view):
    features = np.random.default_rng(0).normal(size=(30_000, 100)).astype(np.float32)
    items = with_columns(pl.DataFrame({"item_id": [f"{number}" for number in range(len(features))]}))
    targets = LabelTargets((np.arange(len(features)) % 3).astype(np.int32))
    many = replace(view, train=Part(items, targets, features={"photo": features}))
    method = Linear(l2=1.0, iterations=2)
    method.fit(view)  # imports what it needs
    assert peak_bytes(lambda: method.fit(many)) < 1.5 * features.nbytes


def surveyed(seed: int, n: int = 80) -> Part:
    """Places with two numbers each; every label lives on one side of a line through the origin, or anywhere."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 2)).astype(np.float32)
    logits = features @ np.array([[3.0, 0.0, 0.0], [0.0, -3.0, 0.0]]) + np.array([0.0, 0.0, -1.0])
    holds = rng.random((n, 3)) < 1 / (1 + np.exp(-logits))
    row, code = np.nonzero(holds)
    nowhere = np.full(n, -1, dtype=np.int32)
    targets = PairTargets(row.astype(np.int32), code.astype(np.int32), np.ones(len(row), dtype=np.bool_), nowhere, 3)
    items = with_columns(pl.DataFrame({"item_id": [f"{seed}-{number}" for number in range(n)]}))
    return Part(items, targets, features={"photo": features})


def survey_view(train: Part, val: Part) -> View:
    return View(LABELS, Taxonomy.of(LABELS, pl.DataFrame({"label": LABELS.names})), train, val, None, None)


def test_lists_of_species_are_one_regression_for_each_as_scikit_learn_fits_it():
    train, l2 = surveyed(1, n=200), 0.02
    fitted = Linear(l2=l2, iterations=2000).fit(survey_view(train, surveyed(2)))
    answered = fitted.predict(surveyed(3), LABELS)
    assert answered.scale == "score" and fitted.method.several
    features, test = features_of(train), features_of(surveyed(3))
    mean, spread = features.mean(axis=0), features.std(axis=0)
    for code in range(3):
        reference = LogisticRegression(C=1 / (l2 * len(train)), max_iter=5000, tol=1e-8)
        reference.fit((features - mean) / spread, train.targets.holds(3)[:, code])
        expected = reference.predict_proba((test - mean) / spread)[:, 1]
        assert answered.scores[:, code] == pytest.approx(expected, abs=0.01)


def test_what_nobody_looked_for_teaches_nothing():
    train, val = surveyed(1), surveyed(2)
    asked = np.ones((len(train), len(LABELS)), dtype=np.bool_)
    asked[40:, 2] = False
    found = train.targets.holds(len(LABELS))
    found[40:, 2] = True  # what is written where nobody looked must not matter
    row, code = (one.astype(np.int32) for one in np.nonzero(found))
    other = replace(train.targets, row=row, code=code, foreground=np.ones(len(row), dtype=np.bool_), asked=asked)
    answers = [
        Linear(l2=0.5).fit(survey_view(replace(train, targets=targets), val)).predict(val, LABELS).scores
        for targets in (replace(train.targets, asked=asked), other)
    ]
    assert answers[0] == pytest.approx(answers[1], abs=1e-6)


@pytest.mark.parametrize("method", [Centroid(), Ridge()])
def test_a_method_of_one_label_refuses_lists_with_a_sentence(method):
    with pytest.raises(MisuseError, match="learns one label from each item, and here items list several"):
        method.fit(survey_view(surveyed(1), surveyed(2)))
