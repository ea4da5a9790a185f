"""Segments of soundscapes as later challenges name them: `<recording>_<second at which the segment ends>`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fieldmark.errors import InputError
from fieldmark.questions.given_tables import LINE
from fieldmark.questions.items import TRUTH_FILE, Items, TruthRows
from fieldmark.questions.segments import Segments
from fieldmark.questions.truth import Truth
from fieldmark.runs.segments import item_of, row_id_of


@dataclass(frozen=True)
class SegmentRows(Segments):
    """As segments, but the truth is a table with a row for each segment and label instead of events.

    A recording is independent of the others unless the table has a column `unit`.
    """

    def read_truth(self, truth: Any, media: Any, by: Sequence[str]) -> TruthRows:
        given = Items.read_truth(self, truth, media, by)
        items = tuple(item_of(row_id, self.seconds) for row_id in given.items)
        for row_id, item in zip(given.items, items, strict=True):
            if item == row_id or int(item.rpartition("/")[2]) % self.seconds:
                line = given.rows.filter(pl.col("item_id") == row_id)[LINE][0]
                expected = f"<recording>_<end second>, a multiple of {self.seconds} in plain digits"
                raise InputError(given.where, line=line, found=f"the id {row_id!r}", expected=expected)
        renamed = dict(zip(given.items, items, strict=True))
        rows = given.rows.with_columns(item_id=pl.col("item_id").replace_strict(renamed, return_dtype=pl.String))
        units = given.units if "unit" in given.rows.columns else tuple(item.rpartition("/")[0] for item in items)
        return given._replace(rows=rows, items=items, units=units)

    def write_truth(self, folder: Path, truth: Truth, table: pl.DataFrame, by: Sequence[str]) -> None:
        Items.write_truth(self, folder, truth, table, by)
        path = folder / TRUTH_FILE
        rows = pl.read_csv(path, infer_schema=False)
        ids = [row_id_of(item, self.seconds) for item in rows["id"]]
        rows.with_columns(id=pl.Series(ids, dtype=pl.String)).write_csv(path)
