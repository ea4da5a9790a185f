"""The baselines on birds_cub_odd (the odd-numbered species of CUB-200-2011) with its official split."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import fieldmark
from studies.evidence.results import real_data, rounded

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "frequent": ("frequent", {}),
    "centroid, Lite0, 160 px": ("centroid", {"size": 160}),
    "knn, Lite0, 160 px": ("knn", {"size": 160}),
    "linear, Lite0, 160 px": ("linear", {"size": 160}),
    "linear, random Lite0, 160 px": ("linear", {"size": 160, "weights": "random"}),
    "linear, Lite0, 224 px": ("linear", {}),
}


def run() -> dict[str, Any] | None:
    """Scores of each baseline on the official test photos."""
    data = real_data("birds_cub_odd")
    if data is None:
        return None
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (method, settings) in RUNS.items():
            result = fieldmark.fit("folder", data, method, Path(folder, method), settings=settings, overwrite=True)
            rows[name] = {
                "metrics": rounded(result.scorecard),
                "options": result.run.options,
                "trained_on": result.run.trained_on,
            }
            print(name, rows[name]["metrics"]["top_1"], flush=True)
    card = result.scorecard
    return {"simulated": False, "items": card.items, "classes": card.classes, "rows": rows}
