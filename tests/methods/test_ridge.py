"""Ridge regression on features."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge as SkRidge

from fieldmark.methods.ridge import Ridge
from tests.methods.photos_of_three import LABELS, unit


def test_ridge_finds_the_weights_that_scikit_learn_finds(view):
    fitted = Ridge(l2=0.1).fit(view)
    train, test = unit(view.train), unit(view.test)
    reference = SkRidge(alpha=0.1 * len(train)).fit(train, np.eye(4)[view.train.truth])
    assert fitted.predict(view.test, LABELS).scores == pytest.approx(reference.predict(test), abs=1e-4)
