"""Which of the labels that somebody looked for are present."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from fieldmark.questions.answer import CLASSES_FILE, LooseTruth, read_classes
from fieldmark.questions.any_labels import AnyLabels
from fieldmark.questions.items import TRUTH_FILE, Items, Layout
from fieldmark.questions.targets import PairTargets
from fieldmark.questions.truth import Truth
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.labels import Labels
from fieldmark.tables.schema import missing_column

PRESENT = "present"


@dataclass(frozen=True)
class Presence(AnyLabels):
    """As any labels, but a missing pair is an absence only where somebody looked.

    A survey of beetles says nothing about birds. A table of truth names every pair that was asked about, with
    `present` true or false; a release lists in the column `asked` of its observations the labels that were looked for.
    Where that is empty, all of them were. Places where nothing was found are answers as well: a release that lists
    `labels` knows them.
    """

    wants: ClassVar[str] = "presence of each label"

    def truth(
        self, dataset: Dataset, table: pl.DataFrame, layout: Layout, units: Sequence[str], groups: pl.DataFrame
    ) -> Truth:
        named = super().truth(dataset, table, layout, units, groups)
        return replace(named, asked=_asked(table, dataset.taxa["label"].to_list()))

    def targets(self, dataset: Dataset, table: pl.DataFrame, layout: Layout, labels: Labels) -> PairTargets:
        named = super().targets(dataset, table, layout, labels)
        if _asked(table, labels.names) is None:
            return named
        codes = [labels.encode(labels.names if names is None else names) for names in table["asked"].to_list()]
        pairs = PairTargets.concat([named])  # the same pairs, to which what was asked is added
        matrix = pairs.holds(len(labels))
        for row, own in enumerate(codes):
            matrix[row, own[own >= 0]] = True
        return replace(pairs, asked=matrix)

    def write_truth(
        self, items: Items, folder: Path, truth: Truth, table: pl.DataFrame, taxa: pl.DataFrame, by: Sequence[str]
    ) -> None:
        every = pl.DataFrame({"item_id": truth.items}).join(taxa.select("label"), how="cross")
        asked = every if truth.asked is None else truth.asked.select("item_id", "label")
        found = truth.rows.select("item_id", "label").with_columns(present=pl.lit(True))
        units = pl.DataFrame({"item_id": truth.items, "unit": truth.units})
        pairs = asked.join(found, on=["item_id", "label"], how="left", maintain_order="left")
        rows = pairs.with_columns(pl.col(PRESENT).fill_null(False)).join(units, on="item_id", maintain_order="left")
        shown_by = table.select("item_id", *(name for name in by if name in table.columns))
        rows = rows.join(shown_by, on="item_id", maintain_order="left")
        rows.rename({"item_id": "id"}).write_csv(folder / TRUTH_FILE)
        taxa.write_csv(folder / CLASSES_FILE)

    def given(self, items: Items, truth: Any, classes: Any, media: Any, by: Sequence[str]) -> LooseTruth:
        rows = items.read_truth(truth, media, by)
        if PRESENT not in rows.rows.columns:
            raise missing_column(rows.where, PRESENT, rows.rows.columns)
        given = rows.table.filled("label", PRESENT).parsed(PRESENT, bool)
        table = given.once(["item_id", "label"], "a pair of id and label again", "each pair once").frame
        labels, class_table = read_classes(classes, table["label"].unique(maintain_order=True), rows.table)
        asked = table.select("item_id", "label")
        true = table.filter(pl.col(PRESENT)).select("item_id", "label")
        known = Truth(true, rows.items, rows.units, rows.groups, asked, given=rows.table)
        return LooseTruth(known, labels, class_table)


def _asked(table: pl.DataFrame, labels: Sequence[str]) -> pl.DataFrame | None:
    """Every pair that was asked about; None where all were."""
    if "asked" not in table.columns or table["asked"].is_null().all():
        return None
    everything = pl.lit(pl.Series([list(labels)], dtype=pl.List(pl.String)))
    asked = pl.when(pl.col("asked").is_null()).then(everything).otherwise(pl.col("asked"))
    return table.select("item_id", label=asked).explode("label", empty_as_null=False).drop_nulls("label")
