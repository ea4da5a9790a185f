"""One column per label."""

from __future__ import annotations

import pytest

from fieldmark.errors import InputError
from fieldmark_tests.runs.formats_by_name import LABELS, SNAKES


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
        ("hashed_id,a,b,a\nx,1,0,0\n", "line 1: found no column 'c'"),
        ("hashed_id,a,b,c\nx,1,0,\n", "line 2: found '', expected a number from 0 to 1"),
        ("hashed_id,a,b,c\nx,1,0,2\n", "line 2: found '2'"),
        ("hashed_id,a,b,c\n", "no line for 1 of 1 ids"),
    ],
)
def test_a_wrong_table_is_refused(path, content, message):
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        SNAKES.read(path, ("x",), LABELS)
