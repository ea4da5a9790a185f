"""Run files that say yes or no to pairs of a segment and a class.

```
row_id,target
soundscape_453028782_brant_5,False
```
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.formats import RunFormat
from fieldmark.runs.label_lists import answered_labels
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.lines import RunSource, read_lines
from fieldmark.runs.problems import RunProblems
from fieldmark.runs.ranked import report_missing
from fieldmark.runs.segments import row_id_of
from fieldmark.storage.files import appearing_file
from fieldmark.tables.labels import Labels

FLAGS = {"true": True, "false": False}


@dataclass(frozen=True)
class YesOrNo(RunFormat):
    """Whether a class is heard in a segment.

    Args:
        columns: The names of the two columns.
        segment_s: How long a segment is; a line is called `<recording>_<class>_<second at which the segment ends>`.
        every_pair: Whether a pair of segment and class without a line is refused; otherwise it counts as no.
    """

    columns: tuple[str, str] = ("row_id", "target")
    segment_s: int = 5
    every_pair: bool = True

    def held(self, predictions: LabelScores) -> LabelScores:
        """The pairs that are answered with yes: decided for, or else more likely than not."""
        lists = answered_labels(predictions)
        return LabelScores.listed(predictions.items, predictions.labels, lists, np.ones(len(lists.codes)))

    def write(self, path: Path, predictions: LabelScores) -> None:
        """Writes a line for every pair."""
        held = self.held(predictions)
        with appearing_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            for row, item in enumerate(held.items):
                row_id = row_id_of(item, self.segment_s)
                yes = set(held.lists.of(row).tolist())
                for code, name in enumerate(held.labels.names):
                    writer.writerow([self._line(row_id, name), code in yes])

    def read(self, path: RunSource, items: Sequence[str], labels: Labels, *, unknown: bool = False) -> LabelScores:
        """Reads and checks a run file.

        Raises:
            RunError: Lists what is wrong, with line numbers.
        """
        problems = RunProblems(path)
        called = [row_id_of(item, self.segment_s) for item in items]
        row_of = {row_id: row for row, row_id in enumerate(called)}
        yes: list[list[int]] = [[] for _ in items]
        seen: dict[tuple[int, int], int] = {}
        for line, (row_id, target) in read_lines(path, problems, columns=self.columns):
            segment, name = self._pair(row_id)
            if segment not in row_of or name not in labels.code_of:
                expected = "<recording>_<class>_<end second> of a segment and a class of the benchmark"
                problems.add(line, f"the id {row_id!r}", expected)
                continue
            pair = row_of[segment], labels.code_of[name]
            if pair in seen:
                problems.add(line, f"the id {row_id!r} again (first in line {seen[pair]})", "each id once")
            elif target.lower() not in FLAGS:
                problems.add(line, repr(target), "True or False")
            elif FLAGS[target.lower()]:
                yes[pair[0]].append(pair[1])
            seen.setdefault(pair, line)
        if self.every_pair and len(seen) < len(items) * len(labels) and not problems.total:
            pairs = {
                self._line(row_id, name): (row, code)
                for row_id, row in row_of.items()
                for name, code in labels.code_of.items()
            }
            report_missing(list(pairs), {line: 1 for line, pair in pairs.items() if pair in seen}, problems)
        if not seen and not problems.total:
            problems.add(None, "no answer at all", "a line for each segment and class")
        problems.raise_any()
        lists = CodeSets.of_lists(yes)
        return LabelScores.listed(tuple(items), labels, lists, np.ones(len(lists.codes)))

    def labels_in(self, path: RunSource) -> set[str]:
        """The classes that a run names."""
        lines = read_lines(path, RunProblems(path), columns=self.columns)
        return {name for _, (row_id, _) in lines if (name := self._pair(row_id)[1])}

    def _pair(self, row_id: str) -> tuple[str, str]:
        """The segment and the class that a line is about; the name of a class has no underscore."""
        front, _, end = row_id.rpartition("_")
        recording, _, name = front.rpartition("_")
        return f"{recording}_{end}", name

    def _line(self, row_id: str, name: str) -> str:
        """What the line about a segment and a class is called."""
        recording, _, end = row_id.rpartition("_")
        return f"{recording}_{name}_{end}"
