"""Lines of item, label and score."""

from __future__ import annotations

import pytest

from fieldmark.runs.problems import RunError
from fieldmark.runs.scored import Scored
from fieldmark_tests.runs.formats_by_name import LABELS, PLANTS


def test_plants_are_ordered_by_probability_and_ties_by_rank(path):
    path.write_text("ObservationId;ClassId;Probability;Rank\n1;a;0.2;2\n1;b;0.2;1\n2;c;0.1;1\n")
    run = PLANTS.read(path, ("1", "2", "3"), LABELS)
    assert run.top(2).tolist() == [[1, 0], [2, -2], [-2, -2]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("9;a;0.2;1", "line 2: found the id '9'"),
        ("1;z;0.2;1", "line 2: found the label 'z'"),
        ("1;a;1.2;1", "line 2: found '1.2', expected a number from 0 to 1"),
        ("1;a;nan;1", "line 2: found 'nan'"),
        ("1;a;0.2;first", "line 2: found 'first', expected a finite number"),
        ("1;a;0.2", r"line 2: found 3 fields, expected 4 \(ObservationId;ClassId;Probability;Rank\)"),
        ("1,a,0.2,1", "line 2: found 1 field, expected 4"),
        ("1;a;0.2;1\n1;a;0.3;2", r"line 3: found the label 'a' for '1' again \(first in line 2\)"),
        ("1;a;0.2;1\n1;b;0.3;2\n1;c;0.3;3", "line 4: found more than 2 labels for '1'"),
    ],
)
def test_a_wrong_line_of_a_scored_run_is_refused(path, line, message):
    path.write_text(f"ObservationId;ClassId;Probability;Rank\n{line}\n")
    with pytest.raises(RunError, match=message):
        PLANTS.read(path, ("1",), LABELS)


def test_an_item_without_a_line_is_refused_where_a_challenge_wants_all(path):
    path.write_text("id;species;score\n1;a;5\n")
    strict = Scored(columns=("id", "species", "score"), silent_items=False)
    with pytest.raises(RunError, match="no line for 1 of 2 ids"):
        strict.read(path, ("1", "2"), LABELS)
