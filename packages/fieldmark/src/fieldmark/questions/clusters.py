"""Which items belong together: clusters, without any labels to choose from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.questions.answer import Answer, Evaluation, LooseTruth
from fieldmark.questions.items import Items, Layout
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.targets import LabelTargets, Shape
from fieldmark.questions.truth import Truth
from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.labels import Labels


@dataclass(frozen=True)
class Clusters(Answer):
    """Items are put together by what they show; the names of clusters mean nothing.

    The truth names what each item shows (the individual). Methods learn from the names of train, which test need not
    share.

    Args:
        column: The column of the items that says what they show.
    """

    column: str = "label"
    shape: ClassVar[Shape] = "codes"
    wants: ClassVar[str] = "a cluster"

    @property
    def default_steps(self) -> tuple[str, ...]:
        return ()

    def comparable(self, names: Iterable[str]) -> set[str]:
        """None: the names of clusters mean nothing."""
        return set()

    def labels(self, dataset: Dataset, layout: Layout) -> Labels:
        return OneLabel(self.column).labels(dataset, layout)

    def truth(
        self, dataset: Dataset, table: pl.DataFrame, layout: Layout, units: Sequence[str], groups: pl.DataFrame
    ) -> Truth:
        return OneLabel(self.column).truth(dataset, table, layout, units, groups)

    def targets(self, dataset: Dataset, table: pl.DataFrame, layout: Layout, labels: Labels) -> LabelTargets:
        return LabelTargets(labels.encode(table[self.column]))

    def given(self, items: Items, truth: Any, classes: Any, media: Any, by: Sequence[str]) -> LooseTruth:
        rows = items.read_truth(truth, media, by)
        rows.table.filled("label").once(["item_id"], "the id {item_id} again", "each id once")
        named = rows.rows.select("item_id", "label")
        table = pl.DataFrame({"label": []}, schema={"label": pl.String})
        known = Truth(named, rows.items, rows.units, rows.groups, given=rows.table)
        return LooseTruth(known, Labels.of(named["label"]), table)

    def evaluate(
        self, predictions: LabelScores, truth: Truth, labels: Labels, classes: pl.DataFrame, depth: int
    ) -> ClusterEvaluation:
        return ClusterEvaluation(truth, predictions)

    def sample(self, items: tuple[str, ...], labels: Labels, rng: np.random.Generator, *, dense: bool) -> LabelScores:
        several = max(len(items) // 3, 1)
        clusters = Labels.of(f"cluster_{number}" for number in range(several))
        lists = CodeSets.single(rng.integers(several, size=len(items)))
        return LabelScores.listed(items, clusters, lists, np.ones(len(items)))


@dataclass(frozen=True)
class ClusterEvaluation(Evaluation):
    """The cluster of each item beside what it shows.

    Args:
        predictions: The clusters, for at least the items of the truth.
    """

    predictions: LabelScores

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.identity))

    def take(self, rows: NDArray[np.bool_]) -> Self:
        return replace(self, truth=self.truth.take(rows))

    @cached_property
    def identity(self) -> NDArray[np.int32]:
        """What each item shows, numbered."""
        rows = pl.DataFrame({"item_id": self.truth.items}).join(
            self.truth.rows, on="item_id", how="left", maintain_order="left"
        )
        return Labels.of(rows["label"]).encode(rows["label"])

    @cached_property
    def cluster(self) -> NDArray[np.int32]:
        """The cluster of each item, numbered."""
        return self.predictions.select(self.truth.items).top(1)[:, 0]
