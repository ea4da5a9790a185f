"""One answer for each observation, with all its photos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from fieldmark.datasets.base import Dataset
from fieldmark.questions.items import FILING, Items, Layout, loose_items
from fieldmark.tables import ITEMS


@dataclass(frozen=True)
class Observations(Items):
    """The photos of an observation are one item."""

    noun: ClassVar[str] = "observation"

    def lay_out(self, dataset: Dataset, rows: pl.DataFrame) -> Layout:
        context = [name for name in rows.columns if name not in ("media_id", "observation_id", *FILING)]
        table = rows.group_by("observation_id", maintain_order=True).agg(
            pl.col("media_id").alias("media_ids"), pl.col(context).first()
        )
        table = ITEMS.check(table.with_columns(item_id="observation_id"), "items")
        return Layout(table, member="item_id", listed="observation_id")

    def loose(self, files: Sequence[Path], context: Mapping[str, Any] | None = None) -> pl.DataFrame:
        return loose_items(files, context)
