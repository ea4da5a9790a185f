"""What mistakes cost: matrices from a table or by rule, and the answer of least expected cost.

A table is a CSV file, either long,

```
true,predicted,cost
Amanita phalloides,Agaricus campestris,100
```

where pairs that are not listed cost 1, and right answers 0; or square, with the true label in the first column and one
column per answer. The label -1 stands for unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Task
from fieldmark.errors import InputError, MisuseError
from fieldmark.tables.labels import UNKNOWN_NAME, Labels
from fieldmark.tables.numbers import parse_float
from fieldmark.tables.reader import read_csv

Floats = NDArray[np.float64]
LONG = ("true", "predicted", "cost")
# Expected costs this close count as equal, relative to the costliest mistake; the likelier label is then the answer.
ROUNDING = 1e-9

# For each rule the price by kind of truth (rows) and of answer (columns) where the answer is wrong; a right one is
# free. Kinds: of poison and venom harmless (unknown among them) and dangerous, of unknown known and unknown.
POISON_RULES, UNKNOWN_RULES = ("poison", "fungiclef-3", "venom"), ("unknown", "unknown-organizers")
RULES = (*POISON_RULES, *UNKNOWN_RULES)
RULE_OF_METRIC = {
    "cost_poison": "poison",
    "cost_unknown": "unknown",
    "track_2": "poison",
    "track_3": "fungiclef-3",
    "track_4": "unknown-organizers",
    "venom_score": "venom",
    "venom_cost": "venom",
}


@dataclass(frozen=True)
class Prices:
    """What the rules charge.

    Args:
        c_p: Poisonous taken for harmless.
        c_e: Harmless taken for poisonous.
        c_u: Unknown taken for a known label.
        c_k: Any other mistake, where unknown is priced.
    """

    c_p: float = 100.0
    c_e: float = 1.0
    c_u: float = 10.0
    c_k: float = 1.0

    def of(self, rule: str) -> list[list[float]]:
        """The price by kind of truth and kind of answer."""
        return {
            "poison": [[0.0, self.c_e], [self.c_p, 0.0]],
            "fungiclef-3": [[1.0, 1.0 + self.c_e], [1.0 + self.c_p, 1.0]],
            "venom": [[1.0, 2.0], [5.0, 2.0]],
            "unknown": [[self.c_k, self.c_k], [self.c_u, 0.0]],
            "unknown-organizers": [[self.c_k, 0.1], [self.c_u, 0.0]],
        }[rule]


@dataclass(frozen=True)
class Costs:
    """A cost matrix W[truth, answer], kept by kinds of labels: most matrices have few distinct rows.

    Args:
        labels: The labels of rows and columns.
        kind: The kind of each label.
        wrong: The cost of a wrong answer by kind of truth (rows) and of answer (columns).
        right: The cost of the right answer by kind.
    """

    labels: Labels
    kind: NDArray[np.int64]
    wrong: Floats
    right: Floats

    @property
    def matrix(self) -> Floats:
        """The whole matrix."""
        full = self.wrong[np.ix_(self.kind, self.kind)].copy()
        np.fill_diagonal(full, self.right[self.kind])
        return full

    def at(self, truth: int, answer: int) -> float:
        """What an answer costs where a label is the truth."""
        kind = self.kind[truth]
        return float(self.right[kind] if truth == answer else self.wrong[kind, self.kind[answer]])

    def expected(self, probabilities: NDArray[Any]) -> Floats:
        """The expected cost of each answer: sum over labels y of P(y) W[y, answer], one column per answer."""
        together = np.zeros((len(probabilities), len(self.wrong)))
        for number in range(len(self.wrong)):
            together[:, number] = probabilities[:, self.kind == number].sum(axis=1, dtype=np.float64)
        by_kind = together @ self.wrong
        return np.asarray(by_kind[:, self.kind] + probabilities * (self.right - np.diag(self.wrong))[self.kind])

    def best(self, probabilities: NDArray[Any]) -> NDArray[np.int32]:
        """The answer of least expected cost; among equally cheap ones the likeliest."""
        cost = self.expected(probabilities)
        dearest = max(float(np.abs(self.wrong).max()), float(np.abs(self.right).max()))
        cheap = cost <= cost.min(axis=1, keepdims=True) + ROUNDING * dearest
        return np.asarray(np.where(cheap, probabilities, -1.0).argmax(axis=1), dtype=np.int32)

    def to_data(self) -> dict[str, Any]:
        """As plain data that a model can keep."""
        return {
            "labels": list(self.labels.names),
            "kind": self.kind.tolist(),
            "wrong": self.wrong.tolist(),
            "right": self.right.tolist(),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Costs:
        """From what `to_data` made."""
        wrong, right = (np.array(data[name], dtype=np.float64) for name in ("wrong", "right"))
        return cls(Labels(tuple(data["labels"])), np.array(data["kind"], dtype=np.int64), wrong, right)


def costs_by_rule(rule: str, labels: Labels, dangerous: NDArray[np.bool_], prices: Prices | None = None) -> Costs:
    """The matrix of a rule.

    Args:
        rule: One of `RULES`.
        labels: The labels that may be answered, "-1" for unknown among them in an open set.
        dangerous: For each label whether it is poisonous or venomous; unknown counts as harmless.
        prices: What the rule charges, if not as the papers do.
    """
    strange = np.array([name == UNKNOWN_NAME for name in labels.names])
    kind = strange if rule in UNKNOWN_RULES else dangerous & ~strange
    wrong = np.array((prices or Prices()).of(rule))
    return Costs(labels, kind.astype(np.int64), wrong, np.zeros(len(wrong)))


def rule_of(task: Task) -> str:
    """The rule behind the first metric of a task that prices mistakes."""
    for metric in task.metrics:
        if metric.name in RULE_OF_METRIC:
            return RULE_OF_METRIC[metric.name]
    raise MisuseError(f"The task has no costs of its own: pass --set cost=FILE.csv or one of {', '.join(RULES)}.")


def read_costs(path: Path, labels: Labels) -> Costs:
    """Reads a table of costs, long or square.

    Raises:
        InputError: For a file that is no such table, names other labels, or has a cost that is no number from 0 up.
    """
    try:
        with path.open("rb") as file:
            table = read_csv(file, path, required=())
    except (FileNotFoundError, IsADirectoryError) as error:
        raise InputError(path, found="no such file", expected="a CSV table of costs") from error
    matrix = 1.0 - np.eye(len(labels))
    if set(LONG) <= set(table.columns):
        _fill_long(matrix, table, labels, path)
    else:
        _fill_square(matrix, table, labels, path)
    return Costs(labels, np.arange(len(labels)), matrix, np.diag(matrix).copy())


def _fill_long(matrix: Floats, table: pl.DataFrame, labels: Labels, path: Path) -> None:
    seen: dict[tuple[int, int], int] = {}
    for line, (true, answer, cost) in enumerate(table.select(LONG).iter_rows(), 2):
        pair = (_code(labels, true, path, line), _code(labels, answer, path, line))
        if pair in seen:
            raise InputError(path, line=line, found=f"the pair of line {seen[pair]} again", expected="each pair once")
        seen[pair] = line
        matrix[pair] = _price(cost, path, line)


def _fill_square(matrix: Floats, table: pl.DataFrame, labels: Labels, path: Path) -> None:
    answers = table.columns[1:]
    needed = [name for name in labels.names if name != UNKNOWN_NAME]
    for what, names in (("column", answers), ("row", table[table.columns[0]].to_list())):
        absent = [name for name in needed if name not in names]
        if absent:
            hint = f"Or write the long form: {','.join(LONG)}."
            raise InputError(path, found=f"no {what} for the label {absent[0]!r}", expected="one for each", hint=hint)
    columns = [_code(labels, name, path, 1) for name in answers]
    rows: Sequence[Any] = table.rows()
    for line, (true, *prices) in enumerate(rows, 2):
        row = _code(labels, true, path, line)
        for column, price in zip(columns, prices, strict=True):
            matrix[row, column] = _price(price, path, line)


def _code(labels: Labels, name: str | None, path: Path, line: int) -> int:
    code = labels.code_of.get(name or "")
    if code is None:
        raise InputError(path, line=line, found=f"the label {name!r}", expected="a label of the benchmark, or -1")
    return code


def _price(text: str | None, path: Path, line: int) -> float:
    try:
        value = parse_float(text or "")
    except ValueError:
        value = -1.0
    if value < 0:
        raise InputError(path, line=line, found=f"the cost {text!r}", expected="a number of at least 0")
    return value
