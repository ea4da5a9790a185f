"""Any table cut into parts or folds and written as a file; and whether a cut parts what belongs together."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.identical import identical_files
from fieldmark.splits.assignment import shares_of
from fieldmark.splits.by_date import DateCut
from fieldmark.splits.division import (
    Counted,
    Division,
    Shared,
    balanced_by,
    divide,
    divide_into_folds,
    row_by_row,
    shared_between,
)
from fieldmark.splits.files import Split
from fieldmark.splits.groups import Links, grouped, links_of, links_of_files
from fieldmark.splits.quadrats import Apart, apart, organizers_parts
from fieldmark.splits.rules import ByColumn, ByDay, PlaceRule, Quadrats, Rule, rule_named
from fieldmark.storage.files import open_input
from fieldmark.storage.parquet import read_frame
from fieldmark.storage.release import Release
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import missing_column
from fieldmark.version import __version__

ID_COLUMNS = ("id", "media_id", "observation_id", "file", "path")
COPIES = "set of identical files"


@dataclass(frozen=True)
class Columns:
    """Which columns of a table mean what; None where the table has no such column.

    Args:
        id: What names a row; the first of `ID_COLUMNS` that the table has if not given.
        unit: What stays together besides what the rule says, such as the observation of a photo.
        label: The class, of which each part gets its share.
        date, lat, lon: What the rules by day and by place read.
        file: The path of a photo or recording below the folder of the table: files with the same bytes stay together.
    """

    id: str | None = None
    unit: str | None = None
    label: str | None = None
    date: str = "date"
    lat: str = "lat"
    lon: str = "lon"
    file: str | None = None


@dataclass(frozen=True)
class SplitResult:
    """A table that was cut.

    Args:
        split: What the file holds.
        rows, groups: How many of each there are in each part; groups are never parted.
        shared: Of everything that was compared, how much lies in more than one part.
        by_rows: The same for a draw row by row, as if nothing belonged together.
        apart: For rules on places, how far val and test lie from train.
        apart_by_rows: The same for a draw row by row.
    """

    split: Split
    rows: dict[str, int]
    groups: dict[str, int]
    shared: tuple[Shared, ...]
    by_rows: tuple[Shared, ...]
    apart: Mapping[str, Apart] = field(default_factory=dict)
    apart_by_rows: Mapping[str, Apart] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The result as plain data, without the rows of the table."""
        return {
            **dict(self.split.about),
            "digest": self.split.digest,
            "rows": self.rows,
            "groups": self.groups,
            "shared": {one.what: [one.shared, one.total] for one in self.shared},
            "shared_row_by_row": {one.what: [one.shared, one.total] for one in self.by_rows},
            **({"apart": _distances(self.apart)} if self.apart else {}),
            **({"apart_row_by_row": _distances(self.apart_by_rows)} if self.apart_by_rows else {}),
        }


def _distances(found: Mapping[str, Apart]) -> dict[str, Any]:
    return {part: one.to_data() for part, one in found.items()}


def split_table(
    table: str | Path,
    by: str | Rule = "unit",
    *,
    val: float = 0.0,
    test: float = 0.0,
    folds: int = 0,
    counted: Counted | None = None,
    seed: int | None = None,
    columns: Columns | None = None,
    check: Sequence[str] = (),
    out: str | Path | None = None,
) -> SplitResult:
    """Splits a table by a rule, and writes the split if `out` is given.

    Args:
        table: A CSV or Parquet file.
        by: The rule, or its name: unit, day, class, block:METRES, cells:METRES, quadrats:METRES, or a column.
        val: The share of val.
        test: The share of test; train gets the rest.
        folds: The number of folds, instead of parts.
        counted: Whether shares are of rows or of groups; of rows unless given, of groups for quadrats.
        seed: The seed of the draw; 0 unless given, 1949 for quadrats.
        columns: Which columns mean what.
        check: Further columns of which to say how many values lie in more than one part.
        out: The CSV file to write; a JSON file beside it says how it was made.

    Raises:
        InputError: When the table is at fault.
        MisuseError: When shares or folds are.
    """
    if bool(folds) == bool(val or test):
        raise MisuseError("A split is into parts or into folds: give --val and --test, or --folds.")
    given = GivenRows.read(Path(table), columns or Columns())
    rule = given.rule(by)
    links = given.links(rule)
    seed = rule.seed if seed is None else seed
    counted = counted or ("groups" if rule.counts_groups else "rows")
    classes = balanced_by(rule, given.classes)
    shares = {} if folds else shares_of({"val": val, "test": test})
    if folds:
        division = divide_into_folds(given.ids, list(links.values()), number=folds, classes=classes, seed=seed)
    elif isinstance(rule, Quadrats) and counted == "groups" and len(links) == 1:
        division = _as_organizers(given, rule, shares, seed)
    else:
        division = divide(
            given.ids,
            list(links.values()),
            shares={"val": val, "test": test},
            classes=classes,
            counted=counted,
            seed=seed,
            where=given.where,
        )
    about = {
        "code_version": __version__,
        "table": Path(table).name,
        "table_digest": given.digest,
        "id": given.columns.id,
        "rule": rule.to_data(),
        "together": list(links),
        **({"folds": folds} if folds else {"shares": shares, "counted": counted}),
        "balanced_by": given.columns.label if classes is not None and counted == "rows" else None,
        "seed": seed,
    }
    result = given.result(division, {**links, **given.checked(check)}, about, seed)
    if isinstance(rule, PlaceRule) and not folds:
        result = _with_distances(result, given, rule, division, seed)
    if out is not None:
        result.split.write(Path(out))
    return result


def split_by_date(
    table: str | Path,
    cut: DateCut,
    *,
    columns: Columns | None = None,
    check: Sequence[str] = (),
    out: str | Path | None = None,
) -> SplitResult:
    """Cuts a table by date, and writes the split if `out` is given.

    The first day of a unit decides for all of its rows; rows without a date, or after the end, are unused.

    Args:
        table: A CSV or Parquet file.
        cut: The days of each part.
        columns: Which columns mean what.
        check: Further columns of which to say how many values lie in more than one part.
        out: The CSV file to write; a JSON file beside it says how it was made.

    Raises:
        InputError: When the table is at fault, or a part would be empty.
    """
    given = GivenRows.read(Path(table), columns or Columns())
    unit = given.rule("unit")
    links = given.links(unit)
    days = ByDay(given.columns.date).keys(given.frame, given.where).str.to_date()
    rows = pl.DataFrame({"day": days, "unit": unit.keys(given.frame, given.where)})
    first = rows.select(pl.when(pl.col("unit").is_null()).then("day").otherwise(pl.col("day").min().over("unit")))
    division = Division(cut.parts(first.to_series()), grouped(given.ids, [links[unit.title]]))
    for part in ("train", "val", "test"):
        if part not in division.parts:
            there = days.drop_nulls().sort()
            hint = f"The dates are from {there[0]} to {there[-1]}."
            raise InputError(
                given.where, found=f"no row {cut.span(part)}", expected=f"at least one for {part}", hint=hint
            )
    made = {name: value for name, value in cut.to_data().items() if name != "few"}
    about = {
        "code_version": __version__,
        "table": Path(table).name,
        "table_digest": given.digest,
        "id": given.columns.id,
        "rule": {**made, "column": given.columns.date},
        "together": [unit.title],
    }
    result = given.result(division, {**links, **given.checked(check)}, about, seed=0)
    if out is not None:
        result.split.write(Path(out))
    return result


def _with_distances(
    result: SplitResult, given: GivenRows, rule: PlaceRule, division: Division, seed: int
) -> SplitResult:
    """How far val and test lie from train, by the rule and as if nothing belonged together."""
    lat, lon = rule.places(given.frame, given.where)
    plain = row_by_row(given.ids, division, seed).to_numpy()
    return replace(result, apart=apart(lat, lon, division.parts.to_numpy()), apart_by_rows=apart(lat, lon, plain))


def _as_organizers(given: GivenRows, rule: Quadrats, shares: Mapping[str, float], seed: int) -> Division:
    """The cut of the organizers of GeoLifeCLEF; rows without a place stay in train, each by itself."""
    names = rule.keys(given.frame, given.where)
    placed = names.is_not_null().to_numpy()
    parts = np.full(len(names), "train", dtype="<U5")
    held_out = {name: share for name, share in shares.items() if name != "train"}
    parts[placed] = organizers_parts(names.drop_nulls().to_numpy().astype(str), held_out, seed)
    for name in held_out:
        if name not in parts:
            found = f"{names.n_unique()} quadrats, none of them for {name}"
            raise InputError(given.where, found=found, expected="at least one", hint="Give a larger share.")
    groups = grouped(given.ids, [links_of(names)])
    return Division(pl.Series("part", parts.astype(str)), groups)


@dataclass(frozen=True)
class GivenRows:
    """A table with the columns that matter."""

    frame: pl.DataFrame
    columns: Columns
    where: Path
    digest: str

    @classmethod
    def read(cls, path: Path, columns: Columns) -> GivenRows:
        """Reads a table and finds the column that names its rows.

        Raises:
            InputError: When a row has no name, or two have the same.
        """
        with open_input(path, "a CSV or Parquet table") as file:
            data = file.read()
        if path.suffix == ".parquet":
            frame = read_frame(data, path)
        else:
            frame = read_csv(io.BytesIO(data), path, separator=_separator(data))
        named = columns.id or next((name for name in ID_COLUMNS if name in frame.columns), ID_COLUMNS[0])
        if named not in frame.columns:
            raise missing_column(path, named, frame.columns)
        if frame.is_empty():
            raise InputError(path, found="a header and no row", expected="rows to cut")
        ids = frame[named].cast(pl.String)
        blank = ids.is_null().arg_true()
        if len(blank):
            raise InputError(path, line=int(blank[0]) + 2, found=f"no {named}", expected="one in each row")
        again = (~ids.is_first_distinct()).arg_true()
        if len(again):
            row = int(again[0])
            hint = "Name the column that tells rows apart with --id."
            raise InputError(
                path, line=row + 2, found=f"{ids[row]!r} again as {named}", expected="each once", hint=hint
            )
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        return cls(frame, replace(columns, id=named), path, digest)

    @property
    def ids(self) -> list[str]:
        return self.frame[str(self.columns.id)].cast(pl.String).to_list()

    @property
    def classes(self) -> pl.Series | None:
        """The class of each row, where the table has classes."""
        if self.columns.label is None:
            return None
        if self.columns.label not in self.frame.columns:
            raise missing_column(self.where, self.columns.label, self.frame.columns)
        return self.frame[self.columns.label].cast(pl.String)

    def rule(self, by: str | Rule) -> Rule:
        """The rule that is meant, on the columns of this table."""
        if isinstance(by, Rule):
            return by
        own = self.columns
        if by == "unit" and own.unit is None:
            return ByColumn(str(own.id))  # every row is a unit of its own
        unit, label = own.unit or str(own.id), own.label or "label"
        return rule_named(by, unit=unit, label=label, date=own.date, lat=own.lat, lon=own.lon)

    def links(self, rule: Rule) -> dict[str, Links]:
        """What holds rows together, by what it is called: the rule, the unit, and files with the same bytes."""
        links = {rule.title: links_of(rule.keys(self.frame, self.where))}
        if self.columns.unit is not None:
            unit = ByColumn(self.columns.unit)
            links.setdefault(unit.title, links_of(unit.keys(self.frame, self.where)))
        if self.columns.file is not None:
            paths = ByColumn(self.columns.file).keys(self.frame, self.where).to_list()
            copies = identical_files(Release(self.where.resolve().parent), [path for path in paths if path])
            links[COPIES] = links_of_files([[path] if path else [] for path in paths], copies)
        return links

    def checked(self, names: Sequence[str]) -> dict[str, Links]:
        """Further things to look at, by the names of rules."""
        rules = [self.rule(name) for name in names]
        return {rule.title: links_of(rule.keys(self.frame, self.where)) for rule in rules}

    def result(self, division: Division, links: dict[str, Links], about: dict[str, Any], seed: int) -> SplitResult:
        """The split, and what its parts share."""
        ids, plain = self.ids, row_by_row(self.ids, division, seed)
        table = pl.DataFrame({"id": pl.Series(ids, dtype=pl.String), "part": division.parts})
        return SplitResult(
            Split(table, about, str(self.where)),
            division.rows(),
            division.group_counts(),
            tuple(shared_between(division.parts, one, ids, what) for what, one in links.items()),
            tuple(shared_between(plain, one, ids, what) for what, one in links.items()),
        )


def _separator(data: bytes) -> str:
    r"""What parts the fields of a table: a comma, or a semicolon or tab where the header has no comma.

    >>> _separator(b"id;lat;lon\n1;45,7;1,4\n"), _separator(b"id,note\n1,a;b\n")
    (';', ',')
    """
    header = data.partition(b"\n")[0].decode("utf-8", "replace")
    return next((mark for mark in ",;\t" if mark in header), ",")
