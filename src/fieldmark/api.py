"""Looking things up by name, as the library offers it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fieldmark.benchmarks import BENCHMARKS, Benchmark
from fieldmark.datasets import Dataset, open_dataset
from fieldmark.worlds import WORLDS


def dataset(name: str, root: str | Path, subset: str = "all") -> Dataset:
    """Opens a release, or a world in its layout."""
    return open_dataset(name, root, subset)


def benchmark(name: str) -> Benchmark:
    """Returns the declaration of a benchmark."""
    return BENCHMARKS[name]


def world(name: str, out: str | Path, *, size: str = "tiny", seed: int = 0, overwrite: bool = False) -> dict[str, Any]:
    """Writes a simulated release and returns its mark, the content of `WORLD.json`."""
    return WORLDS[name](Path(out), size=size, seed=seed, overwrite=overwrite)
