"""Runs the cells of a table, one after the other, and goes on where it stopped.

```
OUT/
  table.md, table.html    our numbers beside the paper's
  table.json              the same for programs
  cells/<name>/           the folder of each run (`fieldmark.fitting`), and cell.json: what it was made from
```
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import FieldmarkError, InputError, MisuseError, did_you_mean
from fieldmark.features.settings import FeatureSettings
from fieldmark.fitting import fit
from fieldmark.fitting.configuration import configured_method
from fieldmark.methods import METHODS
from fieldmark.releases import Dataset, open_dataset
from fieldmark.scoring import SCORECARD_FILE, Scorecard
from fieldmark.storage.files import write_json
from fieldmark.suites.tables.declarations import Cell, Table
from fieldmark.work.grid import GridCell, run_grid

CELLS_FOLDER, CELL_FILE = "cells", "cell.json"
State = Literal["run", "stored", "failed", "not run"]


@dataclass(frozen=True)
class CellOutcome:
    """What became of a cell.

    Args:
        cell: As declared.
        state: "run" now, "stored" from an earlier time, "failed", or "not run" because others were asked for.
        scorecard: Its scores, where there are any.
        problem: Why it failed, in a sentence.
        changed: Settings it was run with that the declaration does not have.
    """

    cell: Cell
    state: State
    scorecard: Scorecard | None = None
    problem: str | None = None
    changed: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Reproduced:
    """A table with the outcomes of its cells."""

    table: Table
    outcomes: tuple[CellOutcome, ...]
    simulated: bool

    @property
    def failed(self) -> tuple[CellOutcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.state == "failed")


def reproduce(
    table: Table,
    data: str | Path,
    out: str | Path,
    *,
    only: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    store: Path | None = None,
    announce: Callable[[str], None] = lambda line: None,
) -> Reproduced:
    """Runs the cells of a table; those that are finished with the same settings on the same data are not run again.

    A cell that fails (weights that cannot be downloaded, a subset that is not on disk) is reported; the others go on.

    Args:
        table: The declaration.
        data: The root of the release.
        out: The folder to write or continue.
        only: Names of cells, or patterns like `bioclip-*`; all if empty. The others show what is stored of them.
        settings: Settings that replace those declared, in the cells whose method knows them.
        seed: As for `fit`.
        store: The feature store, if not the user's cache.
        announce: Is told, line by line, which cell is at work.

    Raises:
        MisuseError: For names of cells or settings that no cell has.
        InputError: When the data can be opened for none of the cells.
    """
    wanted = _wanted(table, only)
    _check_settings(settings or {}, [cell for cell in table.cells if cell.name in wanted])
    datasets = _Datasets(data)
    datasets.refuse_unless_any({cell.benchmark: None for cell in table.cells if cell.name in wanted})
    numbers = {cell.name: number for number, cell in enumerate(table.cells, start=1)}
    changed = {cell.name: _changed(cell, settings or {}) for cell in table.cells}

    def content(cell: Cell) -> dict[str, Any]:
        return {
            "benchmark": cell.benchmark,
            "version": BENCHMARKS[cell.benchmark].version,
            "method": cell.method,
            "settings": {**cell.settings, **changed[cell.name]},
            "steps": list(cell.steps),
            "seed": seed,
            "data_digest": datasets.digest(cell.benchmark),
        }

    def fit_cell(cell: Cell) -> dict[str, Any]:
        announce(f"{numbers[cell.name]}/{len(numbers)} {cell.name}")
        made_from, folder = content(cell), Path(out, CELLS_FOLDER, cell.name)
        given = made_from["settings"]
        fit(
            cell.benchmark, data, cell.method, folder,
            settings=given, steps=cell.steps, seed=seed, overwrite=True, store=store,
        )  # fmt: skip
        return made_from

    def is_done(cell: GridCell[Cell]) -> bool:
        try:
            return _made_from(cell.path.parent) == content(cell.task)
        except FieldmarkError:
            return False  # the same refusal is the outcome of the cell

    grid = [GridCell(Path(out, CELLS_FOLDER, cell.name, CELL_FILE), cell) for cell in table.cells]
    outcomes = {cell.task.name: _as_stored(cell.task, cell.path.parent) for cell in grid}
    asked = [cell for cell in grid if cell.task.name in wanted]
    for one in run_grid(table.name, asked, fit_cell, write_json, keep_going=True, is_done=is_done):
        cell, other = one.cell.task, changed[one.cell.task.name]
        if one.problem is not None:
            outcomes[cell.name] = CellOutcome(cell, "failed", problem=str(one.problem), changed=other)
            announce(f"{cell.name} failed: {one.problem}")
        elif one.state == "made":
            card = Scorecard.read(one.cell.path.with_name(SCORECARD_FILE))
            outcomes[cell.name] = CellOutcome(cell, "run", card, changed=other)
    simulated = datasets.simulated or any(map(_is_simulated, outcomes.values()))
    return Reproduced(table, tuple(outcomes.values()), simulated)


class _Datasets:
    """Opens each subset of a release once; a subset that cannot be opened says so to every cell that asks."""

    def __init__(self, data: str | Path) -> None:
        self.data, self.simulated = data, False
        self._opened: dict[tuple[str, str], Dataset | InputError] = {}

    def digest(self, benchmark: str) -> str:
        declared = BENCHMARKS[benchmark]
        key = (declared.dataset, declared.subset)
        if key not in self._opened:
            try:
                self._opened[key] = open_dataset(declared.dataset, self.data, declared.subset)
            except InputError as error:
                self._opened[key] = error
        opened = self._opened[key]
        if isinstance(opened, InputError):
            raise opened
        self.simulated = self.simulated or opened.simulated
        return opened.digest

    def refuse_unless_any(self, benchmarks: Iterable[str]) -> None:
        """Says once what is wrong with data that can be opened for none of some benchmarks."""
        refused: InputError | None = None
        for benchmark in benchmarks:
            try:
                self.digest(benchmark)
            except InputError as error:
                refused = refused or error
            else:
                return
        if refused is not None:
            raise refused


def _wanted(table: Table, only: Sequence[str]) -> set[str]:
    names = [cell.name for cell in table.cells]
    if not only:
        return set(names)
    wanted: set[str] = set()
    for pattern in only:
        matching = {name for name in names if fnmatchcase(name, pattern)}
        if not matching:
            raise MisuseError(f"{table.name} has no cell called {pattern!r}. {did_you_mean(pattern, names)}")
        wanted |= matching
    return wanted


def _changed(cell: Cell, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the method of a cell knows and that are not as declared."""
    known = _settings_of(cell) if settings else set()
    return {key: value for key, value in settings.items() if key in known and str(cell.settings.get(key)) != str(value)}


def _as_stored(cell: Cell, folder: Path) -> CellOutcome:
    made_from = _made_from(folder)
    if made_from is None:
        return CellOutcome(cell, "not run")
    given = made_from["settings"]
    changed = {key: value for key, value in given.items() if str(cell.settings.get(key)) != str(value)}
    return CellOutcome(cell, "stored", Scorecard.read(folder / SCORECARD_FILE), changed=changed)


def _made_from(folder: Path) -> dict[str, Any] | None:
    """What a finished cell was made from; written last, so that a cell without it does not count."""
    try:
        cell: dict[str, Any] = json.loads((folder / CELL_FILE).read_text(encoding="utf-8"))
        return cell
    except FileNotFoundError:
        return None


def _settings_of(cell: Cell) -> set[str]:
    """The settings that the method of a cell knows; none where there is no such method."""
    if cell.method not in METHODS:
        return set()
    configured = configured_method(cell.method, cell.settings)
    owners: list[Any] = [type(configured.method), *([FeatureSettings] if configured.features else [])]
    return {owned.name for owner in owners for owned in fields(owner)}


def _check_settings(settings: Mapping[str, Any], cells: Sequence[Cell]) -> None:
    names = {name for cell in cells for name in _settings_of(cell)}
    for key in settings:
        if key not in names:
            raise MisuseError(f"No cell has a setting called {key!r}. {did_you_mean(key, names)}")


def _is_simulated(outcome: CellOutcome) -> bool:
    return outcome.scorecard is not None and bool(outcome.scorecard.provenance.get("simulated"))
