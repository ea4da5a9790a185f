"""Adaptive top-30 accuracy at the size of GeoLifeCLEF 2020: 42,405 places and 31,435 species, streamed."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from fieldmark.metrics.geo import adaptive_accuracy, adaptive_accuracy_without_each_unit, adaptive_sets

PLACES, SPECIES, K, ROWS = 42_405, 31_435, 30, 256
ALLOWED_BYTES = 1.5 * 2**30


def run() -> dict[str, Any]:
    """Peak memory of a process of its own over what is allowed, and time beside one sum over the same blocks."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        peak, ours, peer, size = pool.apply(_measure)
    return {
        "places": PLACES,
        "species": SPECIES,
        "peak_memory_over_allowed": round(peak / ALLOWED_BYTES, 2),
        "seconds": round(ours, 1),
        "time_over_adding_up_the_scores": round(ours / peer, 1),
        "realized_mean_size": size,
    }


def _blocks(base: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks that differ from each other at next to no cost: rows of one block, each moved along by another step."""
    for first in range(0, PLACES, ROWS):
        rows = min(ROWS, PLACES - first)
        yield np.roll(base[:rows], first, axis=1) * np.float32(1 + first / PLACES)


def _measure() -> tuple[float, float, float, float]:
    base = np.random.default_rng(0).exponential(size=(ROWS, SPECIES)).astype(np.float32)
    truth = np.random.default_rng(1).integers(0, SPECIES, PLACES, dtype=np.int32)
    start = time.perf_counter()
    for _ in _blocks(base):
        pass
    making = time.perf_counter() - start
    start = time.perf_counter()
    for block in _blocks(base):
        block.sum()
    adding = time.perf_counter() - start - making
    start = time.perf_counter()
    sets = adaptive_sets(_blocks(base), truth, k=K)
    adaptive_accuracy(sets)
    adaptive_accuracy_without_each_unit(sets, np.arange(PLACES, dtype=np.int32))
    ours = time.perf_counter() - start - making
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return float(peak), ours, adding, sets.mean_size
