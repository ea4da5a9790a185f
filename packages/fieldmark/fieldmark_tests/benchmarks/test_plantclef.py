"""PlantCLEF: ranks by probability."""

from __future__ import annotations

import pytest

import fieldmark


def test_plantclef_sorts_by_probability_breaks_ties_by_rank_and_counts_the_silent(run):
    content = "ObservationId;ClassId;Probability;Rank\n1;x;0.5;2\n1;y;0.5;1\n2;y;0.9;1\n2;x;0.1;2\n2;z;0.3;3\n"
    truth = {"id": ["1", "2", "3"], "label": ["x", "x", "z"]}
    classes = {"label": ["x", "y", "z"], "rare": ["no", "no", "yes"]}
    card = fieldmark.score("plantclef-2020", run(content), truth=truth, classes=classes)
    assert card.metrics["mrr"].value == pytest.approx((1 / 2 + 1 / 3 + 0) / 3)
    assert card.metrics["mrr_rare"].value == 0.0
    without = fieldmark.score("plantclef-2020", run(content), truth=truth, classes={"label": ["x", "y", "z"]})
    assert "mrr_rare" not in without.metrics
