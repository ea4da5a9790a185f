"""The baselines on fungi_genera (nine genera, 540 field photos) over five drawn splits."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import fieldmark
from studies.evidence.results import real_data, rounded

SEEDS = range(5)
METHODS = ("frequent", "centroid", "knn", "linear")


def run() -> dict[str, Any] | None:
    """Scores of each baseline for each seed of the split."""
    data = real_data("fungi_genera")
    if data is None:
        return None
    rows: dict[str, list[dict[str, Any]]] = {method: [] for method in METHODS}
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            for method in METHODS:
                out = Path(folder, f"{method}-{seed}")
                rows[method].append(rounded(fieldmark.fit("folder", data, method, out, seed=seed).scorecard))
    return {"simulated": False, "seeds": list(SEEDS), "rows": rows}
