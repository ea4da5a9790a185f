"""Unequal costs: least expected cost against the likeliest label, on five worlds (simulated) and on real genera.

The genera of `fungi_genera` are called poisonous where `mushroom_uci` flags more than half of the species of the family
it files the genus under. That is an illustration: a genus is neither edible nor poisonous, and nobody should eat by it.
"""

from __future__ import annotations

import csv
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fieldmark
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.predictions import read_predictions
from fieldmark.steps.costs import Prices, costs_by_rule
from fieldmark.tables.labels import UNKNOWN_NAME, Labels
from fieldmark_worlds.layouts.fungitastic_posterior import open_posterior
from studies.evidence.results import real_data, rounded

SEEDS, SIZE = range(5), "tiny"
C_P = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
# How `mushroom_uci` calls the families of genera that it does not name them after.
FAMILIES = {
    "Agaricus": "Mushroom Family",
    "Boletus": "Bolete Family",
    "Suillus": "Bolete Family",
    "Hygrocybe": "Wax Gill Family",
    "Lactarius": "Russula Family",
}
RUNS: dict[str, dict[str, dict[str, Any]]] = {
    "fungitastic/cost-poison": {"arg-max": {"method": "linear"}, "min-cost": {"method": "min-cost"}},
    "fungitastic/cost-unknown": {
        "arg-max": {"method": "linear"},
        "threshold from val": {"method": "openset"},
        "min-cost": {"method": "min-cost"},
        "min-cost, score chosen on val": {"method": "min-cost", "score": "all"},
    },
}


def run() -> dict[str, Any]:
    """Costs and accuracy of each decision on each world, beside the least that the traits allow."""
    result: dict[str, Any] = {"size": SIZE, "c_p": list(C_P), "worlds": [_world(seed) for seed in SEEDS]}
    genera = _genera()
    return result | ({} if genera is None else {"genera": genera})


def _world(seed: int) -> dict[str, Any]:
    row: dict[str, Any] = {"seed": seed, "simulated": True, "benchmarks": {}}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "world")
        fieldmark.world("fungitastic", root, size=SIZE, seed=seed)
        for benchmark, runs in RUNS.items():
            found: dict[str, Any] = {"runs": {}}
            for name, settings in runs.items():
                chosen = {"size": 160} | {key: value for key, value in settings.items() if key != "method"}
                out = Path(folder, f"{benchmark}-{name}")
                result = fieldmark.fit(benchmark, root, settings["method"], out, settings=chosen)
                found["runs"][name] = rounded(result.scorecard)
            found["bound"] = round(_bound(seed, benchmark, result.model.taxa), 4)
            row["benchmarks"][benchmark] = found
        poison = Path(folder, "fungitastic/cost-poison-min-cost")
        row["curve"] = _curve(read_predictions(poison / "predictions" / "test.parquet"), root, result.model.taxa)
    costs = {name: b["runs"] for name, b in row["benchmarks"].items()}
    print(seed, {k: {r: next(iter(m.values()))[0] for r, m in runs.items()} for k, runs in costs.items()}, flush=True)
    return row


def _bound(seed: int, benchmark: str, taxa: Any, prices: Prices | None = None) -> float:
    """The expected cost of the best decision that knows the traits: no classifier of pixels can be expected below."""
    posterior = open_posterior(SIZE, seed)
    labels = Labels(posterior.labels)
    poisonous = dict(taxa.select("label", "poisonous").iter_rows())
    dangerous = np.array([bool(poisonous.get(name)) for name in labels.names])
    costs = costs_by_rule(benchmark.removeprefix("fungitastic/cost-"), labels, dangerous, prices)
    return float(costs.expected(posterior.probabilities).min(axis=1).mean())


def _curve(predictions: LabelScores, root: Path, taxa: Any) -> dict[str, list[list[float]]]:
    """Cost and top-1 of both decisions for each c_p, from one and the same stored predictions."""
    from fieldmark.benchmarks import BENCHMARKS
    from fieldmark.releases import open_dataset
    from fieldmark.views.open_benchmark import open_benchmark

    truth = open_benchmark(BENCHMARKS["fungitastic/cost-poison"], open_dataset("fungitastic", root)).truth["test"]
    label_of = dict(truth.rows.iter_rows())
    known = len(predictions.labels)
    labels = Labels((*predictions.labels.names, UNKNOWN_NAME))
    codes = labels.encode([label_of[item] for item in predictions.items])
    poisonous = dict(taxa.select("label", "poisonous").iter_rows())
    dangerous = np.array([bool(poisonous.get(name)) for name in labels.names])
    p = predictions.probabilities()
    if p.shape[1] == known:  # unknown may be answered, but nothing gave it a probability
        p = np.column_stack([p, np.zeros(len(p), p.dtype)])
    rules: dict[str, Callable[[Any], Any]] = {
        "arg-max": lambda costs: p[:, :known].argmax(axis=1),
        "min-cost": lambda costs: costs.best(p),
    }
    found: dict[str, list[list[float]]] = {name: [] for name in rules}
    for c_p in C_P:
        costs = costs_by_rule("poison", labels, dangerous, Prices(c_p=c_p))
        for name, rule in rules.items():
            answers = rule(costs)
            paid = float(costs.matrix[codes, answers].mean())
            found[name].append([round(paid, 4), round(float((answers == codes).mean()), 4)])
    return found


def _genera() -> dict[str, Any] | None:
    data, flags = real_data("fungi_genera"), real_data("mushroom_uci")
    if data is None or flags is None:
        return None
    poisonous = flagged_genera(flags, sorted(path.name for path in data.iterdir() if path.is_dir()))
    rows: dict[str, list[Any]] = {"arg-max": [], "min-cost": []}
    with tempfile.TemporaryDirectory() as folder:
        prices = Path(folder, "prices.csv")
        lines = [f"{t},{a},{_price(poisonous[t], poisonous[a])}" for t in poisonous for a in poisonous]
        prices.write_text("\n".join(["true,predicted,cost", *lines]) + "\n")
        for seed in SEEDS:
            out = Path(folder, f"run-{seed}")
            settings = {"cost": str(prices), "size": 160}
            fieldmark.fit("folder", data, "min-cost", out, settings=settings, seed=seed)
            predictions = read_predictions(out / "predictions" / "test.parquet")
            label_of = dict(_test_labels(data, seed))
            truth = np.array([label_of[item] for item in predictions.items])
            names = np.array(predictions.labels.names)
            for name, codes in (("arg-max", predictions.scores.argmax(axis=1)), ("min-cost", predictions.top(1)[:, 0])):
                answers = names[codes]
                pairs = list(zip(truth, answers, strict=True))
                missed = sum(poisonous[t] and not poisonous[a] for t, a in pairs)
                alarm = sum(poisonous[a] and not poisonous[t] for t, a in pairs)
                rows[name].append(
                    {
                        "cost": round((100 * missed + alarm) / len(pairs), 4),
                        "top_1": round(float((truth == answers).mean()), 4),
                        "poisonous_taken_for_harmless": missed,
                        "photos": len(pairs),
                    }
                )
    print("genera", {name: [one["cost"] for one in many] for name, many in rows.items()}, flush=True)
    return {"simulated": False, "poisonous": [name for name, bad in poisonous.items() if bad], "rows": rows}


def _price(poisonous: bool, said_poisonous: bool) -> int:
    return 0 if poisonous == said_poisonous else 100 if poisonous else 1


def _test_labels(data: Path, seed: int) -> list[tuple[str, str]]:
    from fieldmark.benchmarks import BENCHMARKS
    from fieldmark.releases import open_dataset
    from fieldmark.views.open_benchmark import open_benchmark

    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", data), seed=seed)
    return list(opened.truth["test"].rows.iter_rows())


def flagged_genera(folder: Path, genera: list[str]) -> dict[str, bool]:
    """For each genus whether `mushroom_uci` flags more than half of the species of its family as poisonous."""
    counts: dict[str, Counter[bool]] = {}
    with (folder / "primary_data_edited.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter=";"):
            counts.setdefault(row["family"], Counter())[row["class"] == "p"] += 1
    of = {genus: counts[FAMILIES.get(genus, f"{genus} Family")] for genus in genera}
    return {genus: count[True] > count[False] for genus, count in of.items()}
