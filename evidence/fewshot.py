"""Few photos per species: methods on the same frozen features of real birds, 1 to 8 photos per species, ten draws each.

Photos are drawn from train; val (the benchmark's own draw, apart from train) decides every setting; test is official.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from evidence.results import real_data
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.datasets import open_dataset
from fieldmark.features.settings import FeatureSettings
from fieldmark.fitting import _supply
from fieldmark.methods.centroid import Centroid
from fieldmark.methods.knn import NearestNeighbors
from fieldmark.methods.lda import Discriminant
from fieldmark.methods.linear import Linear
from fieldmark.methods.ridge import Ridge
from fieldmark.models import FeatureSource
from fieldmark.progress import progress
from fieldmark.stats.intervals import interval
from fieldmark.views import Part, View, open_benchmark

SHOTS, DRAWS = (1, 2, 4, 8), 10
METHODS = {
    "1-NN": NearestNeighbors(k=1),
    "centroid": Centroid(),
    "ridge": Ridge(),
    "lda": Discriminant(),
    "linear": Linear(),
}


def run() -> dict[str, Any] | None:
    """Mean top-1 over draws, with its interval over draws, for each method and number of photos."""
    data = real_data("birds_cub_odd")
    if data is None:
        return None
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", data))
    view = _supply(opened, FeatureSource(FeatureSettings(size=160)))
    label_of = dict(opened.truth["test"].rows.iter_rows())
    assert view.test is not None
    truth = view.labels.encode([label_of[item] for item in view.test.item_ids])
    rows: dict[str, dict[str, list[float]]] = {name: {} for name in METHODS}
    with progress("episodes", len(SHOTS) * DRAWS) as tick:
        for shots in SHOTS:
            for draw in range(DRAWS):
                shown = replace(view, train=_episode(view, shots, np.random.default_rng([shots, draw])), test=None)
                for name, method in METHODS.items():
                    answers = method.fit(shown).predict(view.test, view.labels).top(1)[:, 0]
                    rows[name].setdefault(str(shots), []).append(round(float((answers == truth).mean()), 5))
                tick(1)
    return {"simulated": False, "shots": list(SHOTS), "draws": DRAWS, "rows": rows}


def _episode(view: View, shots: int, rng: np.random.Generator) -> Part:
    """The given number of training photos of each label, drawn without replacement."""
    truth = view.train.truth
    assert truth is not None and view.train.features is not None
    drawn = [rng.permutation(np.flatnonzero(truth == code))[:shots] for code in range(len(view.labels))]
    rows = np.concatenate(drawn)
    return replace(
        view.train, items=view.train.items[rows.tolist()], truth=truth[rows], features=view.train.features[rows]
    )


def summary(values: list[float]) -> tuple[float, float | None, float | None]:
    """The mean over draws with its interval."""
    array = np.array(values)
    found = interval(float(array.mean()), array, bounds=(-1.0, 2.0))
    return float(array.mean()), found.low, found.high
