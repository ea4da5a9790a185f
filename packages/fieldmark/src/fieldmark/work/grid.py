"""A grid of cells, each known by the file that it leaves: what is there is not made again.

`reproduce`, `ablate`, `episodes`, `fit --search` and suites are grids. A cell is addressed by its content
(`address_of`): all that its result depends on and nothing else. Its file appears by rename when it is complete, so that
the same call goes on where an earlier one was killed. Cells are worked on here, in several processes or on the cluster
that `engines.working_on` has chosen; the process that asked writes the files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, cast

from fieldmark.errors import FieldmarkError
from fieldmark.work.blocks import LocalExecutor, map_blocks
from fieldmark.work.engines import cluster
from fieldmark.work.progress import progress

T = TypeVar("T")
R = TypeVar("R")
State = Literal["stored", "made", "failed"]


@dataclass(frozen=True)
class GridCell(Generic[T]):
    """One cell.

    Args:
        path: The file whose presence says that the cell is done.
        task: What is worked on.
        shares: Cells with an equal value share something costly (features), for which one of them goes first.
    """

    path: Path
    task: T
    shares: Hashable = None


@dataclass(frozen=True)
class GridOutcome(Generic[T]):
    """What became of a cell: stored from before, made now, or failed for the reason that `problem` gives."""

    cell: GridCell[T]
    state: State
    problem: FieldmarkError | None = None


def address_of(content: Mapping[str, Any] | Sequence[Any], size: int = 8) -> str:
    """The address of a cell: a fingerprint of everything that its result depends on.

    >>> address_of({"seed": 0, "method": "lda"}) == address_of({"method": "lda", "seed": 0})
    True
    """
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


def run_grid(
    what: str,
    cells: Sequence[GridCell[T]],
    make: Callable[[T], R],
    keep: Callable[[Path, R], None] | None = None,
    *,
    processes: int = 1,
    keep_going: bool = False,
    is_done: Callable[[GridCell[T]], bool] = lambda cell: cell.path.exists(),
) -> Iterator[GridOutcome[T]]:
    """Makes the cells whose files are not there, and says of each what became of it, as soon as that is known.

    Args:
        what: The work, as a person would say it ("episodes"): shown with the time left.
        cells: All cells. Those that are stored come first; the others in their order, save for `GridCell.shares`.
        make: Works on one cell. It must be a function of a module where processes or a cluster do the work.
        keep: Writes the result, in the process that asked; None where `make` leaves the file itself.
        processes: How many processes of this machine work; a cluster that was chosen goes first.
        keep_going: Whether a cell that is refused is reported, and the others go on.
        is_done: Whether a cell is stored; by default, whether its file is there.

    Raises:
        FieldmarkError: That of a cell, without `keep_going`.
    """
    executor = cluster() or LocalExecutor(processes)
    with progress(what, len(cells)) as tick:
        missing = []
        for cell in cells:
            if is_done(cell):
                tick(1)
                yield GridOutcome(cell, "stored")
            else:
                missing.append(cell)
        for batch in _batches(missing):
            for cell, (result, problem) in zip(
                batch, map_blocks(_Attempt(make), [cell.task for cell in batch], executor), strict=True
            ):
                if problem is not None and not keep_going:
                    raise problem
                if problem is None and keep is not None:
                    keep(cell.path, cast(R, result))
                tick(1)
                yield GridOutcome(cell, "made" if problem is None else "failed", problem)


def _batches(cells: Sequence[GridCell[T]]) -> list[list[GridCell[T]]]:
    """Cells in two batches: one of each that share something, which the others then find done; and the others."""
    leaders: dict[Hashable, GridCell[T]] = {}
    for cell in cells:
        if cell.shares is not None:
            leaders.setdefault(cell.shares, cell)
    first = list(leaders.values())
    led = {id(cell) for cell in first}
    return [batch for batch in (first, [cell for cell in cells if id(cell) not in led]) if batch]


@dataclass(frozen=True)
class _Attempt(Generic[T, R]):
    """Works on a cell, and hands its refusal back as a result: it must not end the work on other cells."""

    make: Callable[[T], R]

    def __call__(self, task: T) -> tuple[R | None, FieldmarkError | None]:
        try:
            return self.make(task), None
        except FieldmarkError as error:
            return None, error
