"""Scoring at the size of the FungiTastic test set: 97,551 rows and 2,829 classes; ratios of seconds of processors."""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.metrics import f1_score

import fieldmark
from fieldmark.metrics.classification import macro_f1, macro_f1_without_each_unit
from fieldmark.runs.lines import TableRun
from fieldmark.runs.ranked import Ranked
from fieldmark.stats.intervals import interval, pseudo_values
from fieldmark.tables.labels import Labels
from studies.perf.timing import fastest

Codes = NDArray[np.int32]
ROWS, CLASSES, UNITS = 97_551, 2_829, 50_085


def run() -> dict[str, Any]:
    """Ratios to scikit-learn, and the share of a second that reading and scoring a run file takes."""
    rng = np.random.default_rng(0)
    abundance = np.arange(1, CLASSES + 1.0) ** -1.0
    truth = rng.choice(CLASSES, ROWS, p=abundance / abundance.sum()).astype(np.int32)
    predicted = np.where(rng.random(ROWS) < 0.7, truth, rng.integers(0, CLASSES, ROWS)).astype(np.int32)
    unit = np.unique(rng.integers(0, UNITS, ROWS), return_inverse=True)[1].astype(np.int32)

    def ours() -> None:
        value = macro_f1(truth, predicted, n_classes=CLASSES, over="all")
        left_out = macro_f1_without_each_unit(truth, predicted, unit, n_classes=CLASSES, over="all")
        interval(value, pseudo_values(value, left_out))

    times = fastest(
        {
            "ours": ours,
            "peer": lambda: f1_score(truth, predicted, labels=np.arange(CLASSES), average="macro", zero_division=0),
            "value": lambda: macro_f1(truth, predicted, n_classes=CLASSES, over="all"),
        },
        rounds=15,
        clock=time.process_time,
    )
    return {
        "rows": ROWS,
        "classes": CLASSES,
        "sklearn_value_over_our_value": round(times["peer"] / times["value"], 1),
        "sklearn_value_over_our_value_and_interval": round(times["peer"] / times["ours"], 2),
        "bootstrap_of_1000_sklearn_values_over_ours": round(1000 * times["peer"] / times["ours"]),
        "bootstrap_of_1000_of_our_values_over_ours": round(1000 * times["value"] / times["ours"], 1),
        "run_file_seconds_of_1_allowed": round(_run_file(truth, predicted), 2),
        **_whole_scorecard(truth, predicted, unit, times["peer"]),
    }


def _whole_scorecard(truth: Codes, predicted: Codes, unit: Codes, peer_s: float) -> dict[str, Any]:
    """All five metrics of `fungitastic/closed` with their intervals, from frames, beside one value of scikit-learn."""
    items = [f"{row}-{row * 7}.JPG" for row in range(ROWS)]
    answers = [f"{code} {(code + 1) % CLASSES} {(code + 2) % CLASSES}" for code in predicted.tolist()]
    tables: dict[str, Any] = {
        "truth": pl.DataFrame({"id": items, "label": map(str, truth.tolist()), "unit": map(str, unit.tolist())}),
        "classes": pl.DataFrame({"label": [str(code) for code in range(CLASSES)]}),
    }
    run = pl.DataFrame({"id": items, "predicted": answers})
    whole = fastest({"ours": lambda: fieldmark.score("fungitastic/closed", run, **tables)}, clock=time.process_time)[
        "ours"
    ]
    from_csv = _from_csv({"run": run, **tables}, truth, predicted)
    tracemalloc.start()
    predictions = Ranked(at_most=10).read(TableRun(run), items, Labels(tuple(map(str, range(CLASSES)))))
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(predictions.items) == ROWS  # they are held until here
    return {
        "whole_scorecard_from_frames_over_one_sklearn_value": round(whole / peer_s, 1),
        "whole_scorecard_from_csv_over_one_sklearn_value_cpu": round(from_csv, 2),
        "predictions_held_mb": round(held / 1e6, 1),
        "predictions_peak_mb": round(peak / 1e6, 1),
    }


def _from_csv(tables: dict[str, pl.DataFrame], truth: Codes, predicted: Codes) -> float:
    """The same from CSV files, in seconds of processors over those of one value of scikit-learn."""
    with tempfile.TemporaryDirectory() as folder:
        paths: dict[str, Any] = {name: Path(folder, f"{name}.csv") for name in tables}
        for name, table in tables.items():
            table.write_csv(paths[name])
        run = paths.pop("run")
        classes = np.arange(CLASSES)
        jobs: dict[str, Callable[[], object]] = {
            "ours": lambda: fieldmark.score("fungitastic/closed", run, **paths),
            "peer": lambda: f1_score(truth, predicted, labels=classes, average="macro", zero_division=0),
        }
        seconds = fastest(jobs, rounds=15, clock=time.process_time)
    return seconds["ours"] / seconds["peer"]


def _run_file(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Seconds to read, check and score a run file of that size, the fastest of three."""
    labels, items = Labels(tuple(map(str, range(CLASSES)))), [f"{row}-{row * 7}.JPG" for row in range(ROWS)]
    second, third = (predicted + 1) % CLASSES, (predicted + 2) % CLASSES
    lines = [f"{item},{a} {b} {c}\n" for item, a, b, c in zip(items, predicted, second, third, strict=True)]
    times = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.csv")
        path.write_text("id,predicted\n" + "".join(lines))
        for _ in range(3):
            start = time.perf_counter()
            ranked = Ranked(at_most=10).read(path, items, labels).top(3)
            macro_f1(truth, ranked[:, 0], n_classes=CLASSES, over="all")
            times.append(time.perf_counter() - start)
    return min(times)
