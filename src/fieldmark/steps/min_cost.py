"""The answer that is expected to cost least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Task
from fieldmark.errors import InputError, MisuseError
from fieldmark.labels import Labels
from fieldmark.runs.predictions import Predictions
from fieldmark.steps.base import Asked
from fieldmark.steps.costs import RULES, Costs, Prices, costs_by_rule, read_costs, rule_of
from fieldmark.steps.unknown_probability import with_unknown

TASK = "task"


@dataclass(frozen=True)
class MinCost:
    """Answers with the label a of least sum over y of P(y) W[y, a]; among equally cheap ones with the likeliest.

    The best decision where the probabilities are right (Duda and Hart, 1973), so calibrate before. The probabilities
    stay as they are: another price can be tried on the stored predictions.

    Args:
        cost: A rule (`fieldmark.steps.costs`), a CSV file, or `task`: what the task is measured by.
        c_p, c_e, c_u, c_k: What the rules charge.
        costs: The matrix, made by `fit`.
    """

    cost: str = TASK
    c_p: float = 100.0
    c_e: float = 1.0
    c_u: float = 10.0
    c_k: float = 1.0
    costs: Mapping[str, Any] = field(default_factory=dict)
    name: ClassVar[str] = "min-cost"

    def __post_init__(self) -> None:
        if not all(np.isfinite(price) and price >= 0 for price in (self.c_p, self.c_e, self.c_u, self.c_k)):
            raise MisuseError("min-cost needs prices c_p, c_e, c_u and c_k of at least 0.")

    def check(self, task: Task) -> None:
        rule = self._rule(task)
        if rule in RULES:
            return
        if not rule.endswith(".csv"):
            raise MisuseError(f"--set cost={rule}: found no such rule, expected {', '.join(RULES)} or FILE.csv.")
        if not Path(rule).is_file():
            raise InputError(rule, found="no such file", expected="a CSV table of costs")

    def fit(self, val: Predictions, truth: NDArray[np.int32], items: pl.DataFrame) -> Self:
        return self.fit_open(val, truth, items, None)

    def fit_open(self, val: Predictions, truth: NDArray[np.int32], items: pl.DataFrame, asked: Asked | None) -> Self:
        if asked is None:
            raise ValueError("min-cost must be told what is asked")
        labels = with_unknown(val).labels if asked.task.unknown else val.labels
        return replace(self, costs=self.matrix(labels, asked).to_data())

    def matrix(self, labels: Labels, asked: Asked) -> Costs:
        """The cost matrix over the given labels."""
        rule = self._rule(asked.task)
        if rule not in RULES:
            return read_costs(Path(rule), labels)
        flags = dict(zip(asked.labels.names, asked.flag("poisonous"), strict=True))
        dangerous = np.array([bool(flags.get(name, False)) for name in labels.names])
        return costs_by_rule(rule, labels, dangerous, Prices(self.c_p, self.c_e, self.c_u, self.c_k))

    def _rule(self, task: Task) -> str:
        return rule_of(task) if self.cost == TASK else self.cost

    def apply(self, predictions: Predictions, items: pl.DataFrame) -> Predictions:
        costs = Costs.from_data(self.costs)
        if len(costs.labels) > len(predictions.labels):
            predictions = with_unknown(predictions)
        if predictions.scale == "score":
            raise MisuseError("min-cost weighs probabilities, and these scores only rank.")
        return replace(predictions, answers=costs.best(predictions.probabilities()))
