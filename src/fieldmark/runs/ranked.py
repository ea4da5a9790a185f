"""The run file of most photo challenges: for each item its labels, best first.

```
id,predicted
0-3032614317.JPG,119 27 4
```

Read leniently where nothing can be misunderstood (byte-order mark, CRLF, quotes, spaces around fields, gzip) and
strictly everywhere else.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from fieldmark.errors import InputError
from fieldmark.files import appearing_file
from fieldmark.labels import Labels
from fieldmark.runs.predictions import Predictions
from fieldmark.runs.problems import Problems


@dataclass(frozen=True)
class Ranked:
    """Ranked labels per item.

    Args:
        at_most: How many labels a line may list.
        columns: The names of the two columns.
        separator: What stands between two labels.
    """

    at_most: int
    columns: tuple[str, str] = ("id", "predicted")
    separator: str = " "

    def write(self, path: Path, predictions: Predictions) -> None:
        """Writes the first `at_most` labels of each item."""
        best = predictions.top(min(self.at_most, len(predictions.labels)))
        with appearing_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            for item, codes in zip(predictions.items, best, strict=True):
                names = predictions.labels.decode(codes[codes >= 0])
                writer.writerow([item, self.separator.join(names)])

    def read(self, path: Path, items: Sequence[str], labels: Labels) -> Predictions:
        """Reads and checks a run file.

        Args:
            path: The file, plain or gzip.
            items: The items that must be answered, each exactly once.
            labels: The labels that may be named.

        Returns:
            Sparse predictions in the order of `items`; scores fall from 1 with the rank.

        Raises:
            RunError: Lists what is wrong, with line numbers.
        """
        problems = Problems(path)
        row_of = {item: row for row, item in enumerate(items)}
        codes = np.full((len(items), self.at_most), -1, dtype=np.int32)
        seen: dict[str, int] = {}
        for line, item, names in self._lines(path, problems):
            if item not in row_of:
                problems.add(line, f"the id {item!r}", "an id of the benchmark")
            elif item in seen:
                problems.add(line, f"the id {item!r} again (first in line {seen[item]})", "each id once")
            else:
                seen[item] = line
                self._fill(codes[row_of[item]], names, labels, line, problems)
        missing = [item for item in items if item not in seen]
        if missing:
            listed = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
            problems.add(None, f"no line for {len(missing)} of {len(items)} ids ({listed})", "a line for each")
        problems.raise_any()
        ranks = np.arange(self.at_most, dtype=np.float32)
        scores = np.where(codes >= 0, 1 - ranks / self.at_most, -np.inf).astype(np.float32)
        return Predictions(tuple(items), labels, scores, "score", codes=codes)

    def _lines(self, path: Path, problems: Problems) -> Iterator[tuple[int, str, list[str]]]:
        """The id and the labels of each line after the header."""
        with _open_text(path) as text:
            yield from self._fields(path, csv.reader(text, skipinitialspace=True), problems)

    def _fields(self, path: Path, reader: Any, problems: Problems) -> Iterator[tuple[int, str, list[str]]]:
        try:
            header = [field.strip() for field in next(reader, [])]
            if header != list(self.columns):
                found = f"the header {','.join(header)!r}" if header else "an empty file"
                raise InputError(path, line=1, found=found, expected=f"the header {','.join(self.columns)!r}")
            for fields in reader:
                if len(fields) == 2:
                    yield reader.line_num, fields[0].strip(), self._split(fields[1])
                elif fields:
                    problems.add(reader.line_num, f"{len(fields)} fields", f"2 fields ({','.join(self.columns)})")
        except (csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
            line = reader.line_num + 1
            raise InputError(path, line=line, found=f"something unreadable ({error})", expected="CSV text") from error

    def _split(self, field: str) -> list[str]:
        names = field.split() if self.separator == " " else [name.strip() for name in field.split(self.separator)]
        return [name for name in names if name]

    def _fill(self, row: np.ndarray, names: list[str], labels: Labels, line: int, problems: Problems) -> None:
        if not names:
            problems.add(line, "no label", f"between 1 and {self.at_most} labels")
        elif len(names) > self.at_most:
            problems.add(line, f"{len(names)} labels", f"at most {self.at_most}")
        elif len(set(names)) < len(names):
            problems.add(line, "a label twice", "each label once")
        else:
            for place, name in enumerate(names):
                code = labels.code_of.get(name)
                if code is None:
                    problems.add(line, f"the label {name!r}", "a label of the benchmark")
                else:
                    row[place] = code


def _open_text(path: Path) -> io.TextIOWrapper:
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
    except (FileNotFoundError, IsADirectoryError) as error:
        raise InputError(path, found="no such file", expected="a run file") from error
    # Bytes that are not UTF-8 become a replacement character, which no label and no id of a benchmark contains.
    opened = cast(IO[bytes], gzip.open(path) if zipped else path.open("rb"))  # noqa: SIM115  (closed with the wrapper)
    return io.TextIOWrapper(opened, encoding="utf-8-sig", errors="replace", newline="")
