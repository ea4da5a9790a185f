"""FGVCx Fungi 2018: two error rules, runs as its organizers read them."""

from __future__ import annotations

import pytest

import fieldmark
from fieldmark.errors import InputError


def test_fgvcx_has_both_error_rules(run):
    truth, classes = {"id": ["1", "2"], "label": ["3", "0"]}, {"label": list("012345")}
    card = fieldmark.score(
        "fgvcx-fungi-2018", run("id, predicted\n1, 0 1 2 3\n2, 0 1 2\n"), truth=truth, classes=classes
    )
    assert (card.metrics["top_5_error"].value, card.metrics["top_3_error"].value) == (0.0, 0.5)
    with pytest.raises(InputError, match="found 2 labels, expected at least 3"):
        fieldmark.score("fgvcx-fungi-2018", run("id,predicted\n1,0 1\n2,0 1 2\n"), truth=truth, classes=classes)


def test_fgvcx_reads_runs_as_the_organizers_program_does(run):
    truth = {"id": ["1", "2"], "label": ["5", "0"], "usage": ["Public", "Private"]}
    classes = {"label": list("012345")}
    # The sixth answer is cut off, the id that nobody asked about is passed over.
    card = fieldmark.score(
        "fgvcx-fungi-2018", run("id,predicted\n1,0 1 2 3 4 5\n9,0 1 2\n2,0 1 2\n"), truth=truth, classes=classes
    )
    assert (card.items, card.metrics["top_5_error"].value) == (2, 0.5)
    boards = {board: scores["top_3_error"].value for board, scores in card.groups["usage"].items()}
    assert boards == {"Public": 1.0, "Private": 0.0}
    with pytest.raises(InputError, match="no line for 1 of 2 ids"):
        fieldmark.score("fgvcx-fungi-2018", run("id,predicted\n1,0 1 2\n"), truth=truth, classes=classes)
    # Ids of categories are text: the organizers would count 05 as wrong, here it is refused.
    with pytest.raises(InputError, match="found the label '05'"):
        fieldmark.score("fgvcx-fungi-2018", run("id,predicted\n1,05 1 2\n2,0 1 2\n"), truth=truth, classes=classes)
