"""Individuals: by hand, against scikit-learn, and leaving out a unit against computing anew."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from fieldmark.metrics import individuals


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For each of 80 photos: individual, dataset, whether it is new, whether the answer is right, and a cluster."""
    rng = np.random.default_rng(seed)
    identity = np.concatenate([np.arange(20), rng.integers(20, size=60)])
    dataset, is_new = (identity % 3).astype(np.int32), identity % 4 == 0
    return identity, dataset, is_new, rng.random(80) < 0.6, rng.integers(12, size=80)


@pytest.mark.parametrize("seed", range(4))
def test_each_individual_has_the_same_weight(seed):
    identity, dataset, is_new, right, _ = drawn(seed)
    roots = []
    for one in range(3):
        shares: dict[bool, list[float]] = {True: [], False: []}
        for individual in set(identity[dataset == one]):
            rows = identity == individual
            shares[bool(is_new[rows][0])].append(right[rows].mean())
        roots.append(np.sqrt(np.mean(shares[False]) * np.mean(shares[True])))
    value = individuals.geometric_mean_by_dataset(right, identity, is_new, dataset)
    assert value == pytest.approx(np.mean(roots), abs=1e-12)


def test_a_dataset_without_new_individuals_counts_nothing():
    right, identity, dataset = np.ones(4, dtype=bool), np.arange(4), np.array([0, 0, 1, 1])
    assert individuals.geometric_mean_by_dataset(right, identity, np.array([True, False, False, False]), dataset) == 0.5
    assert np.isnan(individuals.share_by_identity(right, identity, among=np.zeros(4, dtype=bool)))


@pytest.mark.parametrize("seed", range(4))
def test_leaving_out_an_individual_is_computing_without_it(seed):
    identity, dataset, is_new, right, cluster = drawn(seed)
    unit = identity.astype(np.int32)
    left_out = individuals.geometric_mean_by_dataset_without_each_unit(right, identity, is_new, dataset, unit)
    rand_left_out = individuals.adjusted_rand_without_each_unit(identity, cluster, dataset, unit)
    for one in range(20):
        kept = unit != one
        inside = right[kept], identity[kept], is_new[kept], dataset[kept]
        assert left_out[one] == pytest.approx(individuals.geometric_mean_by_dataset(*inside), abs=1e-12)
        rand = individuals.adjusted_rand(identity[kept], cluster[kept], dataset[kept])
        assert rand_left_out[one] == pytest.approx(rand, abs=1e-12)


def test_an_individual_in_two_units_is_refused():
    right, identity, zeros = np.ones(2, dtype=bool), np.zeros(2, dtype=int), np.zeros(2, dtype=np.int32)
    with pytest.raises(ValueError, match="several units"):
        individuals.geometric_mean_by_dataset_without_each_unit(
            right, identity, np.zeros(2, dtype=bool), zeros, np.array([0, 1])
        )


@pytest.mark.parametrize("seed", range(6))
def test_the_rand_index_is_that_of_sklearn(seed):
    identity, dataset, _, _, cluster = drawn(seed)
    by_hand = np.mean([adjusted_rand_score(identity[dataset == one], cluster[dataset == one]) for one in range(3)])
    assert individuals.adjusted_rand(identity, cluster, dataset) == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 4), (4, 1), (4, 4)])
def test_trivial_clusters_are_those_of_sklearn(sizes):
    identity, cluster = (np.arange(4) % size for size in sizes)
    zeros = np.zeros(4, dtype=int)
    assert individuals.adjusted_rand(identity, cluster, zeros) == adjusted_rand_score(identity, cluster)
