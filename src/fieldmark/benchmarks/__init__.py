"""Benchmarks: one module per challenge, declarations without logic."""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark
from fieldmark.registry import Registry

BENCHMARKS: Registry[Benchmark] = Registry(
    "benchmark",
    {"folder": ("fieldmark.benchmarks.folder:FOLDER", "your own photos, closed set")},
)

__all__ = ["BENCHMARKS", "Benchmark"]
