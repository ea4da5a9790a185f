"""Observations as items: all photos of one are answered together."""

from __future__ import annotations

import fieldmark


def test_observations_are_answered_as_a_whole(fungi_world, tmp_path):
    root = fungi_world
    settings = {"backbone": "resnet10t", "weights": "random", "size": 32}
    result = fieldmark.fit("fungiclef-2025", root, "centroid", tmp_path / "run", settings=settings)
    lines = (tmp_path / "run" / "run.csv").read_text().splitlines()
    observations = (
        fieldmark.dataset("fungitastic", root, "FewShot").media.explode("parts").filter(parts="ClosedSet-Test")
    )
    assert lines[0] == "observationId,predictions"
    assert len(lines) - 1 == result.scorecard.items == observations["observation_id"].n_unique()
