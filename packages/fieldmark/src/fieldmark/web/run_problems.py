"""What is wrong with a run, as plain data: for pages, for the API, and between processes.

Apart from everything else, so that the processes that check and score a run start quickly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.runs.problems import RunError
from fieldmark.scoring.run_reader import read_run
from fieldmark.tables.labels import Labels


def problems_of(error: InputError) -> tuple[list[dict[str, Any]], int]:
    """The problems that an error lists as plain data, and how many there are in all."""
    if isinstance(error, RunError):
        return [{"line": line, "text": text[:400]} for line, text in error.problems], error.total
    expected = f", expected {error.expected}" if error.expected else ""
    return [{"line": error.line, "text": f"found {error.found}{expected}"[:400]}], 1


def in_lines(sentence: str, problems: Iterable[Mapping[str, Any]], where: str) -> str:
    """What is wrong with a run for a terminal: a sentence, and below it each problem as `fieldmark score` lists it."""
    places = [(f"{where}, line {one['line']}" if one.get("line") else where, one["text"]) for one in problems]
    return "\n".join([sentence, *(f"{place}: {text}." for place, text in places)])


def read_as_scored(
    benchmark: str, run: Path, items: Sequence[str], label_names: Iterable[str], *, closed: bool
) -> None:
    """Reads a run exactly as the scorer will.

    Args:
        benchmark: What it answers.
        run: The file.
        items: What has to be answered.
        label_names: The labels there are.
        closed: Whether it may name no others.

    Raises:
        InputError: When something is wrong with it.
    """
    read_run(BENCHMARKS[benchmark].task, run, items, Labels(tuple(label_names)), closed=closed)
