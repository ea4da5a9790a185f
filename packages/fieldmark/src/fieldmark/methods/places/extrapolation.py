"""How far a place lies from what a model has learned from, in space and in covariates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from fieldmark.methods.base import Arrays
from fieldmark.methods.places.records import Points

PREFIX = "reference."
MOST_POINTS = 5000
# A place is called strange in space where it is further from the points of train than all but this share of them are
# from their own nearest neighbor.
USUAL_SHARE = 0.99


@dataclass(frozen=True)
class Extrapolation:
    """How strange a place is.

    Args:
        similarity: MESS (Elith et al. 2010): the lowest over covariates of how far inside the range of train a value
            lies, from 100 in its middle to 0 at its edge; below 0 it is outside, by that share of the range.
        covariate: Which covariate that is, by its number; -1 without covariates.
        distance_km: How far the nearest point of train is; NaN where no place is known.
        usual_km: The distance to the nearest other point that all but one of a hundred points of train keep.
    """

    similarity: float
    covariate: int
    distance_km: float
    usual_km: float

    @property
    def is_outside(self) -> bool:
        """Whether a covariate lies outside what train has."""
        return self.similarity < 0

    @property
    def is_far(self) -> bool:
        """Whether the place lies further from train than its points from each other."""
        return bool(self.distance_km > self.usual_km)


def reference_of(points: Points, seed: int) -> Arrays:
    """What a model keeps of the places it has learned from: some of them, in a stable order that tells no labels."""
    rng = np.random.default_rng(seed)
    rows = np.arange(len(points))
    if len(rows) > MOST_POINTS:
        rows = np.sort(rng.choice(rows, MOST_POINTS, replace=False))
    kept = points.take(rows)
    located = points.on_sphere
    nearest = np.zeros(1)
    if len(points) > 1:
        nearest = cKDTree(np.unique(located, axis=0)).query(located[rows], k=min(2, len(np.unique(located, axis=0))))[0]
    usual = float(np.quantile(nearest[:, 1], USUAL_SHARE)) if nearest.ndim == 2 else 0.0
    return {
        f"{PREFIX}place": np.column_stack([kept.lat, kept.lon]),
        f"{PREFIX}table": np.sort(kept.table, axis=0),
        f"{PREFIX}usual_km": np.array([usual]),
    }


def extrapolations(arrays: Arrays, points: Points) -> list[Extrapolation]:
    """How strange each of some places is to a model."""
    similarity = similarities(arrays[f"{PREFIX}table"], points.table)
    distance = distances_km(arrays, points)
    usual = float(arrays[f"{PREFIX}usual_km"][0])
    found = []
    for row in range(len(points)):
        if similarity.shape[1]:
            worst = int(similarity[row].argmin())
            found.append(Extrapolation(float(similarity[row, worst]), worst, float(distance[row]), usual))
        else:
            found.append(Extrapolation(100.0, -1, float(distance[row]), usual))
    return found


def similarities(table: NDArray[np.float32], asked: NDArray[np.float32]) -> NDArray[np.float64]:
    """MESS of each place and covariate (Elith, Kearney and Phillips 2010, appendix).

    With f the percentage of reference values below a value v: 2 f up to 50, 2 (100 - f) above; where no value is below,
    100 (v - min) / (max - min), and where all are, 100 (max - v) / (max - min).

    >>> similarities(np.arange(5.0, dtype=np.float32)[:, None], np.array([[2.0], [5.0]], dtype=np.float32)).tolist()
    [[80.0], [-25.0]]
    """
    values = np.empty(asked.shape)
    for column in range(asked.shape[1]):
        known, own = table[:, column].astype(np.float64), asked[:, column].astype(np.float64)
        low, high = known[0], known[-1]
        spread = max(high - low, 1e-12)
        below = 100 * np.searchsorted(known, own, "left") / len(known)
        inside = np.where(below <= 50, 2 * below, 2 * (100 - below))
        values[:, column] = np.select(
            [below == 0, own > high], [100 * (own - low) / spread, 100 * (high - own) / spread], inside
        )
    return values


def distances_km(arrays: Arrays, points: Points) -> NDArray[np.float64]:
    """How far the nearest of the kept points of train is from each place."""
    lat, lon = arrays[f"{PREFIX}place"].T
    known = np.isfinite(lat) & np.isfinite(lon)
    there = np.isfinite(points.lat) & np.isfinite(points.lon)
    distance = np.full(len(points), np.nan)
    if known.any() and there.any():
        kept = Points(lat[known], lon[known], np.zeros((int(known.sum()), 0), dtype=np.float32))
        asked = points.take(np.flatnonzero(there))
        distance[there] = cKDTree(kept.on_sphere).query(asked.on_sphere)[0]
    return distance
