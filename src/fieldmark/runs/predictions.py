"""Predictions: what a method says about each item, before it is cut down to a challenge's run file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.files import appearing_file
from fieldmark.labels import UNKNOWN, Labels

Scale = Literal["logit", "log_probability", "score"]
Scores = NDArray[np.float32]
Codes = NDArray[np.int32]

BLOCK_ITEMS = 4096
# What predictions may say of each item besides its scores.
PER_ITEM = ("codes", "unknown", "answers")


@dataclass(frozen=True)
class Predictions:
    """Scores of labels for items; higher is better.

    Args:
        items: The ids of the items.
        labels: The label set.
        scores: One row per item. Dense: one column per label. Sparse: one column per listed label.
        scale: What the scores are: logits, log-probabilities, or scores that only rank.
        codes: Only for sparse predictions: the label behind each score, -1 where a row lists fewer.
        unknown: How strongly each item looks like none of the labels, if the method says so; higher is stranger.
        answers: The first answer of each item as a label code, where a rule gave it (least cost, unknown) and not the
            highest score. The scores stay what they are, so that another rule can be tried on them.
    """

    items: tuple[str, ...]
    labels: Labels
    scores: Scores
    scale: Scale
    codes: Codes | None = None
    unknown: NDArray[np.float32] | None = None
    answers: Codes | None = None

    def __post_init__(self) -> None:
        columns = len(self.labels) if self.codes is None else self.codes.shape[1]
        if self.scores.shape != (len(self.items), columns):
            raise ValueError(f"scores have shape {self.scores.shape}, expected {(len(self.items), columns)}")
        if self.codes is not None and self.codes.shape != self.scores.shape:
            raise ValueError("codes and scores must have the same shape")
        if np.isnan(self.scores).any():
            row = int(np.isnan(self.scores).any(axis=1).argmax())
            raise ValueError(f"the scores of item {self.items[row]!r} contain NaN")

    @property
    def dense(self) -> bool:
        return self.codes is None

    def top(self, k: int) -> Codes:
        """The codes of the k best labels of each item, best first; -1 where there are fewer.

        Where a rule gave the first answer, the others follow it by their scores.

        Among equal scores the lower code comes first (for sparse predictions, the one listed first), so that the
        order never depends on how the sort works.
        """
        width = self.scores.shape[1]
        if k <= 16:
            order = _first_largest(self.scores, min(k, width))
        else:
            order = np.argsort(-self.scores, axis=1, kind="stable")[:, :k]
        best = order if self.codes is None else np.take_along_axis(self.codes, order, axis=1)
        padding = np.full((len(self.items), k - best.shape[1]), UNKNOWN, dtype=np.int32)
        ranked = np.hstack([best.astype(np.int32), padding])
        return ranked if self.answers is None else _answer_first(self.answers, ranked)

    def scores_by_code(self, row: int) -> dict[int, float]:
        """The scores of one item by label code, for writing them out."""
        codes = range(len(self.labels)) if self.codes is None else self.codes[row].tolist()
        return dict(zip(codes, self.scores[row].tolist(), strict=True))

    def probabilities(self) -> Scores:
        """Probabilities over the labels of each item. Only for dense logits and log-probabilities."""
        if self.scale == "score" or not self.dense:
            raise ValueError("only dense logits or log-probabilities turn into probabilities")
        return np.exp(log_softmax(self.scores))

    def with_scores(self, scores: Scores, scale: Scale) -> Predictions:
        """The same items with other scores; an answer that a rule gave for the old ones goes with them."""
        return replace(self, scores=scores.astype(np.float32, copy=False), scale=scale, answers=None)

    def with_label(self, name: str) -> Predictions:
        """The same predictions with one label more, which is never the answer."""
        scores = self.scores
        if self.codes is None:
            scores = np.hstack([scores, np.full((len(scores), 1), -np.inf, dtype=np.float32)])
        return replace(self, labels=Labels((*self.labels.names, name)), scores=scores)

    def select(self, items: Iterable[str]) -> Predictions:
        """The predictions of the given items, in their order."""
        row_of = {item: row for row, item in enumerate(self.items)}
        wanted = tuple(items)
        rows = np.array([row_of[item] for item in wanted], dtype=np.int64)
        return replace(self._rows(rows), items=wanted)

    def blocks(self, size: int = BLOCK_ITEMS) -> Iterator[Predictions]:
        """The same predictions, a few thousand items at a time."""
        for start in range(0, len(self.items), size):
            rows = slice(start, start + size)
            yield replace(self._rows(rows), items=self.items[rows])

    def _rows(self, rows: slice | NDArray[np.int64]) -> Predictions:
        """Some of the rows, under item ids that the caller puts right."""
        columns: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows] for name in ("scores", *PER_ITEM)
        }
        return replace(self, items=("",) * len(columns["scores"]), **columns)


def log_softmax(scores: NDArray[np.floating]) -> Scores:
    """Logits as log-probabilities.

    >>> np.exp(log_softmax(np.array([[0.0, 0.0]])))
    array([[0.5, 0.5]])
    """
    shifted = scores - scores.max(axis=1, keepdims=True)
    return cast(Scores, shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def write_predictions(path: Path, blocks: Iterable[Predictions]) -> None:
    """Writes predictions as Parquet, one row group per block, so that they can be read without holding them all."""
    writer: pq.ParquetWriter | None = None
    with appearing_file(path) as partial:
        try:
            for block in blocks:
                table = _to_arrow(block)
                writer = writer or pq.ParquetWriter(partial, table.schema, compression="zstd")
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            raise ValueError("there are no predictions to write")


def read_prediction_blocks(path: Path) -> Iterator[Predictions]:
    """Reads predictions block by block."""
    try:
        file = pq.ParquetFile(path)
        header = json.loads(file.schema_arrow.metadata[b"fieldmark"])
    except FileNotFoundError as error:
        raise InputError(path, found="no such file", expected="predictions in Parquet") from error
    except (pa.ArrowInvalid, KeyError, TypeError) as error:
        raise InputError(path, found="something else", expected="predictions written by Fieldmark") from error
    labels = Labels(tuple(header["labels"]))
    for group in range(file.num_row_groups):
        yield _from_arrow(file.read_row_group(group), labels, header["scale"])


def read_predictions(path: Path) -> Predictions:
    """Reads predictions as a whole."""
    blocks = list(read_prediction_blocks(path))
    first = blocks[0]
    further: dict[str, Any] = {
        name: np.concatenate([getattr(block, name) for block in blocks])
        for name in PER_ITEM
        if getattr(first, name) is not None
    }
    return replace(
        first,
        items=tuple(item for block in blocks for item in block.items),
        scores=np.concatenate([block.scores for block in blocks]),
        **further,
    )


def _first_largest(scores: Scores, k: int) -> NDArray[np.int64]:
    """Columns of the k largest values of each row; `argmax` takes the first of equals, which is the promised order."""
    left = scores.astype(np.float32, copy=True)
    left[left == -np.inf] = np.finfo(np.float32).min
    rows = np.arange(len(left))
    order = np.empty((len(left), k), dtype=np.int64)
    for place in range(k):
        order[:, place] = left.argmax(axis=1)
        left[rows, order[:, place]] = -np.inf
    return order


def _answer_first(answers: Codes, ranked: Codes) -> Codes:
    """The ranking with the given answer in front, and without it further back."""
    together = np.hstack([answers[:, None], ranked])
    again = np.hstack([np.zeros((len(answers), 1), dtype=bool), ranked == answers[:, None]])
    order = np.argsort(again, axis=1, kind="stable")[:, : ranked.shape[1]]
    return np.take_along_axis(together, order, axis=1).astype(np.int32)


def _to_arrow(block: Predictions) -> pa.Table:
    width = block.scores.shape[1]
    columns = {
        "item_id": pa.array(block.items, type=pa.string()),
        "scores": pa.FixedSizeListArray.from_arrays(pa.array(block.scores.reshape(-1)), width),
    }
    if block.codes is not None:
        columns["codes"] = pa.FixedSizeListArray.from_arrays(pa.array(block.codes.reshape(-1)), width)
    if block.unknown is not None:
        columns["unknown"] = pa.array(block.unknown)
    if block.answers is not None:
        columns["answer"] = pa.array(block.answers)
    header = json.dumps({"labels": block.labels.names, "scale": block.scale})
    return pa.table(columns).replace_schema_metadata({"fieldmark": header})


def _from_arrow(table: pa.Table, labels: Labels, scale: Scale) -> Predictions:
    def matrix(name: str) -> NDArray[np.generic]:
        column = table.column(name).combine_chunks()
        return np.asarray(column.flatten().to_numpy(zero_copy_only=False)).reshape(len(column), -1)

    return Predictions(
        items=tuple(table.column("item_id").to_pylist()),
        labels=labels,
        scores=cast(Scores, matrix("scores")),
        scale=scale,
        codes=cast(Codes, matrix("codes")) if "codes" in table.column_names else None,
        unknown=table.column("unknown").to_numpy() if "unknown" in table.column_names else None,
        answers=table.column("answer").to_numpy() if "answer" in table.column_names else None,
    )
