"""Settings by cross-validation on train against the defaults, on real photos: paired differences on test.

Features are those of EfficientNet-Lite0 at its own size. The defaults are `linear` and `ridge` as they come, which
choose their penalty on val, and `knn` with its ten neighbors; searched are the settings that each method suggests
(`--search auto`, five folds by observation, copies together). Test is used for the scores alone. Where val was drawn
from train, as for birds and fungi, both models are fitted to train and val in the end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import fieldmark
from fieldmark.features.store import default_store
from fieldmark.fitting import Search
from fieldmark.runs.provenance import Run
from fieldmark.scoring import SCORECARD_FILE, Scorecard
from fieldmark.stats.comparison import compare
from studies.evidence.results import real_data, rounded

METHODS = ("linear", "ridge", "knn")
# Which sets, over which seeds of the drawn parts and of the folds.
SETS = {"fungi_genera": (0, 1, 2, 3, 4), "snakes_philippines": (0, 1, 2), "birds_cub_odd": (0,)}
METRICS = ("macro_f1_all", "top_1")


def run() -> dict[str, Any] | None:
    """For each set, seed and method: what val and cross-validation chose, both scores, and their difference."""
    rows = []
    for name, seeds in SETS.items():
        data = real_data(name)
        if data is None:
            return None
        rows += [_compared(name, data, method, seed) for seed in seeds for method in METHODS]
    return {"simulated": False, "about": " ".join(str(__doc__).split("\n\n")[1].split()), "rows": rows}


def _compared(name: str, data: Path, method: str, seed: int) -> dict[str, Any]:
    # An interrupted study goes on from there.
    kept = default_store().parent / "evidence" / "search" / f"{name}-{method}-{seed}"
    default = _fitted(data, method, seed, kept / "default", None)
    searched = _fitted(data, method, seed, kept / "searched", Search({}))
    chosen = searched[0].search or {}
    settings = list(chosen.get("chosen", {}))
    return {
        "set": name,
        "method": method,
        "seed": seed,
        "val_units": Scorecard.read(kept / "default" / "scorecard-val.json").units,
        "test_units": default[1].units,
        "default": {"settings": {key: default[0].options[key] for key in settings}, **rounded(default[1])},
        "searched": {"settings": chosen["chosen"], "trials": chosen["trials"], **rounded(searched[1])},
        "seconds": {"default": default[0].seconds, "searched": searched[0].seconds},
        "difference": {metric: _difference(searched[1], default[1], metric) for metric in METRICS},
    }


def _fitted(data: Path, method: str, seed: int, out: Path, search: Search | None) -> tuple[Run, Scorecard]:
    if not (out / SCORECARD_FILE).exists():
        fieldmark.fit("folder", data, method, out, seed=seed, search=search)
    return Run.read(out), Scorecard.read(out / SCORECARD_FILE)


def _difference(searched: Scorecard, default: Scorecard, metric: str) -> list[float | None]:
    """Searched minus default on the same test photos, with the paired interval."""
    assert searched.unit_ids == default.unit_ids
    cards = (searched, default)
    values = np.array([card.metrics[metric].value for card in cards])
    found = compare(values, np.stack([card.pseudo[metric] for card in cards])).differences[0]
    bounds = (found.value, found.interval.low, found.interval.high)
    return [None if number is None else round(number, 4) for number in bounds]
