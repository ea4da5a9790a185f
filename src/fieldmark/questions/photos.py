"""One answer for each photo, or for each recording as a whole."""

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
class Photos(Items):
    """Every medium of a release is an item."""

    noun: ClassVar[str] = "photo"

    def noun_for(self, medium: str) -> str:
        return medium

    def lay_out(self, dataset: Dataset, rows: pl.DataFrame) -> Layout:
        table = rows.with_columns(item_id=pl.col("media_id"), media_ids=pl.concat_list("media_id"))
        return Layout(ITEMS.check(table.drop("media_id", *FILING), "items"), member="item_id", listed="media_id")

    def loose(self, files: Sequence[Path], context: Mapping[str, Any] | None = None) -> pl.DataFrame:
        return loose_items(files, context)
