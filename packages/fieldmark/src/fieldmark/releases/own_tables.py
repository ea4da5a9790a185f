"""Tables that people put beside their photos: found by name, read strictly, in whatever form they were saved.

A table goes by its name without endings, in any case: `observations.csv`, `Observations.TSV`, `observations.csv.gz` and
`observations.parquet` are the same table. Separators (comma, semicolon, tab, bar) are found; text is UTF-8, or UTF-16
where it begins with a byte order mark. Text that is neither is taken for Windows-1252, and a remark shows a word of it.
Columns go by their usual names (`Roles`); values are text, without blanks around them, and empty ones are nulls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

import polars as pl

from fieldmark.errors import InputError
from fieldmark.storage.parquet import read_texts
from fieldmark.storage.release import Release
from fieldmark.tables.delimited import read_columns, read_header
from fieldmark.tables.media import is_leftover
from fieldmark.tables.schema import missing_column
from fieldmark.tables.table_text import COMPRESSIONS, UTF8, first_other_line, told_encoding

TEXT_TABLES: Final = (".csv", ".tsv", ".tab", ".txt")
PARQUET: Final = ".parquet"
# Forms of tables that nobody reads here.
OTHER_TABLES: Final = (
    ".xlsx",
    ".xls",
    ".xlsm",
    ".ods",
    ".numbers",
    ".json",
    ".jsonl",
    ".xml",
    ".sqlite",
    ".db",
    ".dbf",
)
OTHER_TABLES_TOO: Final = (".feather", ".arrow", ".rds", ".rdata", ".mdb", ".accdb", ".yaml", ".yml", ".html")
# Texts that are no tables.
PROSE: Final = ("readme", "license", "licence", "copying", "citation", "notice", "terms", "changelog", "about")
WINDOWS: Final = "cp1252"
LINE: Final = "line"
# The names of the columns of each role, the one that the documentation uses first.
Roles = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class OwnTable:
    """A table as it stands in its file.

    Args:
        name: The file, below the root.
        where: What to call it in messages.
        rows: Its columns as text, and `line`: where each row begins; of a Parquet file its number, from 1.
        remarks: How it was read, where that is not plain.
    """

    name: str
    where: str
    rows: pl.DataFrame
    remarks: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        return [name for name in self.rows.columns if name != LINE]

    def error(self, row: int, found: str, expected: str, hint: str | None = None) -> InputError:
        """The error about one row, from 0."""
        return InputError(self.where, line=self.rows[LINE][row], found=found, expected=expected, hint=hint)

    def by_role(self, roles: Roles, required: Sequence[str] = ()) -> OwnTable:
        """The table with its columns called by role; the others keep their names, and all keep their order.

        Raises:
            InputError: When a required one is missing, or two columns could be meant.
        """
        column_of = {role: column for role, names in roles.items() if (column := self._column_of(role, names))}
        for role in required:
            if role not in column_of:
                raise missing_column(self.where, roles[role][0], self.columns)
        told = [f"{roles[role][0]} from `{name}`" for role, name in column_of.items() if name not in roles[role][:2]]
        remark = (f"Read `{self.name}`: {', '.join(told)}.",) if told else ()
        taken = {name: role for role, name in column_of.items()}
        clash = [name for name in self.columns if name in roles and name not in taken]
        rows = self.rows.rename({name: f"{name} as written" for name in clash}).rename(taken)
        return replace(self, rows=rows, remarks=(*self.remarks, *remark))

    def _column_of(self, role: str, names: Sequence[str]) -> str | None:
        if names[0] in self.columns:
            return names[0]
        wanted = [plain_column(name) for name in names]
        fits = [name for name in self.columns if plain_column(name) in wanted]
        if len(fits) > 1:
            hint = f"Call the one that counts `{names[0]}`."
            found = f"the columns {' and '.join(fits)}"
            raise InputError(self.where, line=1, found=found, expected=f"one for {names[0]}", hint=hint)
        return fits[0] if fits else None


def plain_column(name: str) -> str:
    """The name of a column without capitals, blanks and punctuation."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def find_table(release: Release, names: Sequence[str]) -> str | None:
    """The file of the first of some tables that is there.

    Raises:
        InputError: When it is there in two forms.
    """
    files = {name: _stem(name) for name in release.files() if _is_read(name)}
    for wanted in names:
        found = [name for name, stem in files.items() if stem == wanted]
        if len(found) > 1:
            hint = "Remove the others, or keep them elsewhere."
            raise InputError(release.root, found=f"the tables {' and '.join(found)}", expected="one of them", hint=hint)
        if found:
            return found[0]
    return None


def unread_tables(release: Release, read: Sequence[str | None], offered: Sequence[str]) -> list[str]:
    """A remark for each table in the root that nobody reads.

    Args:
        release: The root.
        read: The tables that were read.
        offered: Names of tables that would be.
    """
    remarks = []
    for name in release.files():
        ending = _ending(name)
        if name in read or is_leftover(name) or _stem(name) in PROSE or release.world is not None:
            continue
        if ending in (*TEXT_TABLES, PARQUET):
            remarks.append(f"`{name}` is not read; tables that are: {', '.join(offered)}.")
        elif ending in OTHER_TABLES:
            remarks.append(f"`{name}` is not read; save it as CSV, as {' or '.join(offered)}.")
    return remarks


def read_table(release: Release, name: str) -> OwnTable:
    """Reads a table.

    Raises:
        InputError: When it is no table, or lines do not have the same number of fields, with the line.
    """
    where = release.where(name)
    if _ending(name) == PARQUET:
        return OwnTable(name, where, _read_parquet(release, name))
    encoding, remarks = told_encoding(release, name), list[str]()
    other = first_other_line(release, name) if encoding == UTF8 else None
    if other is not None:
        encoding, (line, text) = WINDOWS, other
        remarks.append(f"Read `{name}` as Windows-1252, since it is not UTF-8; line {line} is then: {text}")
    header = read_header(release, name, encoding=encoding)
    places: dict[str, int] = {}
    for place, column in enumerate(header.columns):
        if column in places:
            raise InputError(where, line=1, found=f"two columns {column!r}", expected="a name for each column")
        if column:
            places[f"{LINE} as written" if column == LINE else column] = place
    rows = read_columns(release, name, header.dialect, places, width=len(header.columns))
    return OwnTable(name, where, rows, tuple(remarks))


def _read_parquet(release: Release, name: str) -> pl.DataFrame:
    rows = read_texts(release.read(name), release.where(name))
    texts = rows.select(pl.all().str.strip_chars()).with_row_index(LINE, offset=1)
    filled = [pl.when(pl.col(name) != "").then(pl.col(name)).alias(name) for name in rows.columns]
    return texts.with_columns(pl.col(LINE).cast(pl.Int64), *filled)


def _is_read(name: str) -> bool:
    return _ending(name) in (*TEXT_TABLES, PARQUET) and not is_leftover(name)


def _ending(name: str) -> str:
    """What a file is, by its name without the ending of a compression."""
    path = PurePosixPath(name.lower())
    return PurePosixPath(path.stem).suffix if path.suffix in COMPRESSIONS else path.suffix


def _stem(name: str) -> str:
    return PurePosixPath(name).name.partition(".")[0].lower()
