"""One answer for each observation, with all its photos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from fieldmark.questions.items import FILING, Items, Layout, loose_items
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.schema import ITEMS


@dataclass(frozen=True)
class Observations(Items):
    """The photos of an observation are one item; a plant that was photographed and pressed is one in each domain."""

    noun: ClassVar[str] = "observation"

    def lay_out(self, dataset: Dataset, rows: pl.DataFrame) -> Layout:
        context = [name for name in rows.columns if name not in ("media_id", "observation_id", "domain", *FILING)]
        keys = [name for name in ("observation_id", "domain") if name in rows.columns]
        table = rows.group_by(keys, maintain_order=True).agg(
            pl.col("media_id").alias("media_ids"), pl.col(context).first()
        )
        table = ITEMS.check(table.with_columns(item_id=_names(table)), "items")
        return Layout(table, member="observation_id", listed="observation_id")

    def loose(self, files: Sequence[Path], context: Mapping[str, Any] | None = None) -> pl.DataFrame:
        return loose_items(files, context)


def _names(table: pl.DataFrame) -> pl.Expr:
    """What to call the items: by the observation, and by the domain as well where it is in several."""
    if "domain" not in table.columns:
        return pl.col("observation_id")
    several = pl.col("observation_id").is_duplicated()
    named = pl.format("{}-{}", "observation_id", pl.col("domain").fill_null("other"))
    return pl.when(several).then(named).otherwise("observation_id")
