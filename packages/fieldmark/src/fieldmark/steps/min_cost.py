"""The answer that is expected to cost least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from fieldmark.benchmarks.declarations import LearnsFrom, Task
from fieldmark.errors import InputError, MisuseError
from fieldmark.runs.label_scores import LabelScores
from fieldmark.settings import setting
from fieldmark.steps.base import Lesson, Step
from fieldmark.steps.costs import RULES, Costs, Prices, costs_by_rule, read_costs, rule_of
from fieldmark.storage.files import with_digest
from fieldmark.tables.labels import UNKNOWN, UNKNOWN_NAME, Labels

TASK = "task"


@dataclass(frozen=True)
class MinCost(Step):
    """Answers with the label a of least sum over y of P(y) W[y, a]; among equally cheap ones with the likeliest.

    The best decision where the probabilities are right (Duda and Hart, 1973), so calibrate before. The probabilities
    stay as they are: another price can be tried on the stored predictions.

    Args:
        cost: A rule (`fieldmark.steps.costs`), a CSV file, or `task`: what the task is measured by.
        c_p, c_e, c_u, c_k: What the rules charge.
        costs: The matrix, made by `fit`.
    """

    cost: str = TASK
    c_p: float = setting(100.0, least=0, below=inf)
    c_e: float = setting(1.0, least=0, below=inf)
    c_u: float = setting(10.0, least=0, below=inf)
    c_k: float = setting(1.0, least=0, below=inf)
    costs: Mapping[str, Any] = field(default_factory=dict)
    name: ClassVar[str] = "min-cost"
    learns_from_unknown: ClassVar[bool] = True
    decides: ClassVar[bool] = True

    @property
    def tuned_on(self) -> tuple[LearnsFrom, ...]:
        return ()  # the matrix is a rule or a file: nothing of it is learned

    @property
    def external_data(self) -> tuple[str, ...]:
        if self.cost in (TASK, *RULES):
            return ()
        return (f"The table of costs {with_digest(Path(self.cost).name, Path(self.cost))}.",)

    def check(self, task: Task) -> None:
        rule = self._rule(task)
        if rule in RULES:
            return
        if not rule.endswith(".csv"):
            raise MisuseError(f"--set cost={rule}: no such rule, expected {', '.join(RULES)} or FILE.csv.")
        if not Path(rule).is_file():
            raise InputError(rule, found="no such file", expected="a CSV table of costs")

    def fit(self, val: LabelScores, lesson: Lesson) -> Self:
        labels = Labels((*val.labels.names, UNKNOWN_NAME)) if lesson.task.unknown else val.labels
        return replace(self, costs=self.matrix(labels, lesson).to_data())

    def matrix(self, labels: Labels, lesson: Lesson) -> Costs:
        """The cost matrix over the given labels, "-1" last among them in an open set."""
        rule = self._rule(lesson.task)
        if rule not in RULES:
            return read_costs(Path(rule), labels)
        flags = dict(zip(lesson.labels.names, lesson.flag("poisonous"), strict=True))
        dangerous = np.array([bool(flags.get(name, False)) for name in labels.names])
        return costs_by_rule(rule, labels, dangerous, Prices(self.c_p, self.c_e, self.c_u, self.c_k))

    def _rule(self, task: Task) -> str:
        return rule_of(task) if self.cost == TASK else self.cost

    def apply(self, predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        costs = Costs.from_data(self.costs)
        if predictions.scale == "score":
            raise MisuseError("min-cost weighs probabilities, and these scores only rank.")
        probabilities = predictions.probabilities()
        if len(costs.labels) > probabilities.shape[1]:  # unknown may be answered, but nothing gave it a probability
            probabilities = np.column_stack([probabilities, np.zeros(len(probabilities), probabilities.dtype)])
        best = costs.best(probabilities)
        return predictions.decided(np.where(best < len(predictions.labels), best, UNKNOWN))
