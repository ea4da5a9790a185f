"""cmAP at the size of BirdCLEF 2020: 153 recordings of ten minutes, 18,360 segments, 960 classes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

from fieldmark.metrics.retrieval import cmap, cmap_dense, cmap_dense_without_each_unit, cmap_without_each_unit
from studies.perf.timing import fastest

RECORDINGS, SEGMENTS, CLASSES, LISTED = 153, 18_360, 960, 10


def run() -> dict[str, Any]:
    """Ratios to scikit-learn's average precision per class, and the seconds that an interval takes."""
    rng = np.random.default_rng(0)
    abundance = np.arange(1, CLASSES + 1.0) ** -1.0
    present = rng.random((SEGMENTS, CLASSES)) < 1.9 * abundance / abundance.sum()
    present[rng.integers(0, SEGMENTS, CLASSES), np.arange(CLASSES)] = True
    score = (rng.random((SEGMENTS, CLASSES)) + 0.5 * present).astype(np.float32)
    segments, classes = (column.astype(np.int32) for column in np.nonzero(present))
    truth = segments, classes
    unit = np.repeat(np.arange(RECORDINGS, dtype=np.int32), SEGMENTS // RECORDINGS)

    best = np.argpartition(score, CLASSES - LISTED, axis=1)[:, -LISTED:]
    segment, cls = np.repeat(np.arange(SEGMENTS, dtype=np.int32), LISTED), best.ravel().astype(np.int32)
    run_file = segment, cls, score[segment, cls]

    def peer() -> float:
        return float(np.mean([average_precision_score(present[:, c], score[:, c]) for c in range(CLASSES)]))

    assert abs(peer() - cmap_dense(score, *truth, ties="grouped")) < 1e-12
    jobs = {"peer": peer, "dense": lambda: cmap_dense(score, *truth), "sparse": lambda: cmap(*run_file, *truth)}
    times = fastest(jobs, rounds=3)
    start = time.perf_counter()
    cmap_dense_without_each_unit(score, *truth, unit)
    dense_done = time.perf_counter()
    cmap_without_each_unit(*run_file, *truth, unit)
    return {
        "segments": SEGMENTS,
        "classes": CLASSES,
        "recordings": RECORDINGS,
        "sklearn_over_ours_full_matrix": round(times["peer"] / times["dense"], 1),
        "sklearn_over_ours_ten_per_segment": round(times["peer"] / times["sparse"], 1),
        "seconds_without_each_recording_full_matrix": round(dense_done - start, 2),
        "seconds_without_each_recording_ten_per_segment": round(time.perf_counter() - dense_done, 2),
    }
