"""What is wrong with rows of a table of occurrences: counted when it is opened, listed when it is checked."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from fieldmark.datasets.checking import Problems, Severity


@dataclass(frozen=True)
class RowProblem:
    """One kind of problem.

    Args:
        severity: How bad it is.
        what: What is wrong with a row, and what became of it.
        rows: `file`, `line` (null for a file as a whole) and `value` of each such row.
    """

    severity: Severity
    what: str
    rows: pl.DataFrame

    def places(self, most: int | None = None) -> list[str]:
        """Where each of them is, and what stands there."""
        rows = self.rows if most is None else self.rows.head(most)
        return [
            f"{file}{'' if line is None else f', line {line}'}{'' if value is None else f': {value}'}"
            for file, line, value in rows.iter_rows()
        ]


@dataclass
class RowProblems:
    """Problems of rows as they are met."""

    listed: list[RowProblem] = field(default_factory=list)

    def add(self, severity: Severity, what: str, rows: pl.DataFrame, value: pl.Expr | None = None) -> None:
        """Notes the rows (`file`, `line`), if there are any, with the value that is wrong."""
        if len(rows):
            shown = pl.lit(None, pl.String) if value is None else value.cast(pl.String)
            self.listed.append(RowProblem(severity, what, rows.select("file", "line", shown.alias("value"))))

    def remarks(self) -> list[str]:
        """A sentence for each kind of error or warning, with the first place."""
        return [
            f"{len(problem.rows):,} row(s): {problem.what} (the first: {problem.places(1)[0]})."
            for problem in self.listed
            if problem.severity != "note"
        ]

    def report(self, problems: Problems) -> None:
        """Adds all of them to a check."""
        for problem in self.listed:
            problems.add(problem.severity, problem.what, problem.places)
