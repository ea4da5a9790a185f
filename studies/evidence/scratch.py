"""A small network without pre-training, on small worlds, beside a linear head on random features (simulated)."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import fieldmark
from studies.evidence.results import rounded

SEEDS = (0, 1)


def run() -> dict[str, Any]:
    """Scores of both on the same test photos of each world, and how long the training took."""
    worlds = []
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            world = Path(folder, "world")
            fieldmark.world("folder", world, size="small", seed=seed)
            start = time.perf_counter()
            trained = fieldmark.fit("folder", world, "finetune", Path(folder, "net"), settings={"recipe": "scratch"})
            seconds = time.perf_counter() - start
            settings = {"weights": "random", "size": 64}
            linear = fieldmark.fit("folder", world, "linear", Path(folder, "linear"), settings=settings)
        worlds.append(
            {
                "seed": seed,
                "items": trained.scorecard.items,
                "scratch": rounded(trained.scorecard),
                "linear": rounded(linear.scorecard),
                "of_3_minutes": round(seconds / 180, 2),
            }
        )
        print(worlds[-1], flush=True)
    return {"simulated": True, "epochs": trained.run.options["epochs"], "worlds": worlds}
