"""What a scorecard shows of itself."""

from __future__ import annotations

import fieldmark


def test_pseudo_values_stay_out_of_what_a_scorecard_prints(run):
    truth = {"id": ["1", "2", "3"], "label": ["a", "b", "a"]}
    card = fieldmark.score("folder", run("id,predicted\n1,a\n2,a\n3,a\n"), truth=truth)
    assert card.pseudo and card.unit_ids and "pseudo" not in repr(card) and "unit_ids" not in repr(card)
