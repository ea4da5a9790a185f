"""Sheets and field photos in five tiny worlds.

Simulated. Ten invented species each, four of them with field photos; two observations of each species are asked about.
Means over worlds of five seeds, with intervals over worlds; the methods' own settings on frozen features of
EfficientNet-Lite0, none chosen here. `finetune` trains the same network for ten epochs at 128 px, fixed beforehand.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import fieldmark
from fieldmark.stats.comparison import compare
from fieldmark.stats.intervals import interval
from fieldmark_worlds.layouts import plantclef
from studies.evidence.results import read_result, write_result

SEEDS = range(5)
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("linear", {}),
    "prototypes": ("prototypes", {}),
    "align": ("align", {}),
    "finetune": ("finetune", {"network": "efficientnet_lite0", "size": 128, "epochs": 10, "batch": 16, "workers": 1}),
}


def run() -> dict[str, Any]:
    """Every method on every world; what is there already is not computed again."""
    result = read_result("plant_worlds") or {"worlds": {}}
    about = " ".join(str(__doc__).split("\n\n", 1)[1].split())
    for seed in SEEDS:
        done = result["worlds"].setdefault(str(seed), {})
        if set(done) >= set(METHODS):
            continue
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "world"
            plantclef.write(root, seed=seed)
            for name, (method, settings) in METHODS.items():
                if name not in done:
                    out = Path(folder) / name
                    card = fieldmark.fit("plantclef-2020", root, method, out, settings=settings).scorecards["test"]
                    done[name] = {metric: score.value for metric, score in card.metrics.items()}
        result = {"simulated": True, "about": about, "worlds": result["worlds"]}
        result["methods"] = _summary(result["worlds"])
        write_result("plant_worlds", result)
    return result


def _summary(worlds: dict[str, dict[str, dict[str, float]]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    full = [done for done in worlds.values() if set(done) >= set(METHODS)]
    linear = np.array([done["linear"]["mrr_rare"] for done in full])
    for name in METHODS:
        values = {metric: np.array([done[name][metric] for done in full]) for metric in ("mrr", "mrr_rare")}
        table[name] = {metric: _with_interval(own) for metric, own in values.items()}
        table[name]["over linear"] = None
        if name != "linear" and len(full) > 1:
            pair = np.stack([values["mrr_rare"], linear])
            apart = compare(pair.mean(axis=1), pair).differences[0]
            bounds = (apart.value, apart.interval.low, apart.interval.high)
            table[name]["over linear"] = [None if number is None else round(number, 4) for number in bounds]
    return table


def _with_interval(values: Any) -> list[float | None]:
    around = interval(float(values.mean()), values)
    bounds = (float(values.mean()), around.low, around.high)
    return [None if number is None else round(number, 4) for number in bounds]
