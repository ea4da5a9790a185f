"""Benchmarks: one module per challenge, declarations without logic."""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark
from fieldmark.registry import Registry

BENCHMARKS: Registry[Benchmark] = Registry(
    "benchmark",
    {
        "folder": ("fieldmark.benchmarks.folder:FOLDER", "your own photos, closed set"),
        "fungitastic/closed": ("fieldmark.benchmarks.fungitastic:CLOSED", "FungiTastic, closed set"),
        "fungitastic/dna": ("fieldmark.benchmarks.fungitastic:DNA", "FungiTastic, DNA-sequenced test photos"),
        "fungitastic-mini/closed": ("fieldmark.benchmarks.fungitastic:MINI_CLOSED", "FungiTastic-Mini, closed set"),
        "fungitastic-mini/dna": (
            "fieldmark.benchmarks.fungitastic:MINI_DNA",
            "FungiTastic-Mini, DNA-sequenced test photos",
        ),
    },
)

__all__ = ["BENCHMARKS", "Benchmark"]
