"""From the chance of each label to a list of labels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import LearnsFrom
from fieldmark.runs.code_sets import CodeSets, offsets_of
from fieldmark.runs.label_scores import LabelScores
from fieldmark.settings import setting
from fieldmark.steps.base import Lesson, Step
from fieldmark.steps.multilabel import Chances, Holds, chances_of, enough_rows

# A label with fewer true items on val takes the threshold that all of them share.
FEWEST = 10
# How many thresholds are tried for one label, and how often each label gets its turn.
TRIED, ROUNDS = 24, 2


@dataclass(frozen=True)
class ListLabels(Step):
    """Lists the labels whose chance reaches a threshold: the one with the highest mean F1 of the items of val.

    The chances stay as they are. With `by=label` the labels that val has often get a threshold of their own, found one
    after the other; each is kept only if the mean F1 rises.

    Args:
        by: "shared" for one threshold, "label" for one for each frequent label as well.
        at_least: How many labels every item lists, the likeliest ones where the threshold leaves fewer.
        shared: The threshold of labels without one of their own.
        own: Thresholds by label.
    """

    by: str = setting("shared", choices=("shared", "label"))
    at_least: int = setting(0, least=0)
    shared: float = 0.5
    own: dict[str, float] = field(default_factory=dict)
    name: ClassVar[str] = "label-lists"
    takes_lists: ClassVar[bool] = True
    decides: ClassVar[bool] = True

    @property
    def learns_from(self) -> tuple[LearnsFrom, ...]:
        return ("val",) if self.by == "label" else ()

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        chances, holds = chances_of(val), lesson.holds
        if not holds.any():
            return self
        tried = _candidates(chances[enough_rows(*chances.shape)].ravel())
        shared = float(tried[np.argmax([_mean_f1(self._listed(chances, threshold), holds) for threshold in tried])])
        if self.by == "shared":
            return replace(self, shared=shared, own={})
        return replace(self, shared=shared, own=self._own(chances, holds, shared, val.labels.names))

    def _own(self, chances: Chances, holds: Holds, shared: float, names: tuple[str, ...]) -> dict[str, float]:
        """Thresholds of frequent labels, one after the other, each the one of highest mean F1 given the others."""
        thresholds = np.full(len(names), shared)
        listed = (chances >= shared) & (chances > 0)
        hits, named = (listed & holds).sum(axis=1), listed.sum(axis=1) + holds.sum(axis=1)
        best = _mean_of(hits, named)
        frequent = np.flatnonzero(holds.sum(axis=0) >= FEWEST)
        for code in np.tile(frequent, ROUNDS):
            column, true = chances[:, code], holds[:, code]
            tried = _candidates(column)
            options = (column >= tried[:, None]) & (column > 0)
            other_hits, other_named = hits - (listed[:, code] & true), named - listed[:, code]
            values = _mean_of(other_hits + (options & true), other_named + options)
            place = int(np.argmax(values))
            if values[place] > best:
                best, thresholds[code], listed[:, code] = values[place], tried[place], options[place]
                hits, named = other_hits + (options[place] & true), other_named + options[place]
        if self.at_least and _mean_f1(self._listed(chances, thresholds), holds) <= _mean_f1(
            self._listed(chances, shared), holds
        ):
            return {}
        return {names[code]: float(thresholds[code]) for code in frequent if thresholds[code] != shared}

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        thresholds = np.array([self.own.get(name, self.shared) for name in predictions.labels.names])
        # A hair lower, so that single precision does not decide.
        listed = self._listed(chances_of(predictions), thresholds * (1 - 1e-6))
        _, codes = np.nonzero(listed)
        return predictions.decided(CodeSets(codes.astype(np.int32), offsets_of(listed.sum(axis=1))))

    def _listed(self, chances: Chances, thresholds: Chances | float) -> Holds:
        listed = np.asarray((chances >= thresholds) & (chances > 0))
        if self.at_least:
            likeliest = np.argsort(-chances, axis=1, kind="stable")[:, : self.at_least]
            few = np.flatnonzero(listed.sum(axis=1) < self.at_least)
            listed[few[:, None], likeliest[few]] = True
        return listed


def _candidates(chances: Chances) -> Chances:
    """Thresholds to try: chances that occur, evenly spread over the higher ones."""
    distinct = np.unique(chances[chances > 0])
    if len(distinct) <= TRIED:
        return distinct if len(distinct) else np.array([1.0])
    shares = 1 - np.geomspace(1 / len(distinct), 0.5, TRIED)
    return np.asarray(np.unique(np.quantile(distinct, shares, method="nearest")))


def _mean_f1(listed: Holds, holds: Holds) -> float:
    """The mean F1 of the items; one without a true and without a listed label counts 1, or no list could be right."""
    return float(_mean_of((listed & holds).sum(axis=1), listed.sum(axis=1) + holds.sum(axis=1)))


def _mean_of(hits: NDArray[np.int64], named: NDArray[np.int64]) -> NDArray[np.float64]:
    """The same from the labels that were rightly listed and those that were listed or true; items are the last axis."""
    return np.asarray(np.where(named > 0, 2.0 * hits / np.maximum(named, 1), 1.0).mean(axis=-1))
