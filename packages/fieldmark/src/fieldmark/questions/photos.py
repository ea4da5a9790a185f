"""One answer for each photo, or for each recording as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from fieldmark.questions.items import FILING, LABELS, Items, Layout, listed_pairs, loose_items
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.schema import ITEMS


@dataclass(frozen=True)
class Photos(Items):
    """Every medium of a release is an item. Where observations have a column `labels`, all of them are in the photo."""

    noun: ClassVar[str] = "photo"

    def noun_for(self, medium: str) -> str:
        return medium

    def lay_out(self, dataset: Dataset, rows: pl.DataFrame) -> Layout:
        table = rows.with_columns(item_id=pl.col("media_id"), media_ids=pl.concat_list("media_id"))
        kept = table.drop("media_id", *FILING, *([LABELS] if LABELS in table.columns else []))
        pairs = listed_pairs(table)
        return Layout(ITEMS.check(kept, "items"), member="item_id", listed="media_id", pairs=pairs)

    def loose(self, files: Sequence[Path], context: Mapping[str, Any] | None = None) -> pl.DataFrame:
        return loose_items(files, context)
