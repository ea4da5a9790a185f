"""Steps that adapt predictions to how frequent labels are among the items asked about.

The frequencies that a classifier expects are its mean calibrated posterior on val, and not the counts of labels there:
what the classifier adds up to on val is what its answers rest on. With an open set, unknown is a label of its own, with
a frequency of its own; left out, its items would be taken for many items of the labels that look like them.
`stats.prior_shift` has the formulas.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import LearnsFrom, Sees, Task
from fieldmark.errors import MisuseError
from fieldmark.runs.label_scores import LabelScores, log_softmax
from fieldmark.settings import setting
from fieldmark.stats.prior_shift import (
    Shares,
    confusion_weights,
    em_prior,
    mean_posterior,
    reweighted,
)
from fieldmark.steps.arrays import KeepsArrays
from fieldmark.steps.base import Lesson, Step
from fieldmark.tables.labels import Labels

# Fewer items than this tell nothing about frequencies: they are answered as they were.
LEAST_ITEMS = 30
# With more labels than this, EM drives the rare ones to 0, and pseudo-counts are the default.
MOST_LABELS_FOR_EM = 100
BLOCK_ITEMS = 4096


def default_step(labels: Labels) -> str:
    """Which estimator is taken where none is named."""
    return "prior-em" if len(labels) <= MOST_LABELS_FOR_EM else "prior-map"


class FromSource(KeepsArrays, Step):
    """A step that knows the frequencies that the answers of a classifier rest on (`source`, from val)."""

    learns_from_unknown: ClassVar[bool] = True

    @property
    def source(self) -> Shares:
        """The mean calibrated posterior on val: one share per label, and one of unknown last where it competes."""
        source: Shares | None = self.arrays.get("source")
        if source is None:
            raise ValueError(f"the step {self.name} has not been fitted yet")
        return source

    def check(self, task: Task) -> None:
        if task.answer.several:
            raise MisuseError(f"The step {self.name} is for one label per item, and here several may hold.")

    def refuse_unfit(self, predictions: LabelScores, task: Task) -> None:
        """Refuses what no frequency can be estimated from: scores that only rank, logits, an open set without unknown.

        Raises:
            MisuseError: Says which step must come before.
        """
        if predictions.scale == "score":
            raise MisuseError(f"The step {self.name} weighs probabilities, and these scores only rank.")
        if predictions.scale == "logit":
            raise MisuseError(
                f"The step {self.name} weighs calibrated probabilities: put --step temperature or bias-temperature "
                "before it."
            )
        if task.unknown and predictions.unknown_label is None:
            raise MisuseError(
                f"With an open set unknown is a label of its own for the step {self.name}: put --step max-softmax and "
                "unknown-probability before it, so that unknown has a probability."
            )

    def reweigh(self, predictions: LabelScores, log_weights: NDArray[np.float64]) -> LabelScores:
        """Predictions with each label made so much more or less frequent; unknown is the last, where it competes."""
        columns = np.empty_like(predictions.columns)
        for first in range(0, len(columns), BLOCK_ITEMS):
            rows = slice(first, first + BLOCK_ITEMS)
            columns[rows] = reweighted(log_softmax(predictions.columns[rows].astype(np.float64)), log_weights)
        changed = predictions.with_columns(columns, "log_probability")
        if changed.unknown_label is None:
            return changed
        strange = changed.unknown_label.astype(np.float64)
        not_strange = np.log(-np.expm1(np.minimum(strange, -1e-12)))
        return replace(changed, unknown=(strange - not_strange).astype(changed.scores.dtype))


def posteriors_of(predictions: LabelScores) -> NDArray[Any]:
    """The posteriors of all items in the precision of the predictions, unknown last where it competes."""
    return predictions.probabilities()


class OnTestSet(FromSource):
    """A step that looks at all items asked about to tell how frequent labels are among them."""

    sees: ClassVar[Sees] = "test set"

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        self.refuse_unfit(val, lesson.task)
        return self.with_arrays({"source": mean_posterior(posteriors_of(val))})

    @abstractmethod
    def prior(self, predictions: LabelScores) -> Shares:
        """How frequent each label is among some items, and unknown last where it competes."""

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        if len(predictions.items) < LEAST_ITEMS:
            return predictions
        with np.errstate(divide="ignore"):
            return self.reweigh(predictions, np.log(self.prior(predictions)) - np.log(self.source))


@dataclass(frozen=True)
class PriorEm(OnTestSet):
    """The frequencies of highest likelihood, by EM (Saerens et al., 2002).

    Labels that hardly any item could be end at 0, so that they are never answered: with many rare labels take
    `prior-map`.
    """

    name: ClassVar[str] = "prior-em"

    def prior(self, predictions: LabelScores) -> Shares:
        return em_prior(posteriors_of(predictions), self.source).shares


@dataclass(frozen=True)
class PriorMap(OnTestSet):
    """The frequencies of highest posterior under a Dirichlet distribution (Sulc and Matas, 2019).

    Args:
        alpha: Its parameter, at least 1: each label has (alpha - 1) items more, on average over labels; 3 in the paper.
        toward: Of which labels these items are: as val has them (`source`), so that nothing changes without items that
            say otherwise; or as many of each (`flat`), as in the paper, which makes rare labels more frequent.
    """

    alpha: float = setting(3.0, least=1, below=np.inf)
    toward: Literal["source", "flat"] = "source"
    name: ClassVar[str] = "prior-map"

    def prior(self, predictions: LabelScores) -> Shares:
        labels = len(self.source)
        toward = self.source if self.toward == "source" else np.full(labels, 1 / labels)
        pseudo = (self.alpha - 1) * labels * toward
        return em_prior(posteriors_of(predictions), self.source, pseudo=pseudo).shares


@dataclass(frozen=True)
class PriorConfusion(OnTestSet):
    """Frequencies from how often each label is answered, and from which labels val has taken for which others.

    Args:
        solve: `rlls` (Azizzadenesheli et al., 2019) keeps labels as they were about which val says little; `bbse`
            (Lipton et al., 2018) solves the equations as they stand, which many labels or a small val do not allow.
    """

    solve: Literal["rlls", "bbse"] = "rlls"
    name: ClassVar[str] = "prior-confusion"

    @property
    def learns_from(self) -> tuple[LearnsFrom, ...]:
        return ("val",)

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        fitted = super().fit(val, lesson)
        truth = np.where(lesson.truth < 0, len(val.labels), lesson.truth)
        pairs = {"answered": _first_answers(val), "true": truth.astype(np.int32)}
        return fitted.with_arrays({**fitted.arrays, **pairs})

    def prior(self, predictions: LabelScores) -> Shares:
        labels, answered, true = len(self.source), self.arrays["answered"], self.arrays["true"]
        joint = np.zeros((labels, labels))
        np.add.at(joint, (answered, true), 1 / len(true))
        now = np.bincount(_first_answers(predictions), minlength=labels) / len(predictions.items)
        weights = confusion_weights(joint, now, items=len(true), regularize=self.solve == "rlls")
        shares = weights * self.source
        return np.asarray(shares / shares.sum()) if shares.sum() > 0 else self.source


def _first_answers(predictions: LabelScores) -> NDArray[np.int32]:
    """The column of the highest probability of each item; unknown is the last."""
    return np.asarray(predictions.columns.argmax(axis=1), dtype=np.int32)
