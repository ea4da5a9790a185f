"""The draw of quadrats as the organizers of GeoLifeCLEF make it, and how far the two sides of a cut lie apart."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.splits.knndm import points_on_earth

Degrees = NDArray[np.float64]

# The seed of the organizers, and their share of quadrats that is test.
ORGANIZERS_SEED, ORGANIZERS_SHARE = 1949, 0.025


def organizers_draw(quadrat: NDArray[Any], share: float, seed: int = ORGANIZERS_SEED) -> NDArray[np.bool_]:
    """Which places are held out: those of the last quadrats of a permutation.

    Names of quadrats are sorted; NumPy's older generator permutes their numbers, the first floor((1 - share) B) of B
    stay, the others are held out. The same places give the same answer on any machine.

    Args:
        quadrat: The name of the quadrat of each place.
        share: Of quadrats, held out.
        seed: Of the permutation.

    >>> organizers_draw(np.array(["e1n1", "e1n2", "e1n1", "e2n1"]), 1 / 3).tolist()
    [False, True, False, False]
    """
    names, number = np.unique(quadrat, return_inverse=True)
    order = np.random.RandomState(seed).permutation(len(names))
    kept = int(np.floor((1 - share) * len(names)))
    held_out = np.zeros(len(names), dtype=np.bool_)
    held_out[order[kept:]] = True
    return held_out[number]


def organizers_parts(quadrat: NDArray[Any], shares: dict[str, float], seed: int = ORGANIZERS_SEED) -> NDArray[np.str_]:
    """The part of each place: test is held out of all quadrats, then val of those that are left, by the same draw.

    Args:
        quadrat: The name of the quadrat of each place.
        shares: Of all quadrats, for `val` and `test`; those that are not named have none.
        seed: Of both permutations.
    """
    part = np.full(len(quadrat), "train", dtype="<U5")
    left = 1.0
    for name in ("test", "val"):
        share = shares.get(name, 0.0)
        if share > 0:
            rest = np.flatnonzero(part == "train")
            part[rest[organizers_draw(quadrat[rest], share / left, seed)]] = name
            left -= share
    return part


@dataclass(frozen=True)
class Apart:
    """How far the places of a part lie from the nearest place of train, in metres.

    Args:
        nearest_m, tenth_m, median_m: The smallest distance, that which a tenth of the places stays below, the median.
        same_place: How many places lie where a place of train lies.
        places: How many there are.
    """

    nearest_m: float
    tenth_m: float
    median_m: float
    same_place: int
    places: int

    def to_data(self) -> dict[str, Any]:
        """The numbers as plain data."""
        return {name: round(value, 1) if isinstance(value, float) else value for name, value in asdict(self).items()}


def distances_m(lat: Degrees, lon: Degrees, train_lat: Degrees, train_lon: Degrees) -> Degrees:
    """How far each place lies from the nearest place of train, in metres; NaN where it is nowhere.

    >>> distances_m(np.array([45.0]), np.array([0.0]), np.array([46.0, 60.0]), np.array([0.0, 0.0])).round(-2)
    array([111200.])
    """
    known = np.isfinite(train_lat) & np.isfinite(train_lon)
    there = np.isfinite(lat) & np.isfinite(lon)
    found = np.full(len(lat), np.nan)
    if known.any() and there.any():
        from scipy.spatial import cKDTree

        tree = cKDTree(points_on_earth(train_lat[known], train_lon[known]))
        found[there] = tree.query(points_on_earth(lat[there], lon[there]))[0]
    return found


def apart(lat: Degrees, lon: Degrees, part: NDArray[Any]) -> dict[str, Apart]:
    """How far val and test lie from train, where both have places."""
    told = {}
    train = part == "train"
    for name in ("val", "test"):
        own = part == name
        found = distances_m(lat[own], lon[own], lat[train], lon[train])
        found = found[np.isfinite(found)]
        if len(found):
            tenth, median = np.quantile(found, [0.1, 0.5])
            same = int((found < 1e-3).sum())
            told[name] = Apart(float(found.min()), float(tenth), float(median), same, len(found))
    return told
