"""Logistic regression on features."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fieldmark.errors import MisuseError
from fieldmark.methods.base import features_of
from fieldmark.methods.linear import Linear
from tests.methods.photos_of_three import LABELS


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
