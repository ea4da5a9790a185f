from __future__ import annotations

import numpy as np
import pytest

from fieldmark.errors import InputError
from fieldmark.labels import Labels
from fieldmark.runs.dense import Dense
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.problems import RunError
from fieldmark.runs.scored import Scored
from fieldmark.runs.segments import SegmentLists, segment_name

LABELS = Labels(("a", "b", "c"))
PLANTS = Scored(columns=("ObservationId", "ClassId", "Probability", "Rank"), low=0, high=1, at_most=2)
BIRDS = SegmentLists(at_most=2)
SNAKES = Dense(item="hashed_id")
SEGMENTS = [segment_name("PER1", start) for start in (0, 5, 10)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.csv"


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


def test_birds_are_read_by_segment_and_silent_segments_have_no_answer(path):
    path.write_text("PER1;00:00:05-00:00:10;b;0.5\nPER1;00:00:05-00:00:10;a;0.75\n")
    run = BIRDS.read(path, SEGMENTS, LABELS)
    assert run.top(2).tolist() == [[-2, -2], [0, 1], [-2, -2]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("QQQ;00:00:05-00:00:10;b;0.5", "line 1: found the recording 'QQQ'"),
        (
            "PER1;00:00:06-00:00:11;b;0.5",
            "line 1: found the interval '00:00:06-00:00:11', expected hh:mm:ss-hh:mm:ss, 5",
        ),
        ("PER1;00:00:05-00:00:15;b;0.5", "found the interval"),
        ("PER1;00:10:00-00:10:05;b;0.5", "expected one within the recording"),
        ("PER1;5-10;b;0.5", "found the interval '5-10'"),
        ("PER1;00:00:05-00:00:10;z;0.5", "line 1: found the class 'z'"),
        ("PER1;00:00:05-00:00:10;b;1.5", "found '1.5', expected a number from 0 to 1"),
        ("PER1;00:00:05-00:00:10;b", "line 1: found 3 fields, expected 4"),
        ("PER1;00:00:05-00:00:10;b;0.5\nPER1;00:00:05-00:00:10;b;0.4", "line 2: found the class 'b' again"),
        ("\n".join(f"PER1;00:00:05-00:00:10;{c};0.5" for c in "abc"), "line 3: found more than 2 classes"),
    ],
)
def test_a_wrong_line_of_a_soundscape_run_is_refused(path, line, message):
    path.write_text(line + "\n")
    with pytest.raises(RunError, match=message):
        BIRDS.read(path, SEGMENTS, LABELS)


def test_snakes_have_a_column_per_class_in_any_order(path):
    path.write_text("hashed_id,b,a,c\ny,0.5,0.25,0.25\nx,0,1,0\n")
    run = SNAKES.read(path, ("x", "y"), LABELS)
    assert run.scores.tolist() == [[1, 0, 0], [0.25, 0.5, 0.25]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,a,b,c\nx,1,0,0\n", "line 1: found 'id' first, expected hashed_id and the 3 labels"),
        ("hashed_id,a,b\nx,1,0\n", "line 1: found no column 'c'"),
        ("hashed_id,a,b,z\nx,1,0,0\n", "line 1: found the column 'z'"),
        ("hashed_id,a,b,c,a\nx,1,0,0,0\n", "line 1: found one twice"),
        ("hashed_id,a,b,c\nx,1,0,\n", "line 2: found '', expected a number from 0 to 1"),
        ("hashed_id,a,b,c\nx,1,0,2\n", "line 2: found '2'"),
        ("hashed_id,a,b,c\n", "no line for 1 of 1 ids"),
    ],
)
def test_a_wrong_table_is_refused(path, content, message):
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        SNAKES.read(path, ("x",), LABELS)


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
