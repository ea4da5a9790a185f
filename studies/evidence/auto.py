"""`fit --method auto` against `linear` with its defaults, on real photos and clips: what ten minutes buy.

One cell for each set and seed: `linear` and `auto` on the same parts, their paired difference on test, whether auto's
own estimate held the score on test, the 10 single chains that were best on the folds fitted and scored as well
(regret), and the best score over time. Seeds draw the parts of fungi, Amanita (by specimen) and clips (by source
recording); birds, snakes and camera traps keep the test of their source, and seeds draw val (not for snakes, which have
one) and folds. Nothing is chosen on test. Ten minutes on one thread; features of later seeds were at hand but for those
in second order, and other work shared the machine in part. Cells that tried more than 140 chains were made after three
scales (`views=scales`) had become candidates, by folds of train; the others before. The estimate for snakes comes from
the val of their source; val and test are the same in all seeds, so that these estimates hold or fail together. BirdNET
may have heard the clips. The best single chain in hindsight is the luckiest of many: regret is also given against the
one that the folds would have chosen, and against the best in the mean of all seeds among those that are in the first
ten of every seed.

    python -m studies.evidence.auto --processes 8 --store FEATURES --cells CELLS   makes what is missing, and sums up
    python -m studies.evidence auto                                                sums up what is there

A cell that is there is not made again. Features are read from and written to the store.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from studies.evidence.results import RESULTS, real_data, write_result

if TYPE_CHECKING:
    from fieldmark.scoring import Scorecard

SEEDS = (0, 1, 2, 3, 4)
# Under which names the folders of links are laid out (`studies.evidence.suites`), small sets first.
SETS = {
    "camera_traps_jura": "camera_traps",
    "birds_chipnotes": "chipnotes",
    "fungi_amanita": "amanita",
    "fungi_genera": "fungi_genera",
    "snakes_philippines": "snakes_philippines",
    "birds_cub_odd": "birds_cub_odd",
}
METRICS = ("macro_f1_all", "top_1")
SINGLES = 10
CELLS = RESULTS / "auto"
REGRETS = ("regret_in_hindsight", "regret_first_by_folds", "regret_best_in_mean")


@dataclass(frozen=True)
class Job:
    """One cell: a set with a seed, and where things lie."""

    name: str
    seed: int
    root: Path
    store: Path | None
    cells: Path
    minutes: float

    @property
    def path(self) -> Path:
        return self.cells / f"{self.name}-{self.seed}.json"


def run() -> dict[str, Any] | None:
    """Sums up the cells that are there."""
    cells = [json.loads(path.read_text()) for path in sorted(CELLS.glob("*.json"))]
    return summary(cells) if cells else None


def make_cell(job: Job) -> str:
    """Makes one cell and writes it."""
    from fieldmark.fitting import Auto, fit
    from fieldmark.storage.files import write_json

    data, scratch = job.root / SETS[job.name], job.root / "runs" / f"{job.name}-{job.seed}"
    given: dict[str, Any] = {"seed": job.seed, "store": job.store, "overwrite": True}
    plain = {"output": "features"}  # as `linear` had them by default before there was `auto`
    default = fit("folder", data, "linear", scratch / "linear", settings=plain, **given)
    found = fit("folder", data, "auto", scratch / "auto", auto=Auto(minutes=job.minutes), **given)
    told = json.loads((scratch / "auto" / "auto.json").read_text())
    singles = {}
    searched = json.loads((scratch / "auto" / "search.json").read_text())
    for row in sorted(searched["rows"], key=lambda one: one[searched["metric"]], reverse=True)[:SINGLES]:
        single = fit("folder", data, row["chain"], scratch / "single", **given)
        singles[row["chain"]] = {metric: single.scorecard.metrics[metric].value for metric in METRICS}
    estimate, decided = told["estimate"], told["metric"]
    reached = found.scorecard.metrics[decided].value
    held = None if not estimate or estimate["low"] is None else estimate["low"] <= reached <= estimate["high"]
    cell = {
        "set": job.name,
        "seed": job.seed,
        "test_units": found.scorecard.units,
        "linear": {metric: default.scorecard.metrics[metric].value for metric in METRICS},
        "auto": {metric: found.scorecard.metrics[metric].value for metric in METRICS},
        "difference": {metric: difference(found.scorecard, default.scorecard, metric) for metric in METRICS},
        "decides": decided,
        "estimate": estimate,
        "estimate_held": held,
        "singles": singles,
        "weights": told["weights"],
        "minutes": job.minutes,
        "seconds": found.run.seconds,
        "curve": told["curve"],
        "tried": sum(one["folds"] > 0 for one in told["tried"]),
        "not_tried": sum(one["folds"] == 0 for one in told["tried"]),
    }
    write_json(job.path, cell)
    shutil.rmtree(scratch, ignore_errors=True)
    return f"{job.name} {job.seed}: linear {cell['linear']}, auto {cell['auto']}, estimate held: {held}"


def difference(found: Scorecard, default: Scorecard, metric: str) -> list[float | None]:
    """The score of auto minus that of linear on the same units, with the paired interval."""
    from fieldmark.stats.comparison import compare

    assert found.unit_ids == default.unit_ids
    cards = (found, default)
    values = np.array([card.metrics[metric].value for card in cards])
    one = compare(values, np.stack([card.pseudo[metric] for card in cards])).differences[0]
    return [one.value, one.interval.low, one.interval.high]


def summary(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over sets, which count alike, and how often estimates held."""
    sets = {name: [cell for cell in cells if cell["set"] == name] for name in SETS}
    sets = {name: own for name, own in sets.items() if own}
    held = [cell["estimate_held"] for cell in cells if cell["estimate_held"] is not None]
    by_set = {name: _summed(own) for name, own in sets.items()}
    means: dict[str, dict[str, Any]] = {}
    for key in ("difference", *REGRETS):
        of_sets = {metric: [one[key][metric] for one in by_set.values()] for metric in METRICS}
        known = {metric: [value for value in values if value is not None] for metric, values in of_sets.items()}
        means[key] = {metric: round(float(np.mean(values)), 4) for metric, values in known.items()}
        means[f"{key}_over_sets"] = {metric: _t_interval(values) for metric, values in known.items()}
    return {
        "simulated": False,
        "about": " ".join(str(__doc__).split("\n\n")[1].split()),
        "cells": len(cells),
        "estimates": {"held": int(sum(held)), "of": len(held)},
        "means_over_sets": means,
        "sets": by_set,
        "rows": cells,
    }


def _summed(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """One set: means over its seeds, with the spread."""
    every = set.intersection(*(set(cell["singles"]) for cell in cells))
    row: dict[str, Any] = {"seeds": len(cells), "difference": {}, **{name: {} for name in REGRETS}}
    for metric in METRICS:
        differences = [cell["difference"][metric][0] for cell in cells]
        row["difference"][metric] = round(float(np.mean(differences)), 4)
        row.setdefault("each", {})[metric] = [round(one, 4) for one in differences]
        reached = np.array([cell["auto"][metric] for cell in cells])
        luckiest = np.array([max(one[metric] for one in cell["singles"].values()) for cell in cells])
        row["regret_in_hindsight"][metric] = round(float((luckiest - reached).mean()), 4)
        first = np.array([next(iter(cell["singles"].values()))[metric] for cell in cells])  # in the order of folds
        row["regret_first_by_folds"][metric] = round(float((first - reached).mean()), 4)
        best = max((np.mean([cell["singles"][chain][metric] for cell in cells]) for chain in every), default=None)
        row["regret_best_in_mean"][metric] = None if best is None else round(float(best - reached.mean()), 4)
    return row


def _t_interval(values: list[float]) -> list[float] | None:
    """The 95 % t interval of the mean of sets; None of one alone."""
    if len(values) < 2:
        return None
    half = float(stdtrit(len(values) - 1, 0.975) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return [round(float(np.mean(values)) + sign * half, 4) for sign in (-1, 1)]


def main() -> None:
    """Makes the missing cells with several processes, each with two threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--cells", type=Path, default=CELLS)
    parser.add_argument("--root", type=Path, required=True, help="a folder for links and runs")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    asked = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before the processes import numpy
        os.environ[name] = str(asked.threads)
    from studies.evidence.suites import lay_out

    if any(real_data(name) is None for name in asked.sets):
        return
    asked.root.mkdir(parents=True, exist_ok=True)
    asked.cells.mkdir(parents=True, exist_ok=True)
    if not (asked.root / "fungi_genera").exists():
        lay_out(asked.root)
    jobs = [
        Job(name, seed, asked.root, asked.store, asked.cells, asked.minutes)
        for seed in asked.seeds
        for name in asked.sets
    ]
    missing = [job for job in jobs if not job.path.exists()]
    with ProcessPoolExecutor(asked.processes, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(make_cell, job) for job in missing]):
            print(done.result(), flush=True)
    cells = [json.loads(job.path.read_text()) for job in jobs if job.path.exists()]
    print("result in", write_result("auto", summary(cells)))


if __name__ == "__main__":
    main()
