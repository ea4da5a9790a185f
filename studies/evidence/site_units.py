"""How wide is an interval when neighboring sites are not independent? Two regions of disdat, by site and by block.

`occurrences/presence` leaves out one site at a time, as if each told something of its own. Sites near each other share
climate, ground and history, and what a model gets wrong at one it tends to get wrong at the next. Here the same answers
are given intervals that leave out whole blocks of the land instead, of several sizes, all of which are reported. The
values are the same: only what counts as one piece of evidence changes. Methods have their defaults (100 trees).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.methods.places.records import coordinates
from fieldmark.metrics import presence
from fieldmark.splits.grids import square_blocks
from fieldmark.stats.intervals import interval, pseudo_values
from studies.evidence.regions import REGIONS, made, opened_region, pairs
from studies.evidence.results import real_data

METHODS: dict[str, dict[str, Any]] = {"random-forest": {"trees": 100}, "neighbors": {}}
SIDES_KM = (10, 25, 50, 100)


def run() -> dict[str, Any] | None:
    """ROC-AUC, mean over species, with intervals by site and by blocks of each size."""
    if real_data("sdm_disdat") is None:
        return None
    found: dict[str, Any] = {"simulated": False, "about": __doc__, "regions": {}}
    for region in REGIONS:
        view, sites, truth = opened_region(region)
        lat, lon = coordinates(sites)
        units = {"site": np.arange(len(truth), dtype=np.int32)}
        units |= {f"blocks of {side} km": blocks(lat, lon, side) for side in SIDES_KM}
        rows: dict[str, Any] = {}
        for name, settings in METHODS.items():
            fitted = made(name, settings, background="random").fit(view)
            scores = fitted.method.scores(fitted.arrays, sites.unlabeled())
            rows[name] = {by: by_unit(scores, truth, unit) for by, unit in units.items()}
            print(region, name, rows[name], flush=True)
        found["regions"][region] = {"sites": len(truth), "methods": rows}
    return found


def blocks(lat: NDArray[np.float64], lon: NDArray[np.float64], side_km: float) -> NDArray[np.int32]:
    """The number of the block that each site lies in."""
    cells = np.column_stack(square_blocks(lat, lon, 1000.0 * side_km))
    return np.unique(cells, axis=0, return_inverse=True)[1].ravel().astype(np.int32)


def by_unit(scores: NDArray[Any], truth: NDArray[np.bool_], unit: NDArray[np.int32]) -> dict[str, Any]:
    """The mean ROC-AUC with an interval that leaves out one unit at a time."""
    item, cls, score, present = pairs(scores, truth)
    value = presence.mean_roc_auc(item, cls, score, present)
    left_out = presence.mean_roc_auc_without_each_unit(item, cls, score, present, unit)
    bounds = interval(value, pseudo_values(value, left_out))
    low, high = (None if one is None else round(float(one), 4) for one in (bounds.low, bounds.high))
    return {"units": int(unit.max()) + 1, "roc_auc": [round(float(value), 4), low, high]}
