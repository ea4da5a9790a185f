"""Presence of what was looked for."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.errors import InputError
from fieldmark.questions.places import Places
from fieldmark.questions.presence import Presence
from fieldmark.questions.targets import PairTargets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark_tests.questions.surveys import LABELS, benchmark


def test_a_missing_pair_is_an_absence_only_where_somebody_looked(survey):
    opened = open_benchmark(benchmark(Places(), Presence()), survey)
    targets, asked = opened.view.train.targets, opened.truth["test"].asked
    assert isinstance(targets, PairTargets)
    assert targets.looked_for().tolist() == [[True, True, False], [True, True, True]]
    assert targets.holds(3).tolist() == [[True, False, False], [False, True, False]]
    assert asked is not None and asked.rows() == [("p4", "c"), ("p5", "a"), ("p5", "b"), ("p5", "c")]
    later = opened.truth["test"].take(np.array([False, True]))
    assert later.asked is not None and set(later.asked["item_id"]) == {"p5"}


def test_a_table_of_presence_names_every_pair_that_was_asked_about():
    table = {
        "id": ["p", "p", "q"],
        "label": ["a", "b", "a"],
        "present": ["true", "false", "false"],
        "unit": ["1", "1", "2"],
    }
    truth, labels, *_ = Presence().given(Places(), table, None, None, ())
    assert (truth.items, truth.units, labels.names) == (("p", "q"), ("1", "2"), ("a", "b"))
    assert truth.rows.rows() == [("p", "a")]
    assert truth.asked is not None and truth.asked.rows() == [("p", "a"), ("p", "b"), ("q", "a")]
    scores = np.arange(6, dtype=np.float64).reshape(2, 3) / 6
    found = Presence().evaluate(LabelScores(("q", "p"), LABELS, scores, "score"), truth, LABELS, pl.DataFrame(), 1)
    assert found.asked is not None
    assert [pair.tolist() for pair in found.asked] == [[0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"id": ["p"], "label": ["a"]}, "expected a column 'present'"),
        ({"id": ["p"], "label": ["a"], "present": [None]}, "line 2: found no present"),
        ({"id": ["p", "q"], "label": ["a", None], "present": ["true", "true"]}, "line 3: found no label"),
        ({"id": ["p", "p"], "label": ["a", "a"], "present": ["true", "false"]}, "line 3: found a pair of id and label"),
    ],
)
def test_a_table_of_presence_is_refused_with_its_line(table, sentence):
    with pytest.raises(InputError, match=sentence):
        Presence().given(Places(), table, None, None, ())
