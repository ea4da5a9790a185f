"""Five worlds of GeoLifeCLEF 2020 (simulated): two countries, 200 species, 3,000 records each, seeds 0 to 4.

Each method answers the test quadrats (5 km, 12 % of them). Intervals leave out one quadrat at a time. Methods read
all tables: values of the 27 rasters, and statistics of the patches. What the overview of 2020 asks in its figure 8 is
`cnn` (patches of imagery and altitude), `rasters` (a forest on the 27 rasters alone), and the mean of their
probabilities. The optimism of a random split is the score on
as many records drawn at random, by a model that learned from the others, less the score on whole quadrats.
`best possible` is what the true probability of each species at a place reaches.

Settings are the defaults, except those that make it quicker: forests of 100 trees, boosting of 60, networks of 20
epochs (cnn: 8, at 32 px, from ImageNet), set before anything was scored. The forest on rasters alone, and maxent (5
hinges), were added after the others had been. Parts were computed on two machines; boosting that was computed on both
agrees to the last digit, networks do not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.fit_part import readable_inputs, with_features
from fieldmark.metrics.classification import mean_without_each_unit
from fieldmark.metrics.geo import adaptive_accuracy, adaptive_accuracy_without_each_unit, adaptive_sets
from fieldmark.questions.targets import LabelTargets
from fieldmark.stats.comparison import compare
from fieldmark.stats.intervals import interval, pseudo_values
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release
from fieldmark.views.parts import Part, View
from fieldmark_worlds.layouts import geolifeclef
from studies.evidence.grids import KEPT, kept_arrays

SEEDS = (0, 1, 2, 3, 4)
EXTENT = geolifeclef.LandExtent(200, (1500, 1500), (10, 14), (0.2, 0.4), 32, 0.12)
QUICK: dict[str, dict[str, Any]] = {
    "frequent": {},
    "neighbors": {},
    "random-forest": {"trees": 100},
    "boosting": {"trees": 60},
    "sinr": {"epochs": 20},
    "deepmaxent": {"epochs": 20},
    "spline-logistic": {},
    "down-weighted-boosting": {"rounds": 100, "rate": 0.05},
    "ensemble": {"method": "place-ensemble", "members": "neighbors,random-forest:trees=100,sinr:epochs=20"},
    "rasters": {"method": "random-forest", "inputs": "environment", "trees": 100},
    "maxent": {"hinges": 5},
    "cnn": {"epochs": 8, "size": 32, "lr": 1e-3},
}
BY_RECORD = ("frequent", "neighbors", "random-forest", "sinr")
FIRST = "random-forest"
K = 30


def run() -> dict[str, Any]:
    """All worlds that are not done yet, then the tables."""
    tasks = {f"{seed}-{method}": (seed, method) for seed in SEEDS for method in QUICK}
    return summary(kept_arrays("land", tasks, answer_world))


def opened_world(seed: int) -> Opened:
    """A world, written once."""
    root = KEPT / "land" / f"world-{seed}"
    if not root.exists():
        geolifeclef.write_extent(root, EXTENT, "study", seed=seed)
    benchmark = BENCHMARKS["geolifeclef-2020"]
    return open_benchmark(benchmark, open_release(benchmark, root), seed=0)


def answer_world(task: tuple[int, str]) -> dict[str, Any]:
    """The log-probabilities of a method on test of one world; by a split of records as well for some."""
    seed, method = task
    opened = opened_world(seed)
    settings = {key: value for key, value in QUICK[method].items() if key != "method"}
    configured = configured_method(QUICK[method].get("method", method), settings).on_release(readable_inputs(opened))
    view = with_features(opened, configured)
    assert view.test is not None and view.val is not None
    truth = codes_of(opened, view.test)
    test = replace(view.test, targets=LabelTargets(truth))
    # Networks that choose an epoch keep val; everything else learns from it as well.
    final = view if method == "cnn" else view.with_val_in_train()
    kept: dict[str, Any] = {
        "truth": truth,
        "unit": quadrats(opened),
        "logs": answered(configured.method, final, test),
    }
    if method in BY_RECORD:
        everything = Part.concat([final.train, test])
        drawn = np.random.default_rng(seed).permutation(len(everything))
        some, others = np.sort(drawn[: len(test)]), np.sort(drawn[len(test) :])
        held = everything.take(some)
        kept["by_record"] = answered(configured.method, replace(final, train=everything.take(others)), held)
        kept["by_record_truth"] = held.truth
    return kept


def answered(method: Any, view: View, part: Part) -> NDArray[np.float32]:
    """Log-probabilities of every species."""
    fitted = method.fit(replace(view, test=None, unlabeled=None))
    found = fitted.predict(part.unlabeled(), view.labels)
    scores: NDArray[np.float32] = found.scores
    return scores


def codes_of(opened: Opened, part: Part) -> NDArray[np.int32]:
    """The species of each test record."""
    rows = opened.truth["test"].rows
    label_of = dict(zip(rows["item_id"], rows["label"], strict=True))
    return opened.view.labels.encode([label_of[item] for item in part.item_ids])


def quadrats(opened: Opened) -> NDArray[np.int32]:
    """The quadrat of each test record, numbered from 0."""
    return np.unique(np.array(opened.truth["test"].units), return_inverse=True)[1].astype(np.int32)


def scores_of(logs: NDArray[Any], truth: NDArray[np.int32], unit: NDArray[np.int32]) -> dict[str, tuple[float, Any]]:
    """Adaptive top-30 and top-30, each with its values without each quadrat."""
    sets = adaptive_sets([logs], truth, k=K)
    hit = (np.argsort(-logs, axis=1, kind="stable")[:, :K] == truth[:, None]).any(axis=1).astype(np.float64)
    return {
        "adaptive_top_30": (adaptive_accuracy(sets), adaptive_accuracy_without_each_unit(sets, unit)),
        "top_30": (float(hit.mean()), mean_without_each_unit(hit, unit)),
    }


def summary(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Values of each world with intervals, means over worlds, and differences from the forest."""
    worlds: list[dict[str, Any]] = []
    for seed in SEEDS:
        stored = {method: answers[f"{seed}-{method}"] for method in sorted(QUICK)}
        logs = {name: one["logs"].astype(np.float64) for name, one in stored.items()}
        both = np.log((np.exp(normalized(logs["cnn"])) + np.exp(normalized(logs["rasters"]))) / 2)
        logs["mean of cnn and rasters"] = both
        first = next(iter(stored.values()))
        truth, unit = first["truth"], first["unit"]
        mark = json.loads((KEPT / "land" / f"world-{seed}" / "WORLD.json").read_text())
        world: dict[str, Any] = {"seed": seed, "records": len(truth), "quadrats": int(unit.max()) + 1}
        world["best_possible"] = mark["best_possible"]
        world["methods"] = compared(logs, truth, unit)
        world["optimism"] = {name: optimism(one) for name, one in stored.items() if "by_record" in one.files}
        worlds.append(world)
    return {"about": __doc__, "simulated": True, "worlds": worlds, "means": means_over(worlds)}


def normalized(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-probabilities that sum to one."""
    shifted = logs - logs.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def compared(logs: dict[str, Any], truth: NDArray[np.int32], unit: NDArray[np.int32]) -> dict[str, Any]:
    """Each method with intervals by quadrat, and its paired difference from the forest."""
    found = {name: scores_of(one, truth, unit) for name, one in logs.items()}
    said: dict[str, Any] = {}
    for name, values in found.items():
        said[name] = {}
        for metric, (value, without) in values.items():
            own = pseudo_values(value, without)
            bounds = interval(value, own, proportion=True)
            said[name][metric] = _rounded(value, bounds.low, bounds.high)
            if name != FIRST and FIRST in found:
                other, left = found[FIRST][metric]
                pair = np.stack([own, pseudo_values(other, left)])
                apart = compare(np.array([value, other]), pair, higher_is_better=True).differences[0]
                said[name][f"{metric}_less_forest"] = _rounded(apart.value, apart.interval.low, apart.interval.high)
    return said


def optimism(stored: Any) -> dict[str, float]:
    """How much higher a score on records drawn at random is than that on whole quadrats."""
    own = np.arange(len(stored["by_record_truth"]), dtype=np.int32)
    blocks = scores_of(stored["logs"].astype(np.float64), stored["truth"], stored["unit"])
    records = scores_of(stored["by_record"].astype(np.float64), stored["by_record_truth"], own)
    return {metric: round(records[metric][0] - blocks[metric][0], 4) for metric in blocks}


def means_over(worlds: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over worlds, with t intervals over worlds."""
    names = dict.fromkeys(name for world in worlds for name in world["methods"])
    found: dict[str, Any] = {}
    for name in names:
        found[name] = {}
        for metric in ("adaptive_top_30", "top_30", "adaptive_top_30_less_forest", "top_30_less_forest"):
            values = [world["methods"][name][metric][0] for world in worlds if metric in world["methods"].get(name, {})]
            if values:
                found[name][metric] = _mean(values)
        for metric in ("adaptive_top_30", "top_30"):
            values = [world["optimism"][name][metric] for world in worlds if name in world["optimism"]]
            if values:
                found[name][f"optimism_{metric}"] = _mean(values)
    return found


def _mean(values: list[float]) -> list[float | None]:
    mean = float(np.mean(values))
    if len(values) < 2:
        return _rounded(mean, None, None)
    bounds = interval(mean, np.array(values), bounds=(-1e9, 1e9))
    return _rounded(mean, bounds.low, bounds.high)


def _rounded(*numbers: float | None) -> list[float | None]:
    return [None if one is None else round(float(one), 4) for one in numbers]
