"""Studies that are grids of fits, on the grid runner: what is done lies in a folder, and is not done again."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fieldmark.storage.files import appearing_file, write_json
from fieldmark.work.grid import GridCell, run_grid

T = TypeVar("T")
KEPT = Path(tempfile.gettempdir()) / "fieldmark-evidence"


def kept_arrays(study: str, tasks: Mapping[str, T], make: Callable[[T], dict[str, Any]]) -> dict[str, Any]:
    """The arrays that `make` gives for each task, by the names of the tasks, opened when they are asked for."""
    return {name: np.load(path) for name, path in _run(study, tasks, make, _write_arrays, "npz").items()}


def kept_data(study: str, tasks: Mapping[str, T], make: Callable[[T], dict[str, Any]]) -> dict[str, Any]:
    """The plain data that `make` gives for each task, by the names of the tasks."""
    return {name: json.loads(path.read_text()) for name, path in _run(study, tasks, make, write_json, "json").items()}


def _run(
    study: str,
    tasks: Mapping[str, T],
    make: Callable[[T], dict[str, Any]],
    keep: Callable[[Path, dict[str, Any]], None],
    kind: str,
) -> dict[str, Path]:
    paths = {name: KEPT / study / f"{name.replace(', ', '-').replace(' ', '-')}.{kind}" for name in tasks}
    cells = [GridCell(paths[name], task) for name, task in tasks.items()]
    for outcome in run_grid(study, cells, make, keep):
        print(study, outcome.cell.path.stem, outcome.state, flush=True)
    return paths


def _write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    with appearing_file(path) as file, file.open("wb") as stream:
        np.savez_compressed(stream, **arrays)
