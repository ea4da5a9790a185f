"""Methods and steps on worlds of soundscapes (simulated): five seeds, and how long the network takes."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.releases import open_dataset
from fieldmark.runs.predictions import read_predictions
from fieldmark.scoring import score_predictions
from fieldmark.steps import make_step, step_to_data
from fieldmark.steps.base import Lesson, apply_step, fit_step
from fieldmark.views.open_benchmark import Opened, open_benchmark
from studies.evidence.results import rounded

SEEDS = range(5)
SIZE = "tiny"
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "frequent": ("frequent", {}),
    "centroid, log-mel": ("centroid", {}),
    "linear, log-mel": ("linear", {}),
    # As many epochs as leave room within three minutes; tried on a world of another seed (11).
    "cnn": ("cnn", {"epochs": 20}),
}
STEPPED = ("linear, log-mel", "cnn")
VARIANTS: dict[str, tuple[str, ...]] = {
    "neighbors": ("neighbors",),
    "site prior": ("site-prior",),
    "season prior": ("season-prior",),
    "neighbors, site prior": ("neighbors", "site-prior"),
}


def run() -> dict[str, Any]:
    """Scores on test of each method, and of two of them after each step; steps are fitted on val."""
    worlds = []
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "world")
            fieldmark.world("birdclef-2020", root, size=SIZE, seed=seed)
            row: dict[str, Any] = {"seed": seed, "runs": {}, "seconds": {}, "steps": {}}
            benchmark = BENCHMARKS["birdclef-2020"]
            opened = open_benchmark(benchmark, open_dataset("birdclef-2020", root))
            for name, (method, settings) in METHODS.items():
                out = Path(folder, "runs", name.replace(", ", "-"))
                fit = partial(fieldmark.fit, "birdclef-2020", root, method, out, settings=settings, steps=[])
                result, row["seconds"][name] = _timed(fit)
                row["runs"][name] = rounded(result.scorecard)
                if name in STEPPED:
                    row["steps"][name] = {variant: _stepped(opened, out, steps) for variant, steps in VARIANTS.items()}
            worlds.append(row)
            print(seed, {name: card["cmap_expected"][0] for name, card in row["runs"].items()}, flush=True)
            for name, found in row["steps"].items():
                print("  ", name, {variant: one["cmap_expected"] for variant, one in found.items()}, flush=True)
            print("  ", row["seconds"], flush=True)
    return {"simulated": True, "size": SIZE, "worlds": worlds}


def _timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """The result, the time that passed and the time all cores together were busy with it."""
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    result = work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return result, {"wall": round(time.perf_counter() - wall, 1), "cores_together": round(busy, 1)}


def _stepped(opened: Opened, out: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """The score on test after steps that are fitted on val, and what they were fitted to."""
    val, test = (read_predictions(out / "predictions" / f"{part}.parquet") for part in ("val", "test"))
    view = opened.view
    assert view.val is not None and view.test is not None
    lesson = Lesson(opened.benchmark.task, view.labels, opened.dataset.taxa, view.val, view.train)
    chosen = []
    for name in names:
        step = fit_step(make_step(name), val, lesson)
        val, test = apply_step(step, val, view.val.items), apply_step(step, test, view.test.items)
        chosen.append({key: value for key, value in step_to_data(step).items() if key in ("step", "share", "weight")})
    card = score_predictions(opened.benchmark, test, opened.truth["test"], labels=view.labels)
    return {"cmap_expected": round(card.metrics["cmap_expected"].value, 4), "chosen": chosen}
