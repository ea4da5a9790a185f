"""What holds for every run format."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.runs.label_scores import LabelScores
from fieldmark_tests.runs.formats_by_name import BIRDS, LABELS, PLANTS, SEGMENTS, SNAKES


@pytest.mark.parametrize(
    ("format_", "items"),
    [(PLANTS, ["1", "2"]), (BIRDS, SEGMENTS[:2]), (SNAKES, ["x", "y"])],
    ids=["plants", "birds", "snakes"],
)
def test_what_is_written_reads_back_to_the_same_scores(path, format_, items):
    scores = np.array([[0.5, 0.25, 0.125], [0.0625, 0.75, 0.5]], dtype=np.float32)
    made = LabelScores(tuple(items), LABELS, scores, "score")
    format_.write(path, made)
    back = format_.read(path, items, LABELS)
    assert (back.top(2) == made.top(2)).all()
    best = [back.scores_by_code(row)[int(code)] for row, code in enumerate(made.top(1)[:, 0])]
    assert best == [0.5, 0.75]


@pytest.mark.parametrize(
    ("format_", "items", "content"),
    [
        (PLANTS, ["1"], "ObservationId;ClassId;Probability;Rank\n1;a;0.12345678901;1\n1;b;0.12345678902;2\n"),
        (BIRDS, SEGMENTS[:1], "PER1;00:00:00-00:00:05;a;0.12345678901\nPER1;00:00:00-00:00:05;b;0.12345678902\n"),
        (SNAKES, ["x"], "hashed_id,a,b,c\nx,0.12345678901,0.12345678902,0\n"),
    ],
    ids=["plants", "birds", "snakes"],
)
def test_scores_that_single_precision_cannot_tell_apart_are_told_apart(path, format_, items, content):
    path.write_text(content)
    run = format_.read(path, items, LABELS)
    assert run.top(2).tolist() == [[1, 0]]
    assert run.scores_by_code(0)[0] == 0.12345678901 and run.scores_by_code(0)[1] == 0.12345678902
