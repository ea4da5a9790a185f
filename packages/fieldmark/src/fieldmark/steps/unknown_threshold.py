"""Where strange becomes "unknown"."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Metric, Task
from fieldmark.errors import MisuseError
from fieldmark.metrics.openset import f1_of_class
from fieldmark.questions.truth import Truth
from fieldmark.runs.label_scores import LabelScores
from fieldmark.settings import setting
from fieldmark.steps.base import Lesson, Step
from fieldmark.steps.unknown_probability import strangeness_of
from fieldmark.tables.labels import UNKNOWN

RULES = ("task", "f1-unknown", "tpr-95")
ACCEPTED = 0.95
# Lines that are tried: every score on val, or so many quantiles where there are more.
MOST_LINES = 200


@dataclass(frozen=True)
class UnknownThreshold(Step):
    """Answers "unknown" (-1) where the unknown score lies above a threshold; otherwise the best known label.

    Args:
        rule: How the threshold is found on val. `task`: the best value of the first metric of the task that reads the
            answer; `f1-unknown`: the best F1 of unknown; `tpr-95`: 95 % of the known items are accepted, which needs
            no unknown ones. Among equally good lines the highest is taken, which calls the fewest items unknown.
        threshold: Found by `fit`; None answers with a known label always.
    """

    rule: str = setting("task", choices=RULES)
    threshold: float | None = None
    name: ClassVar[str] = "unknown-threshold"
    learns_from_unknown: ClassVar[bool] = True
    decides: ClassVar[bool] = True
    needs_unknown: ClassVar[bool] = True

    def check(self, task: Task) -> None:
        if not task.unknown:
            raise MisuseError("The step unknown-threshold needs a benchmark with unknown species.")

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        score, strange = strangeness_of(val), lesson.targets.unknown
        if self.rule == "tpr-95":
            return replace(self, threshold=_accepting(score[~strange]))
        if not strange.any():
            raise MisuseError(
                f"The threshold for unknown (rule {self.rule}) needs unknown species in val, and val has none: "
                "use the rule tpr-95."
            )
        metric = None if self.rule == "f1-unknown" else decision_metric(lesson.task)
        best, truth = best_known(val), lesson.truth
        rows = pl.DataFrame({"item_id": val.items, "label": lesson.labels.decode(truth)})
        shown = Truth(rows, val.items, val.items)
        evaluation = lesson.task.answer.evaluate(val, shown, lesson.labels, lesson.taxa, 1)

        def value(line: float) -> float:
            answers = np.where(score > line, np.int32(UNKNOWN), best)
            if metric is None:
                return f1_of_class(truth, answers, cls=UNKNOWN)
            reached = metric.value(**metric.arguments(evaluation.with_answers(answers)))
            return reached if metric.higher_is_better else -reached

        lines = sorted(_lines(score), reverse=True)
        return replace(self, threshold=float(max(lines, key=value)))

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        best = best_known(predictions)
        if self.threshold is not None:
            best = np.where(strangeness_of(predictions) > self.threshold, np.int32(UNKNOWN), best)
        return predictions.decided(best)


def decision_metric(task: Task) -> Metric | None:
    """The first metric of a task that depends on the first answer and on nothing that needs scores."""
    return next((metric for metric in task.metrics if metric.first_answer), None)


def best_known(predictions: LabelScores) -> NDArray[np.int32]:
    """The known label of highest score of each item."""
    return np.asarray(predictions.scores.argmax(axis=1), dtype=np.int32)


def _accepting(score: NDArray[np.float64]) -> float:
    """The lowest score at or below which at least 95 % of the items lie."""
    ordered = np.sort(score)
    return float(ordered[int(np.ceil(ACCEPTED * len(ordered) - 1e-9)) - 1])


def _lines(score: NDArray[np.float64]) -> NDArray[np.float64]:
    distinct = np.unique(score)
    if len(distinct) > MOST_LINES:
        distinct = np.unique(np.quantile(score, np.linspace(0, 1, MOST_LINES), method="inverted_cdf"))
    # One below all, so that everything may be called unknown.
    return np.append(distinct, distinct[0] - max(abs(float(distinct[0])), 1.0))
