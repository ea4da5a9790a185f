"""The run file of most photo challenges: for each item its labels, best first.

```
id,predicted
0-3032614317.JPG,119 27 4
```

Open sets know one label more, -1 for "none of the others", and may add a column `unknown_score`, higher for stranger.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.runs.code_sets import CodeSets, offsets_of
from fieldmark.runs.formats import RunFormat
from fieldmark.runs.label_scores import NOTHING, LabelScores
from fieldmark.runs.lines import RunSource, TableRun, read_lines
from fieldmark.runs.problems import RunProblems, expected_id, expected_label
from fieldmark.runs.ranked_tables import RankedRows, read_faultless
from fieldmark.storage.files import appearing_file
from fieldmark.tables.labels import UNKNOWN, UNKNOWN_NAME, Labels
from fieldmark.tables.numbers import parse_float
from fieldmark.tables.reader import plain_csv
from fieldmark.tables.text_columns import fixed

UNKNOWN_SCORE = "unknown_score"


@dataclass(frozen=True)
class Ranked(RunFormat):
    """Ranked labels per item.

    Args:
        at_most: How many labels a line may list.
        columns: The names of the two columns; several for one that goes by several names, the first to be written.
        separator: What stands between two labels.
        at_least: How many labels a line must list.
        unknown_score: Whether there is a third column that says how strange an item is.
        more_columns: Whether a file may have other columns, which are skipped.
        other_items: Whether a file may answer ids that the benchmark does not ask about, which are skipped.
        cut: Whether a line may list more than `at_most` labels, of which the first ones count.
        unknown_name: How "none of the labels" is written.
    """

    at_most: int
    columns: tuple[str | tuple[str, ...], str | tuple[str, ...]] = ("id", "predicted")
    separator: str = " "
    at_least: int = 1
    unknown_score: bool = False
    more_columns: bool = False
    other_items: bool = False
    cut: bool = False
    unknown_name: str = UNKNOWN_NAME

    def of_length(self, answers: int) -> Ranked:
        """The same format with at most so many labels a line, for those who want exactly what a challenge asks for.

        Raises:
            MisuseError: When lines of that length are not allowed.
        """
        if not self.at_least <= answers <= self.at_most:
            raise MisuseError(f"A line lists {self.at_least} to {self.at_most} answers, not {answers}.")
        return replace(self, at_most=answers)

    def write(self, path: Path, predictions: LabelScores) -> None:
        """Writes the first `at_most` labels of each item."""
        best = predictions.top(self.at_most)
        names = [column if isinstance(column, str) else column[0] for column in self._columns()]
        with appearing_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names)
            for row, (item, codes) in enumerate(zip(predictions.items, best, strict=True)):
                fields = [
                    item,
                    self.separator.join(predictions.labels.decode(codes[codes != NOTHING], self.unknown_name)),
                ]
                if self.unknown_score:
                    if predictions.unknown is None:
                        raise ValueError("these predictions have no novelty score")
                    fields.append(f"{predictions.unknown[row]:.7g}")
                writer.writerow(fields)

    def read(self, path: RunSource, items: Sequence[str], labels: Labels, *, unknown: bool = False) -> LabelScores:
        """Reads and checks a run file.

        Args:
            path: The file, plain or gzip.
            items: The items that must be answered, each exactly once.
            labels: The labels that may be named.
            unknown: Whether "-1" may be named as well.

        Returns:
            Lists in the order of `items`; scores fall from 1 with the rank.

        Raises:
            RunError: Lists what is wrong, with line numbers.
        """
        quick = self._read_quickly(path, items, labels, unknown=unknown)
        if quick is not None:
            return self._scored(items, labels, quick.lists, quick.strange)
        problems = RunProblems(path)
        row_of = {item: row for row, item in enumerate(items)}
        code_of = {**labels.code_of, self.unknown_name: UNKNOWN} if unknown else labels.code_of
        rows, codes, lengths = [], [], []  # flat: a list for each of many thousand items keeps the collector busy
        strange = np.zeros(len(items)) if self.unknown_score else None
        seen: dict[str, int] = {}
        lines = read_lines(path, problems, columns=self._columns(), more_columns=self.more_columns)
        for line, (item, names, *score) in lines:
            if item not in row_of:
                if not self.other_items:
                    problems.add(line, f"the id {item!r}", expected_id(item, row_of))
            elif item in seen:
                problems.add(line, f"the id {item!r} again (first in line {seen[item]})", "each id once")
            else:
                seen[item] = line
                own = self._codes(self._split(names), code_of, line, problems)
                rows.append(row_of[item])
                lengths.append(len(own))
                codes += own
                if strange is not None:
                    strange[row_of[item]] = read_number(score[0], line, problems)
        report_missing(items, seen, problems)
        problems.raise_any()
        as_read = CodeSets(np.array(codes, dtype=np.int32), offsets_of(np.array(lengths, dtype=np.int64)))
        return self._scored(items, labels, as_read.take(np.argsort(rows)), strange)

    def _scored(
        self, items: Sequence[str], labels: Labels, lists: CodeSets, strange: NDArray[np.float64] | None
    ) -> LabelScores:
        rank = np.arange(len(lists.codes)) - np.repeat(lists.offsets[:-1], lists.lengths)
        scores = 1 - rank / self.at_most
        return LabelScores(fixed(items), labels, scores, "score", lists.codes, lists.offsets, unknown=strange)

    def _read_quickly(
        self, source: RunSource, items: Sequence[str], labels: Labels, *, unknown: bool
    ) -> RankedRows | None:
        """A table or plain file without any fault, many rows at once; None for whatever else must be looked at."""
        if self.cut or self.unknown_name != UNKNOWN_NAME:
            return None
        names = [column if isinstance(column, str) else column[0] for column in self._columns()]
        frame = source.stripped if isinstance(source, TableRun) else _plain_file(source)
        if frame is None or frame.columns != names:
            return None
        return read_faultless(
            frame,
            items,
            labels,
            separator=self.separator,
            lengths=(self.at_least, self.at_most),
            unknown=unknown,
            strange=self.unknown_score,
        )

    def labels_in(self, path: RunSource) -> set[str]:
        """The labels that a run names, for when no list of classes says which there are."""
        lines = read_lines(path, RunProblems(path), columns=self._columns(), more_columns=self.more_columns)
        named = {name for _, (_, listed, *_) in lines for name in self._split(listed) if name}
        return {UNKNOWN_NAME if name == self.unknown_name else name for name in named}

    def _columns(self) -> tuple[str | tuple[str, ...], ...]:
        return (*self.columns, UNKNOWN_SCORE) if self.unknown_score else self.columns

    def _split(self, field: str) -> list[str]:
        """The labels of a line; a blank between two separators is kept, to be refused."""
        if self.separator == " " or not field:
            return field.split()
        return [name.strip() for name in field.split(self.separator)]

    def _codes(self, names: list[str], code_of: Mapping[str, int], line: int, problems: RunProblems) -> list[int]:
        names = names[: self.at_most] if self.cut else names
        if "" in names:
            expected = f"a label before and after each {self.separator!r}"
            problems.add(line, f"nothing as answer {names.index('') + 1}", expected)
        elif not self.at_least <= len(names) <= self.at_most:
            few = "between 1 and" if self.at_least == 1 else f"between {self.at_least} and"
            expected = f"{few} {self.at_most}" if self.at_least < self.at_most else f"exactly {self.at_most}"
            expected = f"at least {self.at_least}" if self.cut else expected
            found = f"{len(names)} labels" if len(names) > 1 else "1 label" if names else "no label"
            problems.add(line, found, expected)
        elif len(set(names)) < len(names):
            problems.add(line, "a label twice", "each label once")
        else:
            for name in names:
                if name not in code_of:
                    problems.add(line, f"the label {name!r}", expected_label(name, code_of))
            return [code_of[name] for name in names if name in code_of]
        return []


def _plain_file(path: Path) -> pl.DataFrame | None:
    try:
        with path.open("rb") as file:
            return plain_csv(file)
    except OSError:  # the reader of lines says what is wrong with it
        return None


def read_number(
    text: str, line: int, problems: RunProblems, *, low: float = -math.inf, high: float = math.inf
) -> float:
    """A finite number within bounds; anything else is noted as a problem and becomes 0."""
    try:
        value = parse_float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        bounded = "a finite number" if (low, high) == (-math.inf, math.inf) else f"a number from {low:g} to {high:g}"
        problems.add(line, repr(text), bounded)
        return 0.0
    return value


def report_missing(items: Sequence[str], seen: dict[str, int], problems: RunProblems) -> None:
    """Notes the items that no line answers, in one problem."""
    missing = [item for item in items if item not in seen]
    if problems.total and len(missing) == len(items):
        expected = f"ids such as {items[0]!r} (is it the run of another part or another benchmark?)"
        problems.explain(f"not one of the {len(items)} ids", expected)
    elif missing:
        listed = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        problems.add(None, f"no line for {len(missing)} of {len(items)} ids ({listed})", "a line for each")
