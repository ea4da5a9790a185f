"""Which labels hold, as a list without an order: the answer itself is judged, not how sure it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from fieldmark.questions.answer import LooseTruth
from fieldmark.questions.any_labels import AnyLabels
from fieldmark.questions.items import Items, Layout
from fieldmark.questions.targets import PairTargets
from fieldmark.questions.truth import Truth
from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.labels import Labels

SAMPLE_LABELS = 3


@dataclass(frozen=True)
class ListedLabels(AnyLabels):
    """Every item has a list of labels, an empty one included; which scores are enough to be listed is a decision.

    Args:
        silence: The label that stands for "none of the others" in truth and runs, where a challenge has one.
    """

    wants: ClassVar[str] = "a list of labels"
    silence: str = ""

    @property
    def default_steps(self) -> tuple[str, ...]:
        return ("presence", "label-lists")

    def comparable(self, names: Iterable[str]) -> set[str]:
        return super().comparable(names) - {self.silence}

    def labels(self, dataset: Dataset, layout: Layout) -> Labels:
        return self._with_silence(super().labels(dataset, layout))

    def truth(
        self, dataset: Dataset, table: pl.DataFrame, layout: Layout, units: Sequence[str], groups: pl.DataFrame
    ) -> Truth:
        return self._with_silent_items(super().truth(dataset, table, layout, units, groups))

    def targets(self, dataset: Dataset, table: pl.DataFrame, layout: Layout, labels: Labels) -> PairTargets:
        named = super().targets(dataset, table, layout, labels)
        if not self.silence:
            return named
        silent = np.setdiff1d(np.arange(len(table), dtype=np.int32), named.row)
        code = np.full(len(silent), labels.code_of[self.silence], dtype=np.int32)
        return replace(
            named,
            row=np.concatenate([named.row, silent]),
            code=np.concatenate([named.code, code]),
            foreground=np.concatenate([named.foreground, np.ones(len(silent), dtype=np.bool_)]),
        )

    def given(self, items: Items, truth: Any, classes: Any, media: Any, by: Sequence[str]) -> LooseTruth:
        loose = super().given(items, truth, classes, media, by)
        return loose._replace(truth=self._with_silent_items(loose.truth), labels=self._with_silence(loose.labels))

    def _with_silence(self, labels: Labels) -> Labels:
        if not self.silence or self.silence in labels.code_of:
            return labels
        return Labels((*labels.names, self.silence))

    def _with_silent_items(self, truth: Truth) -> Truth:
        if not self.silence:
            return truth
        named = set(truth.rows["item_id"])
        silent = [item for item in truth.items if item not in named]
        rows = pl.DataFrame({"item_id": silent, "label": [self.silence] * len(silent)}, schema=truth.rows.schema)
        return replace(truth, rows=pl.concat([truth.rows, rows]))

    def sample(self, items: tuple[str, ...], labels: Labels, rng: np.random.Generator, *, dense: bool) -> LabelScores:
        silent = [labels.code_of[self.silence]] if self.silence in labels.code_of else []
        loud = np.setdiff1d(np.arange(len(labels)), silent)
        lengths = rng.integers(min(SAMPLE_LABELS, len(loud)) + 1, size=len(items))
        lists = CodeSets.of_lists([rng.choice(loud, size=n, replace=False).tolist() or silent for n in lengths])
        return LabelScores.listed(items, labels, lists, np.ones(len(lists.codes)))
