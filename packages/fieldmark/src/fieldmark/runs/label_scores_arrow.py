"""Scores of labels as Arrow tables, which is how they lie in Parquet files; files of version 1 are read as well."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fieldmark.runs.code_sets import CodeSets, Offsets, offsets_of, rows_of
from fieldmark.tables.labels import UNKNOWN, UNKNOWN_NAME, Labels

if TYPE_CHECKING:
    from fieldmark.runs.label_scores import LabelScores

# What predictions may say of each item besides its scores.
PER_ITEM = ("unknown", "unknown_label")


def to_arrow(block: LabelScores) -> pa.Table:
    """The table that holds some predictions: one row per item, labels and scale in the metadata."""
    columns: dict[str, Any] = {"item_id": pa.array(block.items, type=pa.string())}
    if block.offsets is None or block.codes is None:
        flat = pa.array(np.ascontiguousarray(block.scores).reshape(-1))
        columns["scores"] = pa.FixedSizeListArray.from_arrays(flat, len(block.labels))
    else:
        starts = pa.array(block.offsets.astype(np.int32))
        columns["scores"] = pa.ListArray.from_arrays(starts, pa.array(block.scores))
        columns["codes"] = pa.ListArray.from_arrays(starts, pa.array(block.codes))
    for name in PER_ITEM:
        if getattr(block, name) is not None:
            columns[name] = pa.array(getattr(block, name))
    if block.decisions is not None:
        starts = pa.array(block.decisions.offsets.astype(np.int32))
        columns["decisions"] = pa.ListArray.from_arrays(starts, pa.array(block.decisions.codes))
    header = json.dumps({"labels": block.labels.names, "scale": block.scale, "version": 2})
    return pa.table(columns).replace_schema_metadata({"fieldmark": header})


def from_arrow(table: pa.Table, header: dict[str, Any]) -> dict[str, Any]:
    """The fields of `LabelScores` from a table of this version or an earlier one."""
    names = tuple(header["labels"])
    old = header.get("version", 1) == 1
    listed = "codes" in table.column_names
    columns: dict[str, Any] = {name: table.column(name).to_numpy() for name in PER_ITEM if name in table.column_names}
    scores, offsets = _lists(table, "scores")
    if listed:
        columns |= {"codes": _lists(table, "codes")[0].astype(np.int32), "offsets": offsets}
    else:
        scores = scores.reshape(len(table), -1)
    if "decisions" in table.column_names:
        codes, starts = _lists(table, "decisions")
        columns["decisions"] = CodeSets(codes.astype(np.int32), starts)
    if old:
        scores, columns = _from_version_1(table, names, scores, columns)
    labels = Labels(tuple(name for name in names if name != UNKNOWN_NAME))
    items = tuple(table.column("item_id").to_pylist())
    return {"items": items, "labels": labels, "scores": scores, "scale": header["scale"], **columns}


def _from_version_1(
    table: pa.Table, names: tuple[str, ...], scores: NDArray[Any], columns: dict[str, Any]
) -> tuple[NDArray[Any], dict[str, Any]]:
    """Predictions of version 1: "-1" was a label, lists were padded with the code -1, and a rule gave one answer."""
    known = np.array([name != UNKNOWN_NAME for name in names], dtype=bool)
    new_code = np.where(known, np.cumsum(known) - 1, UNKNOWN).astype(np.int32)
    if "codes" in columns:
        kept = columns["codes"] >= 0
        row = rows_of(columns["offsets"])[kept]
        order = np.lexsort((-scores[kept], row))  # they were ranked when somebody asked
        scores, columns["codes"] = scores[kept][order], new_code[columns["codes"][kept]][order]
        columns["offsets"] = offsets_of(np.bincount(row, minlength=len(table)))
    elif not known.all():
        columns["unknown_label"] = np.ascontiguousarray(scores[:, ~known][:, 0])
        scores = np.ascontiguousarray(scores[:, known])
        if np.isneginf(columns["unknown_label"]).all():
            del columns["unknown_label"]  # a place that was kept free for the answer of a rule
    if "answer" in table.column_names:
        columns["decisions"] = CodeSets.single(new_code[table.column("answer").to_numpy()])
    return scores, columns


def _lists(table: pa.Table, name: str) -> tuple[NDArray[Any], Offsets]:
    """The values of a column of lists, one after the other, and where each begins."""
    column = table.column(name).combine_chunks()
    values = np.asarray(column.flatten().to_numpy(zero_copy_only=False))
    if pa.types.is_fixed_size_list(column.type):
        return values, np.arange(len(column) + 1, dtype=np.int64) * column.type.list_size
    return values, offsets_of(column.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64))
