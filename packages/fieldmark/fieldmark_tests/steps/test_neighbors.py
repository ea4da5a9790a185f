"""Segments learn from those before and after."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.neighbors import Neighbors
from fieldmark_tests.steps.soundscapes import LABELS


def test_smoothing_takes_from_the_segments_before_and_after_and_never_from_another_recording():
    items = pl.DataFrame(
        {
            "item_id": ["a/0", "a/5", "a/10", "b/0"],
            "observation_id": ["a", "a", "a", "b"],
            "start_s": [0.0, 5.0, 10.0, 0.0],
        }
    )
    scores = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=np.float32)
    smooth = Neighbors(share=0.5).apply(LabelScores(tuple(items["item_id"]), LABELS, scores, "score"), items).scores
    # At the ends of a recording a segment stands in for the neighbor it lacks.
    assert smooth[:3, :3] == pytest.approx(np.array([[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.25, 0.75]]))
    assert smooth[3].tolist() == [0, 0, 0, 1]
