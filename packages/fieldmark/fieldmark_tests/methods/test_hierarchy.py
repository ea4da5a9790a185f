"""Means that borrow from the tree of taxa."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.methods.hierarchy import RankTree, Variances


def means_by_linear_algebra(tree_ranks, counts, means, variances) -> np.ndarray:
    """The posterior means of species from one large linear system: photos, species, genera and the root as unknowns."""
    genus = tree_ranks[0]
    n, g = len(counts), genus.max() + 1
    precision = np.zeros((n + g + 1, n + g + 1))
    right = np.zeros((n + g + 1, means.shape[1]))
    for species in range(n):
        precision[species, species] += counts[species] / variances.photos
        right[species] += counts[species] / variances.photos * means[species]
    edges = [(s, n + genus[s], variances.levels[0]) for s in range(n)] + [
        (n + k, n + g, variances.levels[1]) for k in range(g)
    ]
    for child, parent, tau2 in edges:
        precision[[child, parent], [child, parent]] += 1 / tau2
        precision[[child, parent], [parent, child]] -= 1 / tau2
    return np.linalg.solve(precision, right)[:n], np.linalg.inv(precision).diagonal()[:n]


def test_one_pass_up_and_one_down_give_the_exact_posterior():
    rng = np.random.default_rng(3)
    genus, counts = np.array([0, 0, 1, 1, 1], dtype=np.int32), np.array([1, 4, 2, 1, 9])
    means, variances = rng.normal(size=(5, 3)), Variances(0.7, (0.3, 1.1))
    found = RankTree([genus], counts, means, 1.0).posterior(variances)[0]
    expected, variance = means_by_linear_algebra([genus], counts, means, variances)
    assert found.means == pytest.approx(expected) and found.variance == pytest.approx(variance)


def test_the_variances_that_made_the_photos_are_found_again():
    rng = np.random.default_rng(4)
    genus = np.repeat(np.arange(60), 6)
    centers = rng.normal(0, 2.0, (60, 8))[genus] + rng.normal(0, 0.5, (360, 8))
    counts = rng.integers(1, 5, 360)
    species = np.repeat(np.arange(360), counts)
    photos = centers[species] + rng.normal(0, 1.0, (len(species), 8))
    means = np.stack([photos[species == one].mean(axis=0) for one in range(360)])
    scatter = float(((photos - means[species]) ** 2).sum())
    found = RankTree([genus.astype(np.int32)], counts, means, scatter).estimate()
    assert found.photos == pytest.approx(1.0, rel=0.1)
    assert found.levels == pytest.approx((0.25, 4.0), rel=0.25)


def test_a_species_with_one_photo_is_drawn_to_its_genus_and_more_than_one_with_many():
    variances = Variances(1.0, (0.5, 2.0))
    genus, counts = np.array([0, 0, 0, 1], dtype=np.int32), np.array([1, 20, 20, 20])
    means = np.array([[4.0], [0.0], [0.0], [10.0]])
    found = RankTree([genus], counts, means, 60.0).posterior(variances)
    species, genera = found[0], found[1]
    assert species.borrowed[0] > 0.6 > 0.1 > species.borrowed[1]
    assert abs(species.means[0, 0] - genera.means[0, 0]) < abs(means[0, 0] - genera.means[0, 0])
    assert 4.0 > species.means[0, 0] > 0 and abs(species.means[3, 0] - 10) < 0.5


def test_a_species_of_unknown_genus_is_in_a_genus_of_its_own():
    unknown, own = (
        RankTree([np.array(taxa, dtype=np.int32)], np.ones(3), np.eye(3), 0.0) for taxa in ([0, -1, -1], [0, 1, 2])
    )
    variances = Variances(1.0, (1.0, 1.0))
    assert unknown.posterior(variances)[0].means == pytest.approx(own.posterior(variances)[0].means)
