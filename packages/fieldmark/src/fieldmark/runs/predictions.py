"""Predictions: what a method says about each item. A small family with one protocol.

`LabelScores` (dense or listed) and `Masks` (run lengths). Both are kept as Parquet whose header says which they are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.registry import Registry
from fieldmark.storage.files import appearing_file
from fieldmark.storage.parquet import read_table

BLOCK_ITEMS = 4096
HEADER = b"fieldmark"
PREDICTIONS_FOLDER = "predictions"


def predictions_file(folder: Path, part: str) -> Path:
    """Where the predictions of a part lie in the folder of a run."""
    return folder / PREDICTIONS_FOLDER / f"{part}.parquet"


class Predictions(Protocol):
    """What all predictions have in common."""

    @property
    def items(self) -> Sequence[str]:
        """The ids of the items that are answered."""
        ...

    def select(self, items: Iterable[str]) -> Predictions:
        """The predictions of the given items, in their order."""
        ...

    def blocks(self, size: int = BLOCK_ITEMS) -> Iterator[Predictions]:
        """The same predictions, so many items at a time."""
        ...

    def write(self, path: Path) -> None:
        """Writes the predictions as Parquet."""
        ...


class StoredPredictions(Predictions, Protocol):
    """Predictions that can be read again."""

    @classmethod
    def read(cls, table: pa.Table, header: dict[str, Any]) -> Self:
        """The predictions of the table that `write` made."""
        ...


PREDICTIONS: Registry[type[StoredPredictions]] = Registry(
    "kind of predictions",
    {
        "labels": ("fieldmark.runs.label_scores:LabelScores", "scores of labels, dense or listed"),
        "masks": ("fieldmark.runs.masks:Masks", "masks as run lengths"),
    },
)


def renamed(predictions: Any, name_of: Callable[[str], str]) -> Any:
    """Predictions of items by other names; a kind that keeps names elsewhere as well has a method `renamed` for it."""
    own = getattr(predictions, "renamed", None)
    if own is not None:
        return own(name_of)
    return replace(predictions, items=tuple(name_of(one) for one in predictions.items))


def read_predictions(path: Path) -> Any:
    """Reads predictions of any kind.

    Raises:
        InputError: When there is no such file, it is something else, or it answers an item twice.
    """
    try:
        table = read_table(path, path, expected="predictions written by Fieldmark")
        header = json.loads(table.schema.metadata[HEADER])
        predictions = PREDICTIONS[header.get("kind", "labels")].read(table, header)
        refuse_repeated(predictions.items, path)
        return predictions
    except (pa.ArrowException, KeyError, IndexError, TypeError, AttributeError) as error:
        raise InputError(path, found="something else", expected="predictions written by Fieldmark") from error
    except ValueError as error:  # what predictions themselves refuse, such as a score that is no number
        raise InputError(path, found=f"predictions that cannot be ({error})", expected="others") from error


def refuse_repeated(items: Sequence[str], where: object) -> None:
    """Refuses predictions that answer an item more than once: nobody can say which answer counts.

    Raises:
        InputError: Names the first such item.
    """
    if len(set(items)) < len(items):
        twice = next(item for item, times in Counter(items).items() if times > 1)
        hint = "Keep the answer that counts."
        raise InputError(where, found=f"the id {twice!r} more than once", expected="each id once", hint=hint)


def write_blocks(path: Path, tables: Iterable[pa.Table]) -> None:
    """Writes tables as the row groups of one Parquet file, which appears when it is complete."""
    writer: pq.ParquetWriter | None = None
    with appearing_file(path) as partial:
        try:
            for table in tables:
                writer = writer or pq.ParquetWriter(partial, table.schema, compression="zstd")
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            raise ValueError("there are no predictions to write")


def rows_by_item(items: Sequence[str], wanted: Sequence[str]) -> NDArray[np.int64]:
    """The row of each wanted item."""
    row_of = {item: row for row, item in enumerate(items)}
    return np.array([row_of[item] for item in wanted], dtype=np.int64)
