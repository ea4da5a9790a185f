"""Few labels on tiny worlds of Semi-iNat over five seeds: methods on the same frozen features (simulated)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

import fieldmark
from fieldmark.features.store import default_store
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.fit_part import shown_to, with_features
from fieldmark.views.open_benchmark import open_benchmark
from studies.evidence.semi import SIZE_PX, method_of

WORLD_SIZE = "tiny"
WORLD_SEEDS = (0, 1, 2, 3, 4)
WORLD_METHODS = ("supervised", "oracle", "pseudo-label", "pseudo-label-coarse", "fixmatch (features)", "self-training",
                 "label-propagation", "coarse")  # fmt: skip


def run() -> dict[str, Any]:
    """Simulated: small worlds of Semi-iNat over five seeds; paired differences over seeds."""
    from fieldmark_worlds import WORLDS

    kept = default_store().parent / "evidence" / "semi-worlds"
    kept.mkdir(parents=True, exist_ok=True)
    top_1: dict[str, list[float]] = {name: [] for name in WORLD_METHODS}
    for seed in WORLD_SEEDS:
        path = kept / f"{seed}.json"
        if not path.exists():
            root = kept / f"world-{seed}"
            if not root.exists():
                WORLDS["semi-inat-2021"](root, size=WORLD_SIZE, seed=seed)
            path.write_text(json.dumps(_on_world(root)))
        own = json.loads(path.read_text())
        print(seed, own, flush=True)
        for name in WORLD_METHODS:
            top_1[name].append(own[name])
    rows = {}
    for name, values in top_1.items():
        gaps = np.array(values) - np.array(top_1["supervised"])
        reach = float(student.ppf(0.975, len(gaps) - 1)) * float(gaps.std(ddof=1)) / len(gaps) ** 0.5
        ahead = [round(float(one), 4) for one in (gaps.mean(), gaps.mean() - reach, gaps.mean() + reach)]
        rows[name] = {"top_1": values, "mean_top_1": round(float(np.mean(values)), 4), "ahead_of_supervised": ahead}
    return {"simulated": True, "seeds": list(WORLD_SEEDS), "size": WORLD_SIZE, "rows": rows}


def _on_world(root: Path) -> dict[str, float]:
    benchmark = fieldmark.benchmark("semi-inat-2021")
    opened = open_benchmark(benchmark, fieldmark.dataset("semi-inat-2021", root))
    view = with_features(opened, configured_method("linear", {"size": SIZE_PX}))
    assert view.test is not None  # worlds have a test
    truth = dict(opened.truth["test"].rows.select("item_id", "label").iter_rows())
    codes = view.labels.encode([truth[one] for one in view.test.item_ids])
    found = {}
    for name in WORLD_METHODS:
        method = method_of(name)
        fitted = method.fit(shown_to(method, view, opened.hidden))
        found[name] = round(float((fitted.predict(view.test, view.labels).top(1)[:, 0] == codes).mean()), 4)
    return found
