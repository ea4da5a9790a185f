"""Looking things up by name, as the library offers it."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

from fieldmark.benchmarks import BENCHMARKS, Benchmark
from fieldmark.datasets import Dataset, open_dataset
from fieldmark.errors import MisuseError
from fieldmark.worlds import WORLDS


def dataset(name: str, root: str | Path, subset: str = "all") -> Dataset:
    """Opens a release, or a world in its layout."""
    return open_dataset(name, root, subset)


def benchmark(name: str) -> Benchmark:
    """Returns the declaration of a benchmark."""
    return BENCHMARKS[name]


def world(
    name: str, out: str | Path, *, size: str = "tiny", seed: int = 0, overwrite: bool = False, **options: str
) -> dict[str, Any]:
    """Writes a simulated release and returns its mark, the content of `WORLD.json`.

    Args:
        name: The dataset whose layout the world has.
        out: The folder to write.
        size: How much of it.
        seed: The same seed gives the same world.
        overwrite: Whether an existing folder is replaced.
        options: What only some worlds know (`release="2024"`).
    """
    write = WORLDS[name]
    for option in options:
        if option not in signature(write).parameters:
            raise MisuseError(f"The world {name!r} has no {option}.")
    return write(Path(out), size=size, seed=seed, overwrite=overwrite, **options)
