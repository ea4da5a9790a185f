"""The frequencies of train."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.methods.frequent import Frequent
from fieldmark_tests.methods.photos_of_three import LABELS


def test_frequent_answers_with_the_smoothed_training_frequencies(view):
    scores = Frequent().fit(view).predict(view.test, LABELS).scores
    counts = np.bincount(view.train.truth, minlength=4) + 1
    assert np.exp(scores[0]) == pytest.approx(counts / counts.sum(), rel=1e-5)
