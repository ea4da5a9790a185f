"""Run files with one line per item and label: a score, and in some challenges a rank that decides ties.

```
ObservationId;ClassId;Probability;Rank
12345;4711;0.25;1
```
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fieldmark.runs.code_sets import offsets_of
from fieldmark.runs.formats import RunFormat
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.lines import RunSource, read_lines
from fieldmark.runs.problems import RunProblems, expected_id, expected_label
from fieldmark.runs.ranked import read_number, report_missing
from fieldmark.storage.files import appearing_file
from fieldmark.tables.labels import Labels


@dataclass(frozen=True)
class Scored(RunFormat):
    """Scores of listed labels; labels that are not listed have none.

    Args:
        columns: The names of item, label and score, and of the rank where there is one.
        header: Whether the first line names the columns.
        separator: What stands between two fields.
        low, high: Between which bounds a score must lie.
        at_most: How many labels an item may list, None for any number.
        silent_items: Whether an item without any line is accepted (it has no answer) or refused.
    """

    columns: tuple[str, ...]
    header: bool = True
    separator: str = ";"
    low: float = -math.inf
    high: float = math.inf
    at_most: int | None = None
    silent_items: bool = True

    @property
    def has_rank(self) -> bool:
        return len(self.columns) == 4

    def write(self, path: Path, predictions: LabelScores) -> None:
        """Writes the listed labels of each item (or the best of dense ones), best first.

        Logarithms and logits become probabilities where those are asked for.
        """
        if (self.low, self.high) == (0.0, 1.0) and predictions.dense and predictions.scale != "score":
            predictions = predictions.with_scores(predictions.chances(), "score")
        best = predictions.top(min(self.at_most or 100, len(predictions.labels)))
        with appearing_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=self.separator, lineterminator="\n")
            if self.header:
                writer.writerow(self.columns)
            for row, item in enumerate(predictions.items):
                score_of = predictions.scores_by_code(row)
                for place, code in enumerate(best[row][best[row] >= 0]):
                    fields = [item, predictions.labels.names[code], f"{score_of[int(code)]:.7g}"]
                    writer.writerow([*fields, place + 1] if self.has_rank else fields)

    def read(self, path: RunSource, items: Sequence[str], labels: Labels, *, unknown: bool = False) -> LabelScores:
        """Reads and checks a run file.

        Returns:
            Lists in the order of `items`, each ordered by falling score, ties by rank (or by line).

        Raises:
            RunError: Lists what is wrong, with line numbers.
        """
        problems = RunProblems(path)
        row_of = {item: row for row, item in enumerate(items)}
        listed: list[list[tuple[float, float, int]]] = [[] for _ in items]
        line_of: dict[tuple[str, str], int] = {}
        columns = read_lines(path, problems, columns=self.columns, separator=self.separator, header=self.header)
        for line, (item, name, score, *rank) in columns:
            if item not in row_of:
                problems.add(line, f"the id {item!r}", expected_id(item, row_of))
            elif name not in labels.code_of:
                problems.add(line, f"the label {name!r}", expected_label(name, labels.code_of))
            elif (item, name) in line_of:
                first = line_of[item, name]
                problems.add(line, f"the label {name!r} for {item!r} again (first in line {first})", "each once")
            else:
                line_of[item, name] = line
                value = read_number(score, line, problems, low=self.low, high=self.high)
                place = self._rank(rank[0], line, problems) if rank else float(line)
                listed[row_of[item]].append((-value, place, labels.code_of[name]))
                if self.at_most is not None and len(listed[row_of[item]]) == self.at_most + 1:
                    problems.add(line, f"more than {self.at_most} labels for {item!r}", f"at most {self.at_most}")
        if not line_of:
            problems.add(None, "no answer at all", "a line for each answer")
        if self.has_rank:
            _check_ranks(items, listed, line_of, problems)
        if not self.silent_items:
            report_missing(items, dict.fromkeys((item for item, _ in line_of), 0), problems)
        problems.raise_any()
        return in_order(items, labels, listed, ranked=self.has_rank)

    def _rank(self, text: str, line: int, problems: RunProblems) -> float:
        """A rank: 1, 2, 3, ..."""
        rank = read_number(text, line, problems)
        if rank < 1 or rank != int(rank):
            problems.add(line, f"the rank {text!r}", "a whole number from 1 on")
        return rank

    def remarks(self, held: LabelScores, items: Sequence[str]) -> list[str]:
        silent = 0 if held.dense else int((held.select(items).lists.lengths == 0).sum())
        if not silent:
            return []
        return [f"{silent:,} of {len(items):,} ids have no line in the run: they count as wrong"]

    def labels_in(self, path: RunSource) -> set[str]:
        """The labels that a run names."""
        columns = read_lines(
            path, RunProblems(path), columns=self.columns, separator=self.separator, header=self.header
        )
        return {fields[1] for _, fields in columns}


def _check_ranks(
    items: Sequence[str],
    listed: list[list[tuple[float, float, int]]],
    line_of: Mapping[tuple[str, str], int],
    problems: RunProblems,
) -> None:
    """Notes the items whose ranks do not count from 1 on without gaps, at the first of their lines."""
    first_line: dict[str, int] = {}
    for item, row in zip(items, listed, strict=True):
        ranks = sorted(rank for _, rank, _ in row)
        if ranks != list(range(1, len(ranks) + 1)) and all(rank >= 1 and rank == int(rank) for rank in ranks):
            shown = ", ".join(f"{rank:.0f}" for rank in ranks[:10])
            first_line = first_line or {own: line for (own, _), line in reversed(list(line_of.items()))}
            problems.add(first_line[item], f"the ranks {shown} for {item!r}", f"1 to {len(ranks)}, each rank once")


def in_order(
    items: Sequence[str], labels: Labels, listed: list[list[tuple[float, float, int]]], *, ranked: bool = False
) -> LabelScores:
    """Lists of labels from (negative score, tie-breaker, code) of each item; `ranked` where runs state the latter."""
    for row in listed:
        row.sort()
    codes = np.array([code for row in listed for _, _, code in row], dtype=np.int32)
    scores = np.array([-negative for row in listed for negative, _, _ in row], dtype=np.float64)
    offsets = offsets_of(np.array([len(row) for row in listed], dtype=np.int64))
    ranks = np.array([rank for row in listed for _, rank, _ in row], dtype=np.float64) if ranked else None
    return LabelScores(tuple(items), labels, scores, "score", codes, offsets, stated_ranks=ranks)
