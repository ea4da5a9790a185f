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

from fieldmark.foundation.files import appearing_file
from fieldmark.labels import Labels
from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.formats import RunFormat
from fieldmark.runs.label_lists import answered_labels
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.lines import RunSource, read_lines
from fieldmark.runs.problems import RunProblems
from fieldmark.runs.segments import item_of, row_id_of

FLAGS = {"true": True, "false": False}


@dataclass(frozen=True)
class YesOrNo(RunFormat):
    """Whether a class is heard in a segment; a pair without a line counts as no.

    Args:
        columns: The names of the two columns.
        segment_s: How long a segment is; a line is called `<recording>_<class>_<second at which the segment ends>`.
    """

    columns: tuple[str, str] = ("row_id", "target")
    segment_s: int = 5

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
                recording, _, end = row_id_of(item, self.segment_s).rpartition("_")
                yes = set(held.lists.of(row).tolist())
                for code, name in enumerate(held.labels.names):
                    writer.writerow([f"{recording}_{name}_{end}", code in yes])

    def read(self, path: RunSource, items: Sequence[str], labels: Labels, *, unknown: bool = False) -> LabelScores:
        """Reads and checks a run file.

        Raises:
            RunError: Lists what is wrong, with line numbers.
        """
        problems = RunProblems(path)
        row_of = {item: row for row, item in enumerate(items)}
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
        return item_of(f"{recording}_{end}", self.segment_s), name
