"""Run files with the labels of each item as a list without an order, which may be empty.

```
row_id,birds                        surveyId,predictions        "quadrat_id","species_ids"
7019_COR_5,rucwar bkbwar            3018575,53 887              "CBN-PdlC-A1-20130807","[1395807, 1392608]"
7019_COR_10,nocall                  3018579,                    "CBN-PdlC-A2-20130807","[]"
```
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from fieldmark.runs.code_sets import CodeSets, offsets_of, rows_of
from fieldmark.runs.formats import RunFormat
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.lines import RunSource, read_lines
from fieldmark.runs.problems import RunProblems, expected_id, expected_label
from fieldmark.runs.ranked import report_missing
from fieldmark.runs.segments import row_id_of
from fieldmark.storage.files import appearing_file
from fieldmark.tables.labels import Labels

# From which chance on a label is listed where no rule has decided.
LIKELY = 0.5


@dataclass(frozen=True)
class Lists(RunFormat):
    """The labels of each item; a label that a line names twice counts once.

    Args:
        columns: The names of the two columns; several for one that goes by several names, the first to be written.
        separator: What stands between two labels.
        brackets: Whether a list stands in square brackets.
        silence: What a line says where there is no label; it is a label itself. Empty where an empty list says it.
        written_lists: What counts of a list that a run has: what it says, or the same with silence added where
            it is empty and dropped beside other labels ("completed", as version 1 of BirdCLEF 2021 had it).
        more_columns: Whether a file may have other columns, which are skipped.
        all_quoted: Whether every field is written in quotes. Both ways are read.
        segment_s: For segments of recordings: how long they are, where a line is called by the end of its segment.
    """

    columns: tuple[str | tuple[str, ...], str | tuple[str, ...]]
    separator: str = " "
    brackets: bool = False
    silence: str = ""
    more_columns: bool = False
    all_quoted: bool = False
    segment_s: int = 0
    written_lists: Literal["as written", "completed"] = "as written"

    def held(self, predictions: LabelScores) -> LabelScores:
        """The labels that a file lists: those a rule decided for, or else those more likely than not.

        Where these are none, a file says silence; lists that somebody wrote are what they are.
        """
        lists = answered_labels(predictions)
        written = predictions.decisions is None and not predictions.dense
        if not written or self.written_lists == "completed":
            lists = self._with_silence(lists, predictions.labels)
        return LabelScores.listed(predictions.items, predictions.labels, lists, np.ones(len(lists.codes)))

    def _with_silence(self, lists: CodeSets, labels: Labels) -> CodeSets:
        """Items without any label say so, and those with one do not."""
        if not self.silence or self.silence not in labels.code_of:
            return lists
        silent = labels.code_of[self.silence]
        row = rows_of(lists.offsets)
        kept = lists.codes != silent
        loud = np.bincount(row[kept], minlength=len(lists)) > 0
        kept |= ~loud[row]
        lengths = np.bincount(row[kept], minlength=len(lists))
        empty = np.flatnonzero(lengths == 0)
        codes = np.insert(lists.codes[kept], offsets_of(lengths)[empty], silent)
        return CodeSets(codes.astype(np.int32), offsets_of(np.maximum(lengths, 1)))

    def write(self, path: Path, predictions: LabelScores) -> None:
        """Writes one line per item."""
        lists = self.held(predictions).lists
        names = [column if isinstance(column, str) else column[0] for column in self.columns]
        quoting: Literal[0, 1] = csv.QUOTE_ALL if self.all_quoted else csv.QUOTE_MINIMAL
        with appearing_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n", quoting=quoting)
            writer.writerow(names)
            for row, item in enumerate(predictions.items):
                listed = self.separator.join(predictions.labels.decode(lists.of(row)))
                writer.writerow([row_id_of(item, self.segment_s), f"[{listed}]" if self.brackets else listed])

    def read(self, path: RunSource, items: Sequence[str], labels: Labels, *, unknown: bool = False) -> LabelScores:
        """Reads and checks a run file.

        Raises:
            RunError: Lists what is wrong, with line numbers.
        """
        problems = RunProblems(path)
        called = [row_id_of(item, self.segment_s) for item in items]
        row_of = {row_id: row for row, row_id in enumerate(called)}
        listed: list[list[int]] = [[] for _ in items]
        seen: dict[str, int] = {}
        lines = read_lines(path, problems, columns=self.columns, more_columns=self.more_columns)
        for line, (row_id, text) in lines:
            if row_id not in row_of:
                problems.add(line, f"the id {row_id!r}", expected_id(row_id, row_of))
            elif row_id in seen:
                problems.add(line, f"the id {row_id!r} again (first in line {seen[row_id]})", "each id once")
            else:
                seen[row_id] = line
                for name in dict.fromkeys(self._names(text, line, problems)):
                    if name in labels.code_of:
                        listed[row_of[row_id]].append(labels.code_of[name])
                    else:
                        problems.add(line, f"the label {name!r}", expected_label(name, labels.code_of))
        report_missing(called, seen, problems)
        problems.raise_any()
        lists = CodeSets.of_lists(listed)
        return LabelScores.listed(tuple(items), labels, lists, np.ones(len(lists.codes)))

    def labels_in(self, path: RunSource) -> set[str]:
        """The labels that a run names."""
        problems = RunProblems(path)
        lines = read_lines(path, problems, columns=self.columns, more_columns=self.more_columns)
        return {name for line, (_, text) in lines for name in self._names(text, line, problems)}

    def _names(self, text: str, line: int, problems: RunProblems) -> list[str]:
        if self.brackets:
            if not (text.startswith("[") and text.endswith("]")):
                problems.add(line, repr(text), "a list in square brackets, such as [1395807, 1392608] or []")
                return []
            text = text[1:-1]
        split = text.split() if self.separator == " " else text.split(self.separator.strip())
        return [name.strip() for name in split if name.strip()]


def answered_labels(predictions: LabelScores) -> CodeSets:
    """The labels that predictions answer each item with.

    Those that a rule decided for, or that are listed, or else those more likely than not.
    """
    if predictions.decisions is not None:
        return predictions.decisions
    if not predictions.dense:
        return predictions.lists
    rows, codes = np.nonzero(predictions.chances() >= LIKELY)
    return CodeSets(codes.astype(np.int32), offsets_of(np.bincount(rows, minlength=len(predictions.items))))
