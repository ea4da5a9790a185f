"""Linear discriminants."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.methods.lda import Discriminant
from fieldmark_tests.methods.photos_of_three import LABELS, unit


def test_lda_scores_are_those_of_the_formula_with_the_covariance_inverted(view):
    shrinkage = 0.3
    train, test = (unit(part).astype(np.float64) for part in (view.train, view.test))
    means = np.stack([train[view.train.truth == code].mean(axis=0) for code in range(3)])
    deviations = train - means[view.train.truth]
    within = deviations.T @ deviations / (len(train) - 3)
    size = len(within)
    covariance = (1 - shrinkage) * within + shrinkage * np.trace(within) / size * np.eye(size)
    weights = np.linalg.solve(covariance, means.T)
    expected = test @ weights - 0.5 * (means.T * weights).sum(axis=0)
    ours = Discriminant(shrinkage=shrinkage).fit(view).predict(view.test, LABELS).scores[:, :3]
    assert ours == pytest.approx(expected, rel=1e-3, abs=1e-3 * np.abs(expected).max())
