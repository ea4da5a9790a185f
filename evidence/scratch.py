"""A small network without pre-training, on a small world, beside a linear head on random features (simulated)."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import fieldmark
from evidence.results import rounded
from fieldmark.comparing import compare

SEED = 0


def run() -> dict[str, Any]:
    """Scores of both on the same test photos, the difference, and how long the training took."""
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder, "world")
        fieldmark.world("folder", world, size="small", seed=SEED)
        start = time.perf_counter()
        trained = fieldmark.fit("folder", world, "finetune", Path(folder, "scratch"), settings={"recipe": "scratch"})
        seconds = time.perf_counter() - start
        settings = {"weights": "random", "size": 64}
        linear = fieldmark.fit("folder", world, "linear", Path(folder, "linear"), settings=settings)
        compared = compare({"scratch": trained.scorecard, "linear": linear.scorecard}, metric="top_1")
        pair = compared.behind_best(1)
        assert pair is not None
    return {
        "simulated": True,
        "seed": SEED,
        "items": trained.scorecard.items,
        "rows": {
            "resnet10t from scratch, 64 px": rounded(trained.scorecard),
            "linear on random Lite0 features, 64 px": rounded(linear.scorecard),
        },
        "ahead": compared.names[0],
        "top_1_ahead_by": [pair.value, pair.interval.low, pair.interval.high],
        "of_3_minutes": round(seconds / 180, 2),
        "epochs": trained.run.options["epochs"],
    }
