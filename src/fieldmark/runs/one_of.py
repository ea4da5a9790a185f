"""Challenges that take runs in more than one format: the first line of a file says which it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fieldmark.errors import InputError
from fieldmark.labels import Labels
from fieldmark.runs.formats import RunFormat
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.lines import RunSource, read_header


@dataclass(frozen=True)
class OneOf(RunFormat):
    """Several formats by the header they begin with; the first is the one that is written."""

    formats: Mapping[str, RunFormat]

    def write(self, path: Path, predictions: LabelScores) -> None:
        next(iter(self.formats.values())).write(path, predictions)

    def read(self, path: RunSource, items: Sequence[str], labels: Labels, *, unknown: bool = False) -> LabelScores:
        scores: LabelScores = self._format(path).read(path, items, labels, unknown=unknown)
        return scores

    def remarks(self, held: LabelScores, items: Sequence[str]) -> list[str]:
        return [remark for format_ in self.formats.values() for remark in format_.remarks(held, items)]

    def labels_in(self, path: RunSource) -> set[str]:
        """The labels that a run names."""
        return self._format(path).labels_in(path)

    def _format(self, path: RunSource) -> RunFormat:
        for header, format_ in self.formats.items():
            separator = ";" if ";" in header else ","
            if separator.join(read_header(path, separator)) == header:
                return format_
        expected = " or ".join(repr(format_) for format_ in self.formats)
        found = f"the header {','.join(read_header(path))!r}"
        raise InputError(path, line=1, found=found, expected=expected)
