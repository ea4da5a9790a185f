"""Predictions beside the truth, as the arrays that metrics read.

`Answers` is what a metric's `reads` refer to: each field is computed when a metric asks for it, and once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import InputError, MisuseError
from fieldmark.labels import UNKNOWN, Labels
from fieldmark.labels import UNKNOWN_NAME as UNKNOWN_NAME
from fieldmark.metrics.geo import AdaptiveSets, adaptive_sets, adaptive_sets_of_lists
from fieldmark.runs.predictions import Predictions
from fieldmark.views import Truth

SET_SIZE = 30


def answer_labels(known: Labels, *, unknown: bool) -> Labels:
    """The labels a run may name: the known ones and, in an open set, "-1"."""
    return Labels((*known.names, UNKNOWN_NAME)) if unknown else known


@dataclass(frozen=True)
class Answers:
    """The answers to the items of a truth with one label per item.

    Args:
        predictions: The answers, for at least the items of the truth.
        truths: The true labels and the units.
        known: The known labels; -1 is none of them.
        classes: What is known about the labels (`poisonous`, `rare`, ...), one row per label.
        depth: How many ranks the metrics look at.
    """

    predictions: Predictions
    truths: Truth
    known: Labels
    classes: pl.DataFrame
    depth: int

    @property
    def n_classes(self) -> int:
        return len(self.known)

    @cached_property
    def selected(self) -> Predictions:
        """The predictions of the items of the truth, in their order."""
        return self.predictions.select(self.truths.items)

    @cached_property
    def truth(self) -> NDArray[np.int32]:
        """The code of the true label of each item, -1 for unknown."""
        label_of = dict(zip(self.truths.rows["item_id"], self.truths.rows["label"], strict=True))
        names = [label_of.get(item) for item in self.truths.items]
        codes = self.known.encode(names)
        for item, name, code in zip(self.truths.items, names, codes, strict=True):
            if code == UNKNOWN and not (name == UNKNOWN_NAME and UNKNOWN_NAME in self.predictions.labels.code_of):
                raise MisuseError(f"Item {item!r} has the label {name!r}, which the predictions do not know.")
        return codes

    @cached_property
    def ranked(self) -> NDArray[np.int32]:
        """The codes of the best labels, best first; -1 for unknown, and where there are fewer."""
        best = self.selected.top(self.depth)
        return np.where(best >= self.n_classes, np.int32(UNKNOWN), best)

    @property
    def predicted(self) -> NDArray[np.int32]:
        return self.ranked[:, 0]

    @cached_property
    def rank_of_truth(self) -> NDArray[np.int64]:
        """The rank of the true label among all that a run lists, from 1; 0 where it is not listed."""
        listed = self.selected.top(self.selected.scores.shape[1])
        hit = (listed == self.truth[:, None]) & (listed >= 0)
        return np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, 0)

    @property
    def is_known(self) -> NDArray[np.bool_]:
        return np.asarray(self.truth != UNKNOWN)

    @cached_property
    def unknown_score(self) -> NDArray[np.float32]:
        if self.selected.unknown is None:
            raise InputError("the run", found="no unknown_score", expected="how strange each item looks")
        return self.selected.unknown

    @cached_property
    def probabilities(self) -> NDArray[np.float32]:
        """One column per known label: probabilities where the predictions have them, else their scores."""
        if not self.selected.dense:
            raise InputError("the run", found="a list of labels", expected="a score for every label")
        return self.selected.scores if self.selected.scale == "score" else self.selected.probabilities()

    @cached_property
    def listed(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """The answers as a long table: item, label and score of every pair that is listed."""
        chosen = self.selected
        if chosen.codes is None:
            items, labels = np.divmod(np.arange(chosen.scores.size), chosen.scores.shape[1])
            return items.astype(np.int32), labels.astype(np.int32), chosen.scores.ravel()
        rows, columns = np.nonzero(chosen.codes >= 0)
        return rows.astype(np.int32), chosen.codes[rows, columns], chosen.scores[rows, columns]

    @property
    def segment(self) -> NDArray[np.int32]:
        return self.listed[0]

    @property
    def cls(self) -> NDArray[np.int32]:
        return self.listed[1]

    @property
    def score(self) -> NDArray[np.float32]:
        return self.listed[2]

    @cached_property
    def true_pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Item and label of every true label, for items with any number of them."""
        row_of = {item: row for row, item in enumerate(self.truths.items)}
        rows = self.truths.rows.filter(pl.col("item_id").is_in(list(row_of)))
        return np.array([row_of[item] for item in rows["item_id"]], dtype=np.int32), self.known.encode(rows["label"])

    @property
    def true_segment(self) -> NDArray[np.int32]:
        return self.true_pairs[0]

    @property
    def true_cls(self) -> NDArray[np.int32]:
        return self.true_pairs[1]

    @cached_property
    def sets_of_30(self) -> AdaptiveSets:
        """The adaptive sets of 30 labels on average; equal scores at the threshold are in."""
        return self._sets(strict=False)

    @cached_property
    def strict_sets_of_30(self) -> AdaptiveSets:
        """The same, equal scores at the threshold left out."""
        return self._sets(strict=True)

    def _sets(self, *, strict: bool) -> AdaptiveSets:
        if self.selected.codes is None:
            return adaptive_sets([self.selected.scores], self.truth, k=SET_SIZE, strict=strict)
        return adaptive_sets_of_lists(*self.listed, self.truth, k=SET_SIZE, strict=strict)

    @cached_property
    def dangerous(self) -> NDArray[np.bool_]:
        """For each known label whether it is poisonous or venomous."""
        return self._flag("poisonous")

    @cached_property
    def is_rare(self) -> NDArray[np.bool_]:
        """For each item whether its true label is listed as rare."""
        return self._flag("rare")[self.truth]

    def confusion(self) -> dict[str, Any] | None:
        """How often items of one group of labels are answered with another, where the classes name a `group`.

        Returns:
            `groups`, and `counts` with one row per true group and one column per answered one; unknown and unanswered
            items stand in none.
        """
        if "group" not in self.classes.columns:
            return None
        group_of = dict(self.classes.select("label", "group").drop_nulls().iter_rows())
        groups = Labels.of(group_of.values())
        codes = groups.encode([group_of.get(name) for name in self.known.names])
        seen = (self.truth != UNKNOWN) & (self.predicted != UNKNOWN)
        true, answered = codes[self.truth[seen]], codes[self.predicted[seen]]
        both = (true != UNKNOWN) & (answered != UNKNOWN)
        counts = np.zeros((len(groups), len(groups)), dtype=np.int64)
        np.add.at(counts, (true[both], answered[both]), 1)
        return {"groups": list(groups.names), "counts": counts.tolist()}

    def _flag(self, name: str) -> NDArray[np.bool_]:
        if name not in self.classes.columns:
            found = f"the columns {', '.join(self.classes.columns)}"
            raise InputError("the classes", found=found, expected=f"a column {name!r} with true or false")
        rows = pl.DataFrame({"label": self.known.names}).join(
            self.classes, on="label", how="left", maintain_order="left"
        )
        return rows[name].fill_null(False).to_numpy().astype(np.bool_)
