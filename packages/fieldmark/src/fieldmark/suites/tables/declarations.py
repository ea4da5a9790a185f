"""What a table of a paper is: cells, each with the run that makes it and the numbers the paper gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fieldmark.benchmarks.declarations import Reported


@dataclass(frozen=True)
class Cell:
    """One run of a table.

    Args:
        name: As a folder and on the command line.
        row: The line of the table it stands in.
        benchmark, method, settings, steps: What `fieldmark.fit` is called with.
        reported: What the paper gives for it, with the source; several where its tables disagree, the first counts.
        group: The part of the table it stands in, where a table has several side by side.
    """

    name: str
    row: str
    benchmark: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    reported: tuple[Reported, ...] = ()
    group: str = ""


@dataclass(frozen=True)
class Table:
    """A table of a paper.

    Args:
        name: On the command line.
        title: What it shows.
        source: Where it stands.
        metrics: The columns.
        cells: What is run.
        notes: What a reader of the comparison should know, one sentence each.
    """

    name: str
    title: str
    source: str
    metrics: tuple[str, ...]
    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [cell.name for cell in self.cells]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: two cells bear the same name")
