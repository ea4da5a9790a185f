"""What is wrong with rows of a table of occurrences: counted when it is opened, listed when it is checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import polars as pl

if TYPE_CHECKING:
    from fieldmark.releases.checks import Problems

Severity = Literal["error", "warning", "note"]

# How many labels a remark names.
SHOWN = 5


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
    joined: dict[str, list[str]] = field(default_factory=dict)

    def note_names(self, rows: pl.DataFrame) -> None:
        """Notes which labels join several names (`named`), each with its first row."""
        firsts = rows.drop_nulls(["label", "named"]).unique(["label", "named"], keep="first", maintain_order=True)
        several = firsts.filter(pl.len().over("label") > 1).sort("label", maintain_order=True)
        for label, named in several.select("label", "named").iter_rows():
            self.joined.setdefault(label, []).append(named)
        shown = pl.concat_str("named", pl.lit(" as "), "label")
        self.add("note", "gives a label one of its several names", several, shown)

    def add(self, severity: Severity, what: str, rows: pl.DataFrame, value: pl.Expr | None = None) -> None:
        """Notes the rows (`file`, `line`), if there are any, with the value that is wrong."""
        if len(rows):
            shown = pl.lit(None, pl.String) if value is None else value.cast(pl.String)
            self.listed.append(RowProblem(severity, what, rows.select("file", "line", shown.alias("value"))))

    def remarks(self) -> list[str]:
        """A sentence for each kind of error or warning, with the first place, and one about names that were joined."""
        return [*self._names_joined(), *self._of_rows()]

    def _names_joined(self) -> list[str]:
        if not self.joined:
            return []
        shown = "; ".join(f"{label} ({', '.join(names)})" for label, names in list(self.joined.items())[:SHOWN])
        more = f"; and {len(self.joined) - SHOWN:,} more, which `fieldmark check` lists" * (len(self.joined) > SHOWN)
        return [f"{len(self.joined):,} label(s) join several names: {shown}{more}."]

    def _of_rows(self) -> list[str]:
        return [
            f"{len(problem.rows):,} row(s): {problem.what} (the first: {problem.places(1)[0]})."
            for problem in self.listed
            if problem.severity != "note"
        ]

    def report(self, problems: Problems) -> None:
        """Adds all of them to a check."""
        for problem in self.listed:
            problems.add(problem.severity, problem.what, problem.places)
