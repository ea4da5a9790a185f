"""What each method on features holds in memory itself when they lie in files, as a share of their size.

Each method at each of two sizes fits and answers in a process of its own, on one thread per library; its memory is the
peak of `RssAnon` beyond what the process held before, without pages of files, which the system takes back when it needs
them. What a method costs whatever the size (imports, one block, what it learns) cancels out in the share: how much more
it holds at the larger size, over how much larger the features are. A method that copies all features in single
precision has a share of 1; items and scores of labels are held by all of them, and are a few hundredths here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.methods import METHODS
from fieldmark.questions.targets import LabelTargets
from fieldmark.tables.labels import UNKNOWN, Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import MEMORY_SETTING, array_in_file
from studies.perf.growth import OwnMemory, status_mib

# Items of train at both sizes; val, test and unlabeled ones are a quarter as many each.
ITEMS, FEATURES, SPECIES = (8_000, 32_000), 512, 40
SPECIES_IN_GENUS = 4
IN_FILES_MIB, BLOCK_ITEMS, SHARE_UNKNOWN = 2, 1000, 0.1
# Methods with settings that leave few rounds to do; how many there are changes nothing about memory.
METHOD_SETTINGS: dict[str, dict[str, Any]] = {
    "centroid": {},
    "knn": {},
    "lda": {},
    "prototypes": {"borrow": 1.0},
    "ridge": {},
    "linear": {"l2": 0.1, "iterations": 5},
    "em": {"borrow": 1.0, "iterations": 3},
    "openset": {"score": "all", "classifier": "centroid"},
    "supervised": {"l2": 0.1, "iterations": 5},
    "self-training": {"l2": 0.1, "iterations": 5},
    "pseudo-label": {"l2": 0.1, "iterations": 5, "threshold": 0.5, "rounds": 1},
    "fixmatch": {"l2": 0.1, "iterations": 5, "threshold": 0.5, "steps": 3},
    "label-propagation": {"l2": 0.1, "iterations": 5},
}


@dataclass(frozen=True)
class Sizes:
    """How much a method is shown.

    Args:
        train, val, test: Items of each part; of unlabeled ones there are as many as in val.
        features: Features of each.
        species: Labels.
    """

    train: int
    val: int
    test: int
    features: int = FEATURES
    species: int = SPECIES


def run() -> dict[str, Any]:
    """The peaks of all methods at both sizes, and their shares."""
    methods = {}
    for name in METHOD_SETTINGS:
        small, large = (_measured(name, items) for items in ITEMS)
        further = large["features_mib"] - small["features_mib"]
        methods[name] = {
            "features_mib": [round(one["features_mib"]) for one in (small, large)],
            "own_mib": [round(one["own_mib"]) for one in (small, large)],
            "share_of_features": round(max(large["own_mib"] - small["own_mib"], 0.0) / further, 2),
        }
        print(name, methods[name], flush=True)
    return {"train_items": ITEMS, "features": FEATURES, "labels": SPECIES, "methods": methods}


def _measured(name: str, items: int) -> dict[str, float]:
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "POLARS_MAX")}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **threads, MEMORY_SETTING: str(IN_FILES_MIB), "FIELDMARK_CACHE": folder}
        command = [sys.executable, "-m", "studies.perf.method_memory", name, str(items)]
        done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name} at {items:,} items: {done.stderr}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def drawn_view(name: str, sizes: Sizes) -> View:
    """Parts as a method is shown them, whose features lie in files."""
    labels = Labels(tuple(f"species {number:04}" for number in range(sizes.species)))
    genera = [f"genus {number // SPECIES_IN_GENUS:04}" for number in range(sizes.species)]
    taxonomy = Taxonomy.of(labels, pl.DataFrame({"label": labels.names, "genus": genera}))
    train, test = _part(0, sizes.train, sizes), _part(2, sizes.test, sizes)
    val = _part(1, sizes.val, sizes, SHARE_UNKNOWN if METHODS[name].wants_unknown else 0.0)
    unlabeled = _part(3, sizes.val, sizes).unlabeled() if "unlabeled" in METHODS[name].learns_from else None
    return View(labels, taxonomy, train, val, unlabeled, test.unlabeled())


def _part(seed: int, items: int, sizes: Sizes, share_unknown: float = 0.0) -> Part:
    rng = np.random.default_rng(seed)
    species = rng.integers(0, sizes.species, items).astype(np.int32)
    means = np.random.default_rng(9).normal(size=(sizes.species, sizes.features)).astype(np.float32)

    def blocks() -> Iterator[NDArray[np.float32]]:
        for start in range(0, items, BLOCK_ITEMS):
            own = means[species[start : start + BLOCK_ITEMS]]
            yield own + 4 * rng.standard_normal(own.shape, dtype=np.float32)

    features = array_in_file(blocks())
    truth = np.where(rng.random(items) < share_unknown, np.int32(UNKNOWN), species)
    ids = pl.Series([f"{seed}-{row}" for row in range(items)])
    table = pl.DataFrame({"item_id": ids, "observation_id": ids}).with_columns(
        media_ids=pl.lit([], pl.List(pl.String)),
        start_s=pl.lit(None, pl.Float64),
        end_s=pl.lit(None, pl.Float64),
    )
    return Part(table, LabelTargets(truth), features={"photo": features})


def main() -> None:
    """One method in this process: `python -m studies.perf.method_memory METHOD ITEMS`."""
    name, items = sys.argv[1], int(sys.argv[2])
    view = drawn_view(name, Sizes(items, items // 4, items // 4))
    parts = [part for part in (view.train, view.val, view.unlabeled, view.test) if part is not None]
    method = METHODS[name](**METHOD_SETTINGS[name])
    before, own = status_mib("RssAnon"), OwnMemory()
    with own:
        fitted = method.fit(view)
        assert view.test is not None  # drawn above
        fitted.predict(view.test, view.labels)
    features_mib = sum(part.features["photo"].nbytes for part in parts) / 2**20
    print(json.dumps({"own_mib": own.peak_mib - before, "features_mib": features_mib}))


if __name__ == "__main__":
    main()
