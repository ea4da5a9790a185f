"""A random forest of 31,435 species and 200,000 places: memory, and time beside scikit-learn where that fits."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from fieldmark.methods.places.forest import RandomForest
from fieldmark.methods.places.records import PlaceRecords, Points
from studies.perf.timing import fastest

SPECIES, PLACES, COVARIATES, TREES = 31_435, 200_000, 27, 10
# Scikit-learn keeps a number for each node and species.
SMALL_SPECIES, SMALL_PLACES, SMALL_TREES = 500, 20_000, 4
LEAF = 5
MEMORY = """import json, time
from pathlib import Path
from studies.perf.random_forest import PLACES, SPECIES, TREES, answered, drawn
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20
records = drawn(SPECIES, PLACES)
before, start = peak(), time.perf_counter()
found = answered(records, TREES)
seconds = time.perf_counter() - start
print(json.dumps({**found, "peak_before_gib": before, "peak_gib": peak(), "seconds": seconds}))
"""


def run() -> dict[str, Any]:
    """The peak of a process that draws the records, grows the forest and answers 1,000 places; the ratio of times."""
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    small = drawn(SMALL_SPECIES, SMALL_PLACES)

    def theirs() -> None:
        forest = RandomForestClassifier(SMALL_TREES, min_samples_leaf=LEAF, random_state=0)
        forest.fit(small.points.table[small.row], small.code).predict_proba(small.points.table[:1000])

    times = fastest({"ours": lambda: answered(small, SMALL_TREES), "theirs": theirs}, rounds=2)
    return {
        "species": SPECIES,
        "places": PLACES,
        "covariates": COVARIATES,
        "trees": TREES,
        "peak_gib_of_8_allowed": round(found["peak_gib"], 2),
        "peak_gib_before_growing": round(found["peak_before_gib"], 2),
        "model_mib_per_tree": round(found["model_mib"] / TREES, 2),
        "leaf_entries": found["entries"],
        "dense_leaves_would_take_gib": round(found["leaves"] * SPECIES * 8 / 2**30),
        "scikit_learn_over_ours_at_500_species_and_20000_places": round(times["theirs"] / times["ours"], 2),
    }


def drawn(species: int, places: int) -> PlaceRecords:
    """Records with covariates that follow one another, and species with niches, few of them common."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(places, 4)).astype(np.float32)
    mixing = rng.normal(size=(4, COVARIATES)).astype(np.float32)
    table = hidden @ mixing + rng.normal(size=(places, COVARIATES)).astype(np.float32)
    # The species of a place is one of those near it on a line through its covariates; 1 / rank says how common.
    along = np.argsort(np.argsort(hidden[:, 0] + 0.3 * rng.normal(size=places))) / places
    shares = 1 / np.arange(1, species + 1)
    order = rng.permutation(species)
    edges = np.cumsum(shares[order]) / shares.sum()
    code = order[np.minimum(np.searchsorted(edges, along), species - 1)].astype(np.int32)
    lat, lon = rng.uniform(42, 51, places), rng.uniform(-5, 8, places)
    points = Points(lat, lon, table)
    return PlaceRecords(points, np.arange(places), code, species, points)


def answered(records: PlaceRecords, trees: int) -> dict[str, Any]:
    """Grows a forest, answers 1,000 places in blocks, and says how large it is."""
    method = RandomForest(inputs="environment", sampling="bootstrap", trees=trees, leaf=LEAF)
    forest, learned = method.learn(records)
    arrays = {**learned, "log_prior": records.log_prior.astype(np.float32), "survey": np.array([False])}
    for block in forest.blocks(arrays, records.points.take(np.arange(1000))):
        forest.scored(arrays, block)
    return {
        "model_mib": sum(array.nbytes for array in arrays.values()) / 2**20,
        "entries": len(arrays["leaf.codes"]),
        "leaves": int((arrays["trees.feature"] < 0).sum()),
    }
