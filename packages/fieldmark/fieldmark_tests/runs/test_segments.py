"""Lists of labels by segment."""

from __future__ import annotations

import pytest

from fieldmark.runs.problems import RunError
from fieldmark_tests.runs.formats_by_name import BIRDS, LABELS, SEGMENTS


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
