"""Any number of labels per item, none included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.questions.answer import Answer, Evaluation, LooseTruth, read_classes
from fieldmark.questions.items import LABELS, Items, Layout
from fieldmark.questions.one_label import random_scores
from fieldmark.questions.targets import PairTargets, Shape
from fieldmark.questions.truth import Truth
from fieldmark.runs.label_scores import LabelScores, Scores
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.labels import UNKNOWN, Labels
from fieldmark.tables.schema import TRUTH


@dataclass(frozen=True)
class AnyLabels(Answer):
    """Every item has any number of labels: birds that sing at once, plants in a quadrat.

    Items in which nothing was found are answers as well: a release that lists `labels` knows them.
    """

    shape: ClassVar[Shape] = "pairs"
    several: ClassVar[bool] = True
    wants: ClassVar[str] = "a score for each label"

    @property
    def default_steps(self) -> tuple[str, ...]:
        return ("presence",)

    def is_known(self, items: Items, dataset: Dataset, table: pl.DataFrame) -> bool:
        if LABELS not in dataset.observations.columns:
            return super().is_known(items, dataset, table)
        known = dataset.observations.filter(pl.col(LABELS).is_not_null()).select("observation_id")
        return len(table) > 0 and table.join(known, on="observation_id", how="anti").is_empty()

    def truth(
        self, dataset: Dataset, table: pl.DataFrame, layout: Layout, units: Sequence[str], groups: pl.DataFrame
    ) -> Truth:
        rows = _pairs(layout, self.column).select("item_id", "label")
        inside = rows.join(table.select("item_id"), on="item_id", how="semi")
        return Truth(TRUTH.check(inside, "truth"), tuple(table["item_id"]), tuple(units), groups)

    def targets(self, dataset: Dataset, table: pl.DataFrame, layout: Layout, labels: Labels) -> PairTargets:
        numbered = table.select("item_id").with_row_index("row")
        pairs = _pairs(layout, self.column).join(numbered, on="item_id", how="inner")
        code = labels.encode(pairs["label"])
        known = code != UNKNOWN
        return PairTargets(
            pairs["row"].to_numpy().astype(np.int32)[known],
            code[known],
            pairs["foreground"].to_numpy()[known],
            labels.encode(table[self.column]),
            len(labels),
        )

    def given(self, items: Items, truth: Any, classes: Any, media: Any, by: Sequence[str]) -> LooseTruth:
        rows = items.read_truth(truth, media, by)
        named = rows.rows.drop_nulls("label").select("item_id", "label").unique(maintain_order=True)
        labels, table = read_classes(classes, named["label"], rows.table)
        return LooseTruth(Truth(named, rows.items, rows.units, rows.groups, given=rows.table), labels, table)

    def evaluate(
        self, predictions: LabelScores, truth: Truth, labels: Labels, classes: pl.DataFrame, depth: int
    ) -> PairEvaluation:
        return PairEvaluation(truth, predictions.coded_by(labels), labels)

    def sample(self, items: tuple[str, ...], labels: Labels, rng: np.random.Generator, *, dense: bool) -> LabelScores:
        return random_scores(items, labels, rng, dense=dense)


def _pairs(layout: Layout, column: str) -> pl.DataFrame:
    """Item and label of every label; where a release has one per item, that one."""
    if layout.pairs is not None:
        return layout.pairs
    return layout.table.select("item_id", label=column, foreground=pl.lit(True)).drop_nulls("label")


@dataclass(frozen=True)
class PairEvaluation(Evaluation):
    """Pairs of item and label with a score beside the pairs that are true.

    Args:
        predictions: The answers, for at least the items of the truth.
        labels: The known labels.
    """

    predictions: LabelScores
    labels: Labels

    @property
    def n_classes(self) -> int:
        return len(self.labels)

    @property
    def class_names(self) -> Sequence[str]:
        return self.labels.names

    def take(self, rows: NDArray[np.bool_]) -> Self:
        return replace(self, truth=self.truth.take(rows))

    @cached_property
    def scored(self) -> tuple[NDArray[np.int32], NDArray[np.int32], Scores]:
        """Item, label and score of every pair that is listed."""
        return self.predictions.select(self.truth.items).pairs()

    @cached_property
    def true(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Item and label of every pair that is true."""
        return self._coded(self.truth.rows)

    @cached_property
    def asked(self) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
        """Item and label of every pair that was asked about; None where all were."""
        return None if self.truth.asked is None else self._coded(self.truth.asked)

    def _coded(self, pairs: pl.DataFrame) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        row_of = {item: row for row, item in enumerate(self.truth.items)}
        rows = pairs.filter(pl.col("item_id").is_in(list(row_of)))
        return np.array([row_of[item] for item in rows["item_id"]], dtype=np.int32), self.labels.encode(rows["label"])
