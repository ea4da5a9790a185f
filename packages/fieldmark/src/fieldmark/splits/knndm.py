"""Folds whose distances look like those of prediction: kNNDM.

A model is asked about places that lie some distance from what it has learned from. Folds drawn at random hold out
places with neighbors a few steps away, blocks hold out places that are often further away than any place it will be
asked about. Linnenbrink et al., "kNNDM CV" (2024): among folds made of clusters of places, from a few large ones to
many small ones, take those whose distances from held-out places to the nearest other place are distributed most like
the distances from the places of prediction to the nearest place of train, by Wasserstein's distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.splits.grids import RADIUS_M

Degrees = NDArray[np.float64]
MOST_CLUSTERS, TRIED = 2000, 12
MOST_POINTS = 20_000
# Clusters are found among so many places; the others join the nearest.
MOST_CLUSTERED = 2_000


@dataclass(frozen=True)
class MatchedFolds:
    """Folds that match the distances of prediction.

    Args:
        fold: The fold of each place, from 0 on.
        clusters: How many clusters they are made of; as many as places for folds drawn at random.
        mismatch_m: Wasserstein's distance between the two distributions of distances.
        tried: The same for each number of clusters that was tried.
    """

    fold: NDArray[np.int64]
    clusters: int
    mismatch_m: float
    tried: dict[int, float]


def points_on_earth(lat: Degrees, lon: Degrees) -> NDArray[np.float64]:
    """Places as points in space, in metres, so that nearest neighbors are found across the date line."""
    up, along = np.radians(lat), np.radians(lon)
    points = np.column_stack([np.cos(up) * np.cos(along), np.cos(up) * np.sin(along), np.sin(up)])
    return np.asarray(points * RADIUS_M)


def matched_folds(
    train: tuple[Degrees, Degrees], prediction: tuple[Degrees, Degrees], *, number: int = 5, seed: int = 0
) -> MatchedFolds:
    """Cuts places into folds whose distances look like those of prediction.

    Places at the same spot are never parted.

    Args:
        train: Latitude and longitude of the places to cut.
        prediction: Those of the places that will be asked about.
        number: How many folds.
        seed: The seed of the draw.

    Raises:
        MisuseError: When there are fewer distinct places than folds.
    """
    from scipy.spatial import cKDTree  # imported late: splits are read by every command, and these take half a second
    from scipy.stats import wasserstein_distance

    distinct, inverse = np.unique(np.column_stack(train), axis=0, return_inverse=True)
    if len(distinct) < number or number < 2:
        raise MisuseError(f"{len(distinct)} distinct places cannot make {number} folds.")
    rng = np.random.default_rng(seed)
    places = points_on_earth(distinct[:, 0], distinct[:, 1])
    asked = points_on_earth(*prediction)
    if len(asked) > MOST_POINTS:
        asked = asked[rng.choice(len(asked), MOST_POINTS, replace=False)]
    wanted = cKDTree(places).query(asked)[0]
    tried: dict[int, float] = {}
    best = np.zeros(len(places), dtype=np.int64)
    for clusters in _numbers(number, len(places)):
        fold = _folds_of_clusters(places, clusters, number, rng)
        distance = wasserstein_distance(held_out_distances(places, fold), wanted)
        if not tried or distance < min(tried.values()):
            best = fold
        tried[clusters] = float(distance)
    chosen = min(tried, key=lambda one: tried[one])
    return MatchedFolds(best[inverse.ravel()], chosen, tried[chosen], tried)


def held_out_distances(places: NDArray[np.float64], fold: NDArray[np.int64]) -> NDArray[np.float64]:
    """How far the nearest place of another fold is from each place."""
    from scipy.spatial import cKDTree

    distance = np.empty(len(places))
    for number in np.unique(fold):
        own = fold == number
        distance[own] = cKDTree(places[~own]).query(places[own])[0]
    return distance


def _numbers(folds: int, n_places: int) -> list[int]:
    """How many clusters are tried: from the number of folds up, and each place for itself."""
    most = min(MOST_CLUSTERS, n_places)
    some = np.unique(np.geomspace(folds, most, TRIED).round().astype(int)).tolist()
    return [*some, *([n_places] if n_places > most else [])]


def _folds_of_clusters(
    places: NDArray[np.float64], clusters: int, number: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Clusters dealt out to folds in turn, along the direction in which places are spread widest."""
    if clusters == len(places):
        return rng.permutation(len(places)) % number
    from scipy.cluster.vq import kmeans2
    from scipy.spatial import cKDTree

    some = places if len(places) <= MOST_CLUSTERED else places[rng.choice(len(places), MOST_CLUSTERED, replace=False)]
    if clusters < len(some):
        label = cKDTree(kmeans2(some, clusters, minit="++", seed=rng, iter=10)[0]).query(places)[1]
    else:
        label = cKDTree(some).query(places)[1]
    kept, label = np.unique(label, return_inverse=True)
    counts = np.bincount(label)
    middles = np.stack([np.bincount(label, weights=column) / counts for column in places.T], axis=1)
    widest = np.linalg.svd(places - places.mean(axis=0), full_matrices=False)[2][0]
    turn = np.empty(len(kept), dtype=np.int64)
    turn[np.argsort(middles @ widest, kind="stable")] = np.arange(len(kept)) % number
    return np.asarray(turn[label], dtype=np.int64)
