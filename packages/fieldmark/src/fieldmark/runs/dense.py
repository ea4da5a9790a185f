"""Run files with one column per class.

```
hashed_id,agkistrodon-contortrix,agkistrodon-piscivorus,...
a1b2,0.7,0.1,...
```
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from fieldmark.errors import InputError
from fieldmark.runs.formats import RunFormat
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.lines import RunSource, read_header, read_lines
from fieldmark.runs.problems import RunProblems, expected_id
from fieldmark.runs.ranked import read_number, report_missing
from fieldmark.runs.segments import row_id_of
from fieldmark.storage.files import appearing_file
from fieldmark.tables.labels import Labels
from fieldmark.tables.numbers import is_plain


@dataclass(frozen=True)
class Dense(RunFormat):
    """A score for every label of every item.

    Args:
        item: The name of the first column.
        low, high: Between which bounds a score must lie.
        segment_s: For segments of recordings: how long they are, where a line is called by the end of its segment.
    """

    dense: ClassVar[bool] = True
    item: str = "id"
    low: float = 0.0
    high: float = 1.0
    segment_s: int = 0

    def write(self, path: Path, predictions: LabelScores) -> None:
        """Writes probabilities where the predictions have them, else their scores."""
        scores = predictions.chances()
        with appearing_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([self.item, *predictions.labels.names])
            for item, row in zip(predictions.items, scores, strict=True):
                writer.writerow([row_id_of(item, self.segment_s), *(f"{value:.7g}" for value in row)])

    def read(self, path: RunSource, items: Sequence[str], labels: Labels, *, unknown: bool = False) -> LabelScores:
        """Reads and checks a run file; columns may come in any order.

        Raises:
            RunError: Lists what is wrong, with line numbers.
        """
        problems = RunProblems(path)
        header = read_header(path)
        order = self._order(path, header, labels)
        called = [row_id_of(item, self.segment_s) for item in items]
        row_of = {row_id: row for row, row_id in enumerate(called)}
        scores = np.zeros((len(items), len(labels)), dtype=np.float64)
        seen: dict[str, int] = {}
        for line, (row_id, *values) in read_lines(path, problems, columns=header):
            if row_id not in row_of:
                problems.add(line, f"the id {row_id!r}", expected_id(row_id, row_of))
            elif row_id in seen:
                problems.add(line, f"the id {row_id!r} again (first in line {seen[row_id]})", "each id once")
            else:
                seen[row_id] = line
                scores[row_of[row_id], order] = self._numbers(values, line, problems)
        report_missing(called, seen, problems)
        problems.raise_any()
        return LabelScores(tuple(items), labels, scores, "score")

    def labels_in(self, path: RunSource) -> set[str]:
        """The labels that a run has columns for."""
        return set(read_header(path)[1:])

    def _order(self, path: RunSource, header: Sequence[str], labels: Labels) -> list[int]:
        """The code of the label behind each column."""
        expected = f"{self.item} and the {len(labels)} labels of the benchmark"
        if not header or header[0] != self.item:
            raise InputError(path, line=1, found=f"{header[0] if header else ''!r} first", expected=expected)
        strange = [name for name in header[1:] if name not in labels.code_of]
        missing = [name for name in labels.names if name not in set(header)]
        if strange or missing or len(header) != len(labels) + 1:
            found = f"the column {strange[0]!r}" if strange else f"no column {missing[0]!r}" if missing else "one twice"
            raise InputError(path, line=1, found=found, expected=expected)
        return [labels.code_of[name] for name in header[1:]]

    def _numbers(self, values: Sequence[str], line: int, problems: RunProblems) -> np.ndarray:
        try:
            numbers = np.array(values if is_plain("".join(values)) else [], dtype=np.float64)
        except ValueError:
            numbers = np.empty(0)
        if (
            len(numbers) == len(values)
            and np.isfinite(numbers).all()
            and (numbers >= self.low).all()
            and (numbers <= self.high).all()
        ):
            if self.low == 0 and not numbers.any():
                problems.add(line, "a row of zeros", "at least one score above 0")
            return numbers
        return np.array([read_number(value, line, problems, low=self.low, high=self.high) for value in values])
