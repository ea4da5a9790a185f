"""The baselines on worlds of five seeds, beside what the exact posterior given the traits reaches (simulated)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import fieldmark
from studies.evidence.results import rounded

SEEDS = range(5)
SIZES = ("tiny", "small")
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "frequent": ("frequent", {}),
    "centroid": ("centroid", {"size": 160}),
    "knn": ("knn", {"size": 160}),
    "linear": ("linear", {"size": 160}),
    "centroid, random features": ("centroid", {"size": 160, "weights": "random"}),
    "linear, random features": ("linear", {"size": 160, "weights": "random"}),
}


def run() -> dict[str, Any]:
    """Scores of each baseline on each world."""
    rows = []
    for size in SIZES:
        for seed in SEEDS:
            with tempfile.TemporaryDirectory() as folder:
                mark = fieldmark.world("folder", Path(folder, "world"), size=size, seed=seed)
                row: dict[str, Any] = {"size": size, "seed": seed, "best_possible": mark["best_possible"], "runs": {}}
                for name, (method, settings) in RUNS.items():
                    out = Path(folder, "runs", name)
                    result = fieldmark.fit("folder", Path(folder, "world"), method, out, settings=settings)
                    row["runs"][name] = rounded(result.scorecard)
                rows.append(row)
                print(size, seed, {name: metrics["top_1"][0] for name, metrics in row["runs"].items()}, flush=True)
    return {"simulated": True, "worlds": rows}
