"""Looking things up by name, as the library offers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fieldmark.benchmarks import BENCHMARKS, Benchmark
from fieldmark.errors import MisuseError
from fieldmark.releases import Dataset, open_dataset
from fieldmark_worlds import WORLDS

if TYPE_CHECKING:
    from fieldmark.suites.tables import Reproduced


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
        seed: The random seed.
        overwrite: Whether an existing folder is replaced.
        options: What only some worlds know (`release="2024"`).
    """
    write = WORLDS[name]
    for option in options:
        if option not in signature(write).parameters:
            raise MisuseError(f"The world {name!r} has no {option}.")
    return write(Path(out), size=size, seed=seed, overwrite=overwrite, **options)


def reproduce(
    table: str,
    data: str | Path,
    out: str | Path,
    *,
    only: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> Reproduced:
    """Runs the cells of a published table, and writes it with the paper's numbers as Markdown, HTML and JSON.

    Args:
        table: The name of the table.
        data: The root of the release.
        out: The folder to write or continue.
        only: Names of cells, or patterns; all if empty.
        settings: Settings that replace those declared, in the cells whose method knows them.
    """
    from fieldmark.suites.tables import TABLES
    from fieldmark.suites.tables import reproduce as run
    from fieldmark.suites.tables.pages import write_pages

    reproduced = run(TABLES[table], data, out, only=only, settings=settings)
    write_pages(reproduced, out)
    return reproduced
