"""A table as it stands in a file, and the tables that make up one case."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

UNKNOWN = "-1"
Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Rows of text under named columns.

    Args:
        columns: The names of the columns.
        rows: The fields of each row.
        separator: What stands between two fields.
        header: Whether the file begins with the names of the columns.
    """

    columns: Row
    rows: tuple[Row, ...]
    separator: str = ","
    header: bool = True

    def lines(self) -> tuple[Row, ...]:
        """The rows as the file has them, the header first where there is one."""
        return (self.columns, *self.rows) if self.header else self.rows

    def text(self) -> str:
        """The file."""
        file = io.StringIO()
        csv.writer(file, delimiter=self.separator, lineterminator="\n").writerows(self.lines())
        return file.getvalue()

    def column(self, name: str) -> list[str]:
        """The fields of one column."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def by_column(self) -> dict[str, list[str]]:
        """The columns by their names."""
        return {name: self.column(name) for name in self.columns}

    def with_rows(self, rows: Iterable[Row]) -> Table:
        """The same columns over other rows."""
        return replace(self, rows=tuple(rows))

    def with_columns(self, names: Iterable[str]) -> Table:
        """The named columns, in that order."""
        columns = tuple(names)
        places = [self.columns.index(name) for name in columns]
        return replace(self, columns=columns, rows=tuple(tuple(row[place] for place in places) for row in self.rows))


@dataclass(frozen=True)
class Case:
    """One run of one benchmark, with the tables it is scored against.

    Args:
        benchmark: Its name.
        run: The run file.
        truth: The true labels.
        classes: The known classes and their flags; None where nobody lists them.
        media: The recordings of soundscapes.
    """

    benchmark: str
    run: Table
    truth: Table
    classes: Table | None = None
    media: Table | None = None

    def tables(self) -> dict[str, Table]:
        """Every table of the case, by the name of its file without the ending."""
        named = {"run": self.run, "truth": self.truth, "classes": self.classes, "media": self.media}
        return {name: table for name, table in named.items() if table is not None}

    def with_tables(self, tables: Mapping[str, Table]) -> Case:
        """The case with other tables under some of the names."""
        named = self.tables() | dict(tables)
        return Case(self.benchmark, named["run"], named["truth"], named.get("classes"), named.get("media"))

    def write(self, folder: Path) -> dict[str, Path]:
        """Writes every table as a CSV file and returns where."""
        return write_texts(folder, {name: table.text() for name, table in self.tables().items()})


def write_texts(folder: Path, texts: Mapping[str, str]) -> dict[str, Path]:
    """Writes each text as `<name>.csv`."""
    paths = {name: folder / f"{name}.csv" for name in texts}
    for name, text in texts.items():
        paths[name].write_bytes(text.encode())
    return paths
