"""How likely methods for places hold what was found in blocks of train that they have not seen.

Places near each other are alike. A method that is judged on places between those it has learned from is judged by how
well it remembers; so whole square blocks are held out, with everything in them, background included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.base import Arrays
from fieldmark.methods.places.base import OnPlaces
from fieldmark.methods.places.records import PlaceRecords, Points
from fieldmark.runs.label_scores import log_softmax
from fieldmark.splits.grids import square_blocks

# So many answers of each method are compared; of more places, some are drawn.
MOST_OUTCOMES = 1_000_000
Chances = NDArray[np.float32]
Rows = NDArray[np.int64]


def held_out_chances(
    methods: Sequence[OnPlaces], records: PlaceRecords, folds: int, blocks_m: float, seed: int
) -> Chances:
    """The probability that each method gives what was found where it has not learned: methods x outcomes.

    An outcome is the species of a record where one label holds; otherwise, whether a species was found at a place.

    Args:
        methods: The methods.
        records: What they learn from.
        folds: How many times blocks are held out.
        blocks_m: The side of the blocks.
        seed: Of the draw of blocks, and of places where there are many.

    Raises:
        MisuseError: When the places lie in fewer blocks than there are folds.
    """
    rng = np.random.default_rng(seed)
    fold, of_background = _folds(records, folds, blocks_m, rng)
    asked = _drawn(records, fold, rng) if methods and methods[0].several else np.arange(len(records.points))
    found: list[list[Chances]] = [[] for _ in methods]
    for number in range(folds):
        rest = _take(records, fold != number, None if of_background is None else of_background != number)
        held = asked[fold[asked] == number]
        for method, chances in zip(methods, found, strict=True):
            chances.append(_chances(method, rest, records, held))
    return np.stack([np.concatenate(chances) for chances in found])


def _folds(records: PlaceRecords, folds: int, blocks_m: float, rng: np.random.Generator) -> tuple[Rows, Rows | None]:
    """The fold of each place and of each point of the background; points without coordinates form a block."""
    background = records.background
    every = [records.points] if background is None else [records.points, background]
    cells = np.concatenate([_cells(points, blocks_m) for points in every])
    block = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
    with_places = np.unique(block[: len(records.points)])
    if len(with_places) < folds:
        found = f"{len(with_places)} blocks of {blocks_m:g} m"
        raise MisuseError(f"Places in {found} cannot be cut into {folds} folds: set smaller blocks_m or fewer folds.")
    # Blocks with places are dealt out, so that no fold is empty; those with nothing but background are drawn.
    fold_of = rng.integers(0, folds, int(block.max()) + 1)
    fold_of[rng.permutation(with_places)] = np.arange(len(with_places)) % folds
    numbers = fold_of[block]
    return numbers[: len(records.points)], None if background is None else numbers[len(records.points) :]


def _cells(points: Points, blocks_m: float) -> Rows:
    row, column = square_blocks(np.nan_to_num(points.lat), np.nan_to_num(points.lon), blocks_m)
    return np.column_stack([row, column]).astype(np.int64)


def _drawn(records: PlaceRecords, fold: Rows, rng: np.random.Generator) -> Rows:
    """The places whose species are compared."""
    most = max(MOST_OUTCOMES // max(records.n_labels, 1), 1)
    rows = np.arange(len(fold))
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _take(records: PlaceRecords, places: NDArray[np.bool_], background: NDArray[np.bool_] | None) -> PlaceRecords:
    """The records of some places, against some of the background."""
    kept = places[records.row]
    new_row = np.cumsum(places) - 1
    return replace(
        records,
        points=records.points.take(np.flatnonzero(places)),
        row=new_row[records.row[kept]].astype(np.int64),
        code=records.code[kept],
        background=None if background is None else _of(records.background, background),
        asked=None if records.asked is None else records.asked[places],
    )


def _of(points: Points | None, kept: NDArray[np.bool_]) -> Points | None:
    return None if points is None else points.take(np.flatnonzero(kept))


def _chances(method: OnPlaces, rest: PlaceRecords, records: PlaceRecords, held: Rows) -> Chances:
    """What a method that has learned from the rest says of what was found at the places that were held out."""
    fitted, learned = method.learn(rest)
    arrays: Arrays = {
        **learned,
        "log_prior": rest.log_prior.astype(np.float32),
        "survey": np.array([rest.is_survey]),
    }
    made, start = [np.zeros(0, dtype=np.float32)], 0
    for ratios in fitted.blocks(arrays, records.points.take(held)):
        rows = held[start : start + len(ratios)]
        start += len(ratios)
        place, code = _finds(records, rows)
        if method.several:
            chances = fitted.scored(arrays, ratios)
            holds = np.zeros(chances.shape, dtype=np.bool_)
            holds[place, code] = True
            said = np.where(holds, chances, 1 - chances)
            made.append(said.ravel() if records.asked is None else said[records.asked[rows]])
        else:
            made.append(np.exp(log_softmax(arrays["log_prior"] + ratios)[place, code]).astype(np.float32))
    return np.concatenate(made)


def _finds(records: PlaceRecords, rows: Rows) -> tuple[Rows, Rows]:
    """What was found at some places, given in order: the number among them of each place, and the species."""
    kept = np.isin(records.row, rows)
    return np.searchsorted(rows, records.row[kept]), records.code[kept].astype(np.int64)
