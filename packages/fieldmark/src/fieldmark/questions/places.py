"""One answer for each place: a point on the map, with or without anything photographed there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from fieldmark.questions.items import FILING, LABELS, Items, Layout, listed_pairs
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.schema import ITEMS


@dataclass(frozen=True)
class Places(Items):
    """Every observation of a release is a place. The release need not have media: `parts` stand with observations.

    Where observations have a column `labels`, it lists everything that was found at a place.
    """

    noun: ClassVar[str] = "place"

    def rows(self, dataset: Dataset) -> pl.DataFrame:
        if "parts" in dataset.observations.columns:
            return dataset.observations
        parts = dataset.media.group_by("observation_id", maintain_order=True).agg(pl.col("parts").first())
        return dataset.observations.join(parts, on="observation_id", how="left", maintain_order="left")

    def lay_out(self, dataset: Dataset, rows: pl.DataFrame) -> Layout:
        media = dataset.media.group_by("observation_id", maintain_order=True).agg(pl.col("media_id").alias("media_ids"))
        table = rows.join(media, on="observation_id", how="left", maintain_order="left").with_columns(
            pl.col("media_ids").fill_null([]), item_id="observation_id"
        )
        kept = table.drop([name for name in (*FILING, LABELS) if name in table.columns])
        pairs = listed_pairs(table)
        return Layout(ITEMS.check(kept, "items"), member="item_id", listed="observation_id", pairs=pairs)
