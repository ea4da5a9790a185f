"""Run files that sort items into clusters: which photos show the same individual, whoever that is.

```
image_id,cluster
241,cluster_SalamanderID2025_0
```
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.formats import RunFormat
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.lines import RunSource, read_lines
from fieldmark.runs.problems import RunProblems, expected_id
from fieldmark.runs.ranked import report_missing
from fieldmark.storage.files import appearing_file
from fieldmark.tables.labels import Labels


@dataclass(frozen=True)
class ClusterNames(RunFormat):
    """The cluster of each item, by any name; the names of a run are its own and mean nothing else.

    Args:
        columns: The names of the two columns.
        prefix: What every name must begin with.
    """

    columns: tuple[str, str]
    prefix: str = ""
    holds: ClassVar[str] = "clusters"

    def write(self, path: Path, predictions: LabelScores) -> None:
        """Writes the cluster of each item."""
        first = predictions.top(1)[:, 0]
        with appearing_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            for item, code in zip(predictions.items, first, strict=True):
                name = predictions.labels.names[code]
                writer.writerow([item, name if name.startswith(self.prefix) else f"{self.prefix}{name}"])

    def read(self, path: RunSource, items: Sequence[str], labels: Labels, *, unknown: bool = False) -> LabelScores:
        """Reads and checks a run; its labels are the clusters that it names, whatever `labels` says.

        Raises:
            RunError: Lists what is wrong, with line numbers.
        """
        problems = RunProblems(path)
        row_of = {item: row for row, item in enumerate(items)}
        names = [""] * len(items)
        seen: dict[str, int] = {}
        for line, (item, name) in read_lines(path, problems, columns=self.columns):
            if item not in row_of:
                problems.add(line, f"the id {item!r}", expected_id(item, row_of))
            elif item in seen:
                problems.add(line, f"the id {item!r} again (first in line {seen[item]})", "each id once")
            elif not name or not name.startswith(self.prefix):
                expected = f"a name that begins with {self.prefix!r}" if self.prefix else "the name of a cluster"
                problems.add(line, repr(name), expected)
                seen[item] = line
            else:
                seen[item], names[row_of[item]] = line, name
        report_missing(items, seen, problems)
        problems.raise_any()
        clusters = Labels.of(names)
        lists = CodeSets.single(clusters.encode(names))
        return LabelScores.listed(tuple(items), clusters, lists, np.ones(len(items)))

    def labels_in(self, path: RunSource) -> set[str]:
        """No label: clusters have names, but are none of the benchmark's."""
        return set()
