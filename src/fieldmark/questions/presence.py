"""Which of the labels that somebody looked for are present."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from fieldmark.datasets.base import Dataset
from fieldmark.labels import Labels
from fieldmark.questions.answer import LooseTruth, read_classes
from fieldmark.questions.any_labels import AnyLabels
from fieldmark.questions.items import Items, Layout
from fieldmark.questions.targets import PairTargets
from fieldmark.questions.truth import Truth
from fieldmark.tables import missing_column

PRESENT = "present"


@dataclass(frozen=True)
class Presence(AnyLabels):
    """As any labels, but a missing pair is an absence only where somebody looked.

    A survey of beetles says nothing about birds. A table of truth names every pair that was asked about, with
    `present` true or false; a release lists in the column `asked` of its observations the labels that were looked for.
    """

    def truth(
        self, dataset: Dataset, table: pl.DataFrame, layout: Layout, units: Sequence[str], groups: pl.DataFrame
    ) -> Truth:
        named = super().truth(dataset, table, layout, units, groups)
        return replace(named, asked=_asked(table))

    def targets(self, dataset: Dataset, table: pl.DataFrame, layout: Layout, labels: Labels) -> PairTargets:
        named = super().targets(dataset, table, layout, labels)
        asked = _asked(table)
        if asked is None:
            return named
        listed = table["asked"].to_list()
        codes = [labels.encode(names) for names in listed]
        pairs = PairTargets.concat([named])  # the same pairs, to which what was asked is added
        matrix = pairs.holds(len(labels))
        for row, own in enumerate(codes):
            matrix[row, own[own >= 0]] = True
        return replace(pairs, asked=matrix)

    def given(self, items: Items, truth: Any, classes: Any, media: Any, by: Sequence[str]) -> LooseTruth:
        rows = items.read_truth(truth, media, by)
        if PRESENT not in rows.rows.columns:
            raise missing_column(rows.where, PRESENT, rows.rows.columns)
        given = rows.table.filled("label", PRESENT).parsed(PRESENT, bool)
        table = given.once(["item_id", "label"], "a pair of id and label again", "each pair once").frame
        labels, class_table = read_classes(classes, table["label"].unique(maintain_order=True), rows.where)
        asked = table.select("item_id", "label")
        true = table.filter(pl.col(PRESENT)).select("item_id", "label")
        return LooseTruth(Truth(true, rows.items, rows.units, rows.groups, asked), labels, class_table)


def _asked(table: pl.DataFrame) -> pl.DataFrame | None:
    if "asked" not in table.columns:
        return None
    return table.select("item_id", label="asked").explode("label", empty_as_null=False).drop_nulls("label")
