from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.unknown_score import MaxSoftmax
from fieldmark.tables.labels import Labels


def test_an_item_is_the_stranger_the_less_likely_its_best_class():
    scores = np.log(np.array([[0.9, 0.1], [0.5, 0.5]], dtype=np.float32))
    made = MaxSoftmax().apply(LabelScores(("a", "b"), Labels(("x", "y")), scores, "logit"), pl.DataFrame())
    assert made.unknown == pytest.approx([0.1, 0.5])
    assert (made.scores == scores).all()
