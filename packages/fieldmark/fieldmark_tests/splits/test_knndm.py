from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from fieldmark.errors import MisuseError
from fieldmark.splits.knndm import held_out_distances, matched_folds, points_on_earth


def clustered(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Twenty towns with fifteen places each, over ten degrees."""
    towns = rng.uniform(0, 10, (20, 2))
    places = (towns[:, None] + rng.normal(0, 0.02, (20, 15, 2))).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def mean_distance(train: tuple[np.ndarray, np.ndarray], fold: np.ndarray) -> float:
    return float(held_out_distances(points_on_earth(*train), fold).mean())


def test_far_predictions_get_folds_further_apart_than_near_ones():
    rng = np.random.default_rng(0)
    train = clustered(rng)
    near = tuple(column + rng.normal(0, 0.005, len(column)) for column in train)
    far = tuple(rng.uniform(0, 10, (2, 300)))
    close, apart = matched_folds(train, near), matched_folds(train, far)
    assert mean_distance(train, close.fold) < 5_000 < 20_000 < mean_distance(train, apart.fold)
    assert close.clusters > apart.clusters


def test_the_folds_are_those_of_the_smallest_mismatch_and_it_is_what_scipy_says():
    rng = np.random.default_rng(1)
    train, asked = clustered(rng), tuple(rng.uniform(0, 10, (2, 200)))
    found = matched_folds(train, asked, number=4)
    places = points_on_earth(*train)
    wanted = cKDTree(places).query(points_on_earth(*asked))[0]
    got = held_out_distances(places, found.fold)
    # Wasserstein's distance in one dimension is the mean distance of quantiles.
    at = (np.arange(20_000) + 0.5) / 20_000
    by_hand = np.abs(np.quantile(got, at, method="inverted_cdf") - np.quantile(wanted, at, method="inverted_cdf"))
    assert found.mismatch_m == min(found.tried.values()) == pytest.approx(by_hand.mean(), rel=0.01)
    assert set(found.fold) == {0, 1, 2, 3}


def test_places_at_one_spot_stay_together_and_the_seed_decides():
    rng = np.random.default_rng(2)
    lat, lon = (np.repeat(column, 2) for column in clustered(rng))
    asked = tuple(rng.uniform(0, 10, (2, 50)))
    fold = matched_folds((lat, lon), asked, seed=3).fold
    assert (fold[::2] == fold[1::2]).all()
    assert (matched_folds((lat, lon), asked, seed=3).fold == fold).all()


def test_fewer_places_than_folds_are_refused():
    with pytest.raises(MisuseError, match="2 distinct places cannot make 5 folds"):
        matched_folds((np.array([1.0, 2.0, 2.0]), np.zeros(3)), (np.zeros(1), np.zeros(1)))
