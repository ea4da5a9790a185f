"""Run files of soundscapes: which classes are heard in each five-second segment of a recording.

```
PER54_20190116;00:00:05-00:00:10;blujay;0.87
```

No header. Items are segments, called `<MediaId>/<start in seconds>`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fieldmark.runs.code_sets import offsets_of
from fieldmark.runs.formats import RunFormat
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.lines import RunSource, read_lines
from fieldmark.runs.problems import RunProblems
from fieldmark.runs.ranked import read_number
from fieldmark.runs.scored import in_order
from fieldmark.storage.files import appearing_file
from fieldmark.tables.labels import Labels
from fieldmark.tables.numbers import is_whole
from fieldmark.tables.timecodes import clock, parse_interval


def segment_name(media_id: str, start_s: int) -> str:
    """The id of a segment."""
    return f"{media_id}/{start_s}"


def row_id_of(item: str, segment_s: int) -> str:
    """What later editions call a segment: the recording and the second at which it ends; 0 for items of other kinds.

    >>> row_id_of("7019_COR/10", 5)
    '7019_COR_15'
    """
    media_id, _, start = item.rpartition("/")
    if not segment_s or not media_id or not is_whole(start):
        return item  # a focal recording as a whole
    return f"{media_id}_{int(start) + segment_s}"


def item_of(row_id: str, segment_s: int) -> str:
    """The id of the segment that is called so; what cannot be one is returned as it is.

    >>> item_of("7019_COR_15", 5), item_of("7019_COR", 5), item_of("7019_COR_015", 5)
    ('7019_COR/10', '7019_COR', '7019_COR_015')
    """
    media_id, _, end = row_id.rpartition("_")
    if not segment_s or not media_id or not is_whole(end) or int(end) < segment_s:
        return row_id
    return segment_name(media_id, int(end) - segment_s)


@dataclass(frozen=True)
class SegmentLists(RunFormat):
    """Scores of classes in the segments of recordings.

    Args:
        seconds: The length of a segment.
        at_most: How many classes a segment may list; None for any number.
        written: How many of the best classes are written for a segment, and count, where predictions score all of them.
        low, high: Between which bounds a score must lie.
    """

    seconds: int = 5
    at_most: int | None = None
    written: int = 10
    low: float = 0.0
    high: float = 1.0

    def held(self, predictions: LabelScores) -> LabelScores:
        """What a run file can hold of predictions: the best classes of each segment, scores between the bounds.

        Logits become the shares of a softmax. Methods that hear several birds at once say scores themselves.
        """
        finite = predictions.scores[np.isfinite(predictions.scores)]
        if predictions.scale == "score" and finite.size and (finite.min() < self.low or finite.max() > self.high):
            found = f"scores from {finite.min()} to {finite.max()}"
            raise ValueError(f"{found}; a run file holds {self.low} to {self.high}")
        if not predictions.dense:
            return self._shortened(predictions)
        chances = predictions.chances()
        order = np.argsort(-chances, axis=1, kind="stable")[:, : self._longest]
        scores = np.take_along_axis(chances, order, axis=1)
        kept = scores > self.low
        codes, offsets = order[kept].astype(np.int32), offsets_of(kept.sum(axis=1))
        return LabelScores(predictions.items, predictions.labels, scores[kept], "score", codes, offsets)

    @property
    def _longest(self) -> int:
        return self.written if self.at_most is None else min(self.written, self.at_most)

    def _shortened(self, predictions: LabelScores) -> LabelScores:
        lists = predictions.lists
        if self.at_most is None or lists.lengths.max(initial=0) <= self.at_most:
            return predictions
        kept = np.arange(len(lists.codes)) - np.repeat(lists.offsets[:-1], lists.lengths) < self.at_most
        offsets = offsets_of(np.minimum(lists.lengths, self.at_most))
        return replace(predictions, scores=predictions.scores[kept], codes=lists.codes[kept], offsets=offsets)

    def write(self, path: Path, predictions: LabelScores) -> None:
        """Writes the best classes of each segment that has any score above 0."""
        held = self.held(predictions)
        lists, names = held.lists, held.labels.names
        with appearing_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=";", lineterminator="\n")
            for row, item in enumerate(held.items):
                media_id, _, start = item.rpartition("/")
                interval = f"{clock(int(start))}-{clock(int(start) + self.seconds)}"
                scores = held.scores[lists.offsets[row] : lists.offsets[row + 1]].tolist()
                # Nine digits are enough to read the same number back.
                writer.writerows(
                    [media_id, interval, names[code], f"{score:.9g}"]
                    for code, score in zip(lists.of(row).tolist(), scores, strict=True)
                )

    def read(self, path: RunSource, items: Sequence[str], labels: Labels, *, unknown: bool = False) -> LabelScores:
        """Reads and checks a run file; segments that are not listed have no answers.

        Raises:
            RunError: Lists what is wrong, with line numbers.
        """
        problems = RunProblems(path)
        row_of = {item: row for row, item in enumerate(items)}
        recordings = {item.rpartition("/")[0] for item in items}
        listed: list[list[tuple[float, float, int]]] = [[] for _ in items]
        line_of: dict[tuple[int, str], int] = {}
        columns = ("MediaId", "TC1-TC2", "ClassId", "Probability")
        for line, fields in read_lines(path, problems, columns=columns, separator=";", header=False):
            row = self._segment(fields, row_of, recordings, line, problems)
            name = fields[2]
            if row is None:
                continue
            if name not in labels.code_of:
                problems.add(line, f"the class {name!r}", "a class of the benchmark")
            elif (row, name) in line_of:
                found = f"the class {name!r} again for that segment (first in line {line_of[row, name]})"
                problems.add(line, found, "each class once")
            else:
                line_of[row, name] = line
                value = read_number(fields[3], line, problems, low=self.low, high=self.high)
                listed[row].append((-value, float(line), labels.code_of[name]))
                if self.at_most is not None and len(listed[row]) == self.at_most + 1:
                    problems.add(line, f"more than {self.at_most} classes in a segment", f"at most {self.at_most}")
        if not line_of and not problems.total:
            problems.add(None, "no answer at all", "a line for each answer")
        problems.raise_any()
        return in_order(items, labels, listed)

    def labels_in(self, path: RunSource) -> set[str]:
        """The classes that a run names."""
        columns = ("MediaId", "TC1-TC2", "ClassId", "Probability")
        lines = read_lines(path, RunProblems(path), columns=columns, separator=";", header=False)
        return {fields[2] for _, fields in lines}

    def _segment(
        self, fields: Sequence[str], row_of: Mapping[str, int], recordings: set[str], line: int, problems: RunProblems
    ) -> int | None:
        """The row of the segment that a line is about, None (with the problem noted) where there is none."""
        if fields[0] not in recordings:
            problems.add(line, f"the recording {fields[0]!r}", "a recording of the benchmark")
            return None
        interval = parse_interval(fields[1])
        if interval is None or interval[0] % self.seconds or interval[1] - interval[0] != self.seconds:
            expected = f"hh:mm:ss-hh:mm:ss, {self.seconds} seconds long, starting at a multiple of {self.seconds}"
            problems.add(line, f"the interval {fields[1]!r}", expected)
            return None
        row = row_of.get(segment_name(fields[0], interval[0]))
        if row is None:
            problems.add(line, f"the interval {fields[1]!r}", "one within the recording")
        return row
