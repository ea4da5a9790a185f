"""Where strange becomes "unknown"."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Metric, Task
from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.labels import UNKNOWN
from fieldmark.metrics.openset import f1_of_class
from fieldmark.runs.predictions import Predictions
from fieldmark.steps.base import Asked
from fieldmark.steps.unknown_probability import strangeness_of, with_unknown

RULES = ("task", "f1-unknown", "tpr-95")
ACCEPTED = 0.95
# Lines that are tried: every score on val, or so many quantiles where there are more.
MOST_LINES = 200
# What a metric may read so that a line can be drawn for its sake.
READABLE = {"truth", "predicted", "n_classes", "dangerous"}


@dataclass(frozen=True)
class UnknownThreshold:
    """Answers "unknown" (-1) where the unknown score lies above a threshold; otherwise the best known label.

    Args:
        rule: How the threshold is found on val. `task`: the best value of the first metric of the task that reads the
            answer; `f1-unknown`: the best F1 of unknown; `tpr-95`: 95 % of the known items are accepted, which needs
            no unknown ones. Among equally good lines the highest is taken, which calls the fewest items unknown.
        threshold: Found by `fit`; None answers with a known label always.
    """

    rule: str = "task"
    threshold: float | None = None
    name: ClassVar[str] = "unknown-threshold"

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise MisuseError(f"--set rule={self.rule}: {did_you_mean(self.rule, RULES)}")

    def check(self, task: Task) -> None:
        if not task.unknown:
            raise MisuseError("The step unknown-threshold needs a benchmark with unknown species.")

    def fit(self, val: Predictions, truth: NDArray[np.int32], items: pl.DataFrame) -> Self:
        return self.fit_open(val, truth, items, None)

    def fit_open(self, val: Predictions, truth: NDArray[np.int32], items: pl.DataFrame, asked: Asked | None) -> Self:
        score, strange = strangeness_of(val), truth < 0
        if self.rule == "tpr-95":
            return replace(self, threshold=_accepting(score[~strange]))
        if not strange.any():
            raise MisuseError(
                f"The line to unknown (rule {self.rule}) is drawn by the unknown species of val, and val has none: "
                "use the rule tpr-95."
            )
        metric = None if self.rule == "f1-unknown" or asked is None else decision_metric(asked.task)
        n_labels = len(with_unknown(val).labels) - 1
        best = best_known(val, n_labels)
        about: dict[str, Any] = {"truth": truth, "n_classes": n_labels}
        if asked is not None:
            about["dangerous"] = asked.flag("poisonous")

        def value(line: float) -> float:
            answers = np.where(score > line, np.int32(UNKNOWN), best)
            if metric is None:
                return f1_of_class(truth, answers, cls=UNKNOWN)
            arguments = {name: (about | {"predicted": answers})[name] for name in metric.reads}
            found = metric.value(**arguments, **metric.options)
            return found if metric.higher_is_better else -found

        lines = sorted(_lines(score), reverse=True)
        return replace(self, threshold=float(max(lines, key=value)))

    def apply(self, predictions: Predictions, items: pl.DataFrame) -> Predictions:
        extended = with_unknown(predictions)
        unknown = len(extended.labels) - 1
        best = best_known(extended, unknown)
        if self.threshold is not None:
            best = np.where(strangeness_of(predictions) > self.threshold, np.int32(unknown), best)
        return replace(extended, answers=best)


def decision_metric(task: Task) -> Metric | None:
    """The first metric of a task that depends on the first answer and on nothing that only scores could tell."""
    return next((m for m in task.metrics if "predicted" in m.reads and set(m.reads) <= READABLE), None)


def best_known(predictions: Predictions, n_labels: int) -> NDArray[np.int32]:
    """The known label of highest score of each item."""
    return np.asarray(predictions.scores[:, :n_labels].argmax(axis=1), dtype=np.int32)


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
