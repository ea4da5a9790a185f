"""Breeding birds on routes of North America (real): held out by blocks of routes, and what 2016 brings.

A species is present on a route where it was seen in at least one of the 15 years before 2016. Species seen on at least
20 routes are asked about. Routes are described by 19 bioclimatic means, elevation, temperature, rain and NDVI. Five
folds of square blocks of 300 km are held out in turn; the unit of intervals is the block. All members of the ensemble
are at their defaults (forest of 200 trees, sinr of 30 epochs), nothing was tuned.

For 2016 the same answers, and those of persistence: the share of the 15 years in which the species was seen on that
very route. Persistence knows the route, and the others have never seen a route within 300 km blocks of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.methods.places.ensemble import PlaceEnsemble
from fieldmark.methods.places.records import PlaceRecords, Points
from fieldmark.splits.grids import square_blocks
from fieldmark.stats.comparison import compare
from fieldmark.stats.intervals import interval, pseudo_values
from studies.evidence.grids import kept_arrays
from studies.evidence.regions import METRICS, pairs
from studies.evidence.results import real_data

FOLDS, BLOCK_M, LEAST_ROUTES, YEARS = 5, 300_000.0, 20, 15
MEMBERS = ("neighbors", "random-forest:trees=200", "spline-logistic", "sinr")
NAMES = (*(member.partition(":")[0] for member in MEMBERS), "ensemble")


def run() -> dict[str, Any] | None:
    """All folds that are not done yet, then the tables."""
    if real_data("breeding_birds") is None:
        return None
    return summary(kept_arrays("routes", {f"fold-{fold}": fold for fold in range(FOLDS)}, answer_fold))


def routes() -> tuple[Points, NDArray[np.int64], pl.DataFrame]:
    """Routes with their environment, the number of each, and how many years each species was seen there."""
    data = real_data("breeding_birds")
    assert data is not None  # asked before
    seen = pl.read_csv(data / "bbs_sub1.csv.gz", infer_schema_length=None).select("stateroute", "Aou", "n")
    table = seen.select("stateroute").unique().sort("stateroute")
    for name in ("latlongs", "bioclim_mean", "all_env"):
        further = pl.read_csv(data / f"{name}.csv.gz", infer_schema_length=None, null_values=["NA"])
        table = table.join(further.unique("stateroute"), on="stateroute", how="left")
    table = table.drop_nulls(["latitude", "longitude"]).sort("stateroute")
    left_out = ("stateroute", "latitude", "longitude", "statenum", "route")
    columns = [name for name in table.columns if name not in left_out]
    values = table.select(pl.col(name).cast(pl.Float64, strict=False) for name in columns).to_numpy()
    values = np.where(np.isfinite(values), values, np.nanmean(values, axis=0))
    values = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9)
    lat, lon = (table[name].to_numpy().astype(np.float64) for name in ("latitude", "longitude"))
    return Points(lat, lon, values.astype(np.float32)), table["stateroute"].to_numpy(), seen


def asked() -> tuple[Points, NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Routes, their numbers, the species asked about, the share of years each was seen, and the block of each route."""
    points, number, seen = routes()
    seen = seen.filter(pl.col("stateroute").is_in(number.tolist()))
    common = seen.group_by("Aou").len().filter(pl.col("len") >= LEAST_ROUTES)["Aou"].sort().to_numpy()
    seen = seen.filter(pl.col("Aou").is_in(common.tolist()))
    share = np.zeros((len(number), len(common)))
    row = np.searchsorted(number, seen["stateroute"].to_numpy())
    share[row, np.searchsorted(common, seen["Aou"].to_numpy())] = seen["n"].to_numpy() / YEARS
    cells = np.column_stack(square_blocks(points.lat, points.lon, BLOCK_M))
    return points, number, common, share, np.unique(cells, axis=0, return_inverse=True)[1].ravel()


def answer_fold(fold: int) -> dict[str, Any]:
    """The chance of each species on the routes of one fold."""
    points, _, _, share, block = asked()
    held = np.random.default_rng(0).permutation(int(block.max()) + 1)[block] % FOLDS == fold
    rest = np.flatnonzero(~held)
    row, code = np.nonzero(share[rest] > 0)
    records = PlaceRecords(points.take(rest), row, code.astype(np.int32), share.shape[1], None)
    ensemble = PlaceEnsemble(inputs="environment", members=",".join(MEMBERS), several=True)
    fitted, arrays = ensemble.learn(records)
    common = {"log_prior": records.log_prior.astype(np.float32), "survey": np.array([True])}
    arrays = {**arrays, **common}
    mine = points.take(np.flatnonzero(held))
    ratios = [*fitted.of_members(arrays, mine), fitted.log_ratios(arrays, mine)]
    found = {name: fitted.scored(arrays, one) for name, one in zip(NAMES, ratios, strict=True)}
    return {"rows": np.flatnonzero(held), **found}


def summary(folds: Mapping[str, Any]) -> dict[str, Any]:
    """Values by blocks of routes for the years before 2016 and for 2016, and differences from the forest."""
    _, number, common, share, block = asked()
    answers = {name: np.full(share.shape, np.nan) for name in NAMES}
    for stored in folds.values():
        for name in NAMES:
            answers[name][stored["rows"]] = stored[name]
    there = np.isfinite(answers[NAMES[0]]).all(axis=1)
    data = real_data("breeding_birds")
    assert data is not None
    counts = pl.read_csv(data / "bbs_2016.csv.gz", infer_schema_length=None).filter(pl.col("speciestotal") > 0)
    surveyed = np.isin(number, counts["stateroute"].to_numpy())
    later = np.zeros(share.shape, dtype=np.bool_)
    counts = counts.filter(pl.col("stateroute").is_in(number.tolist()) & pl.col("aou").is_in(common.tolist()))
    row = np.searchsorted(number, counts["stateroute"].to_numpy())
    later[row, np.searchsorted(common, counts["aou"].to_numpy())] = True
    before = {name: one[there] for name, one in answers.items()}
    both = there & surveyed
    in_2016 = {"persistence": share[both], **{name: one[both] for name, one in answers.items()}}
    known = float((share[both] > 0)[later[both]].mean())
    return {
        "about": __doc__,
        "routes": int(there.sum()),
        "species": len(common),
        "blocks": len(np.unique(block[there])),
        "before_2016": scored(before, share[there] > 0, block[there], "random-forest"),
        "routes_in_2016": int(both.sum()),
        "seen_before_on_the_route": round(known, 4),
        "in_2016": scored(in_2016, later[both], block[both], "persistence"),
    }


def scored(
    answers: dict[str, NDArray[Any]], truth: NDArray[np.bool_], block: NDArray[np.int64], first: str
) -> dict[str, Any]:
    """Each metric with its interval over blocks, and the paired difference from one of the answers."""
    unit = np.unique(block, return_inverse=True)[1].astype(np.int32)
    said: dict[str, Any] = {name: {} for name in answers}
    for metric, (value_of, without_each) in METRICS.items():
        values = {name: value_of(*pairs(one, truth)) for name, one in answers.items()}
        pseudo = {
            name: pseudo_values(values[name], without_each(*pairs(one, truth), unit)) for name, one in answers.items()
        }
        for name in answers:
            own = interval(values[name], pseudo[name], bounds=(-1e9, 1.0))
            said[name][metric] = _rounded(values[name], own.low, own.high)
            if name != first:
                pair = np.stack([pseudo[name], pseudo[first]])
                apart = compare(np.array([values[name], values[first]]), pair, higher_is_better=True).differences[0]
                said[name][f"{metric}_less_{first}"] = _rounded(apart.value, apart.interval.low, apart.interval.high)
    return said


def _rounded(*numbers: float | None) -> list[float | None]:
    return [None if one is None else round(float(one), 4) for one in numbers]
