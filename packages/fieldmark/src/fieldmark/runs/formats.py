"""What a run format is: how a challenge wants its answers written down."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

from fieldmark.errors import InputError, MisuseError
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.lines import RunSource, read_header
from fieldmark.runs.provenance import RUN_CSV
from fieldmark.tables.labels import Labels

TEXT_FILES = (".csv", ".csv.gz", ".tsv", ".txt", ".txt.gz", ".gz")


class RunFormat(ABC):
    """How a run is written down. Subclasses are dataclasses whose fields are the rules of one challenge.

    Attributes:
        file_name: What a run is called in the folder that `fit` writes.
        file_types: The endings of files that it accepts; empty for folders alone.
        dense: Whether a file has a score for every label.
        hosted: Whether runs can be submitted to a challenge, which takes one file.
        folders: Whether a folder of files is a run as well.
        holds: What a run says of the items, in a word.
    """

    file_name: ClassVar[str] = RUN_CSV
    file_types: ClassVar[tuple[str, ...]] = TEXT_FILES
    dense: ClassVar[bool] = False
    hosted: ClassVar[bool] = True
    folders: ClassVar[bool] = False
    holds: ClassVar[str] = "labels"

    @abstractmethod
    def write(self, path: Path, predictions: Any) -> None:
        """Writes what a run file can hold of predictions."""

    @abstractmethod
    def read(self, path: Any, items: Sequence[str], labels: Labels, *, unknown: bool = False) -> Any:
        """Reads and checks a run.

        Args:
            path: Where it lies, or a table in memory (`runs.lines.TableRun`).
            items: The items that are asked about.
            labels: The labels that may be named.
            unknown: Whether "-1" may be answered as well.

        Raises:
            InputError: Says what is wrong, with line numbers.
        """

    @abstractmethod
    def labels_in(self, path: Any) -> set[str]:
        """The labels that a run names, for when no list of classes says which there are."""

    def example(self, file: IO[bytes], lines: int) -> list[str]:
        """The first lines of a run, for somebody who wants to see what one looks like."""
        text = io.TextIOWrapper(file, encoding="utf-8")
        return [line.rstrip("\n") for _, line in zip(range(lines), text, strict=False)]

    def held(self, predictions: Any) -> Any:
        """What a run file can hold of predictions, which is what is scored."""
        return predictions

    def remarks(self, held: Any, items: Sequence[str]) -> list[str]:
        """What a reader of a score must know of a run: items that it does not answer, for instance.

        Args:
            held: What the run holds.
            items: The items that are scored.
        """
        return []

    def of_length(self, answers: int) -> RunFormat:
        """The same format with at most so many labels an item.

        Raises:
            MisuseError: When lines of that length are not allowed, or a line holds no ranked labels.
        """
        raise MisuseError("Runs of this benchmark do not list answers by rank, so that --answers says nothing.")


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
