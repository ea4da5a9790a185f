"""Distances in a tree: against walking from name to name."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.metrics.taxonomy_distance import (
    mean_tree_distance,
    mean_tree_distance_without_each_unit,
    tree_distance,
)


def walked(one: list[int], other: list[int]) -> int:
    """The number of edges from one name up to the taxon they share and down to the other."""
    up, down = [rank for rank in one if rank >= 0], [rank for rank in other if rank >= 0]
    while up and down and up[0] == down[0]:
        up, down = up[1:], down[1:]
    return len(up) + len(down)


@pytest.mark.parametrize("seed", range(5))
def test_the_distance_is_the_number_of_edges_between_two_names(seed):
    rng = np.random.default_rng(seed)
    paths = np.array([[rng.integers(2), 10 + rng.integers(2), 20 + rng.integers(3)] for _ in range(12)])
    for row, depth in enumerate(rng.integers(1, 4, size=12)):
        paths[row, depth:] = -1
    truth, answer = rng.integers(12, size=30), rng.integers(12, size=30)
    by_hand = [walked(list(paths[a]), list(paths[b])) for a, b in zip(truth, answer, strict=True)]
    assert tree_distance(truth, answer, paths=paths, unnamed=12).tolist() == by_hand
    unit = np.arange(30, dtype=np.int32) % 7
    left_out = mean_tree_distance_without_each_unit(truth, answer, unit, paths=paths, unnamed=12)
    expected = [
        mean_tree_distance(truth[unit != one], answer[unit != one], paths=paths, unnamed=12) for one in range(7)
    ]
    np.testing.assert_allclose(left_out, expected, atol=1e-12)


def test_an_answer_outside_the_tree_counts_as_far_as_can_be():
    paths = np.array([[0, 1]])
    assert tree_distance(np.array([0]), np.array([-1]), paths=paths, unnamed=12).tolist() == [12]
