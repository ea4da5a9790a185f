"""Ridge regression on features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge as SkRidge

from fieldmark.methods.base import features_of
from fieldmark.methods.ridge import STRENGTHS, Ridge
from fieldmark.work import large_arrays
from fieldmark_tests.methods.photos_of_three import LABELS, unit


def test_ridge_finds_the_weights_that_scikit_learn_finds(view):
    fitted = Ridge(l2=0.1).fit(view)
    train, test = unit(view.train), unit(view.test)
    reference = SkRidge(alpha=0.1 * len(train)).fit(train, np.eye(4)[view.train.truth])
    assert fitted.predict(view.test, LABELS).scores == pytest.approx(reference.predict(test), abs=1e-4)


@pytest.mark.parametrize("l2", [1e-7, *STRENGTHS])
def test_the_weights_are_those_of_a_decomposition_of_all_rows(view, l2, monkeypatch):
    monkeypatch.setattr(large_arrays, "BYTES_MULTIPLIED_AT_ONCE", 400)
    doubled = features_of(view.train)[:, np.r_[0:10, 0:5]]  # columns that say the same leave axes without any spread
    own = replace(view, train=replace(view.train, features={"photo": doubled}))
    rows, targets = unit(own.train), np.eye(4)[view.train.truth]
    left, values, right = np.linalg.svd((rows - rows.mean(axis=0)).astype(np.float64), full_matrices=False)
    shrink = values / (values**2 + l2 * len(rows))
    expected = right.T @ (shrink[:, None] * (left.T @ (targets - targets.mean(axis=0))))
    assert Ridge(l2=l2).fit(own).arrays["weights"] == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_the_penalty_is_the_strongest_of_those_with_the_most_right_answers_on_val(view, monkeypatch):
    monkeypatch.setattr(large_arrays, "BYTES_MULTIPLIED_AT_ONCE", 400)

    def right(l2: float) -> int:
        answers = Ridge(l2=l2).fit(view).predict(view.val, LABELS).top(1)[:, 0]
        return int((answers == view.val.truth).sum())

    counts = {l2: right(l2) for l2 in STRENGTHS}
    assert Ridge().fit(view).method.l2 == max(l2 for l2 in STRENGTHS if counts[l2] == max(counts.values()))
