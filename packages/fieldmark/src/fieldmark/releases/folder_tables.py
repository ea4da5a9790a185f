"""What the tables beside people's photos say of each photo and class: which file, specimen, day, place, label and part.

`read_photo_table` reads `observations`, `plants`, `labels` or `metadata`, `read_taxa_table` reads `taxa` or `species`,
in any form that `own_tables` knows. A photo is named by its path below the root, by the end of that path where it
leaves no doubt (`1.jpg`, `Amanita/1.jpg`, `C:/photos/Amanita/1.jpg`), or by its name without the ending.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

import polars as pl

from fieldmark.errors import InputError
from fieldmark.releases.folder_layout import named, part_of, plain_label
from fieldmark.releases.own_tables import LINE, OwnTable, Roles, find_table, plain_column, read_table
from fieldmark.storage.release import Release
from fieldmark.tables.dates import add_dates
from fieldmark.tables.known_columns import NAMES
from fieldmark.tables.row_problems import RowProblems
from fieldmark.tables.schema import RANKS, missing_column, parse_column
from fieldmark.tables.values import EMPTY, with_places

PHOTO_TABLES: Final = ("observations", "plants", "labels", "metadata")
TAXA_TABLES: Final = ("taxa", "species")
OFFERED: Final = ("observations.csv", "taxa.csv", "boxes.csv")
FILE_NAMES: Final = (
    *("file", "filename", "photo", "path", "filepath", "image", "img", "picture", "recording", "photo_file"),
    *("photo_path", "photo_name", "image_file", "image_path", "image_name", "audio", "audio_file", "sound_file"),
)
# Columns that name photos only where no better one does.
FILE_IDS: Final = ("image_id", "photo_id", "media_id", "item_id", "id", "name")
ROLES: Final[Roles] = {
    "file": FILE_NAMES,
    "observation_id": (
        *("observation", "observation_id", "plant", "specimen", "specimen_id", "plant_id", "individual"),
        *("individual_id", "sighting", "occurrenceID", "gbifID", "record_id"),
    ),
    "date": ("date", *(name for name in NAMES["date"] if name != "date"), "datecollected", "datetime", "timestamp"),
    "lat": ("latitude", "lat", *NAMES["lat"][:1]),
    "lon": ("longitude", "lon", *NAMES["lon"][:1], "long", "lng"),
    "part": ("part", "split"),
}
# Columns that tell the class, the best first.
LABEL_NAMES: Final = (
    *(
        "label",
        "labels",
        "class_name",
        "species",
        "scientific_name",
        "taxon",
        "taxon_name",
        "category",
        "class",
        "genus",
    ),
)
# What tables say of photos; everything else is passed on.
TAKEN: Final = ("file", "observation_id", "label", "part", "domain", LINE)
RESERVED: Final = ("path", "parts", "media_id", "media_ids", "item_id", "labels")
# Dates of which the column must tell whether days or months come first.
EITHER: Final = re.compile(r"^[0-9]{1,2}[/-][0-9]{1,2}[/-][0-9]{2,4}\b")
DAY_OR_MONTH: Final = "The column does not tell days from months."
TAXA_COLUMNS: Final = (*RANKS, "common_name", "scientific_name", "red_list", "poisonous")


@dataclass(frozen=True)
class PhotoLines:
    """What a table says of photos.

    Args:
        table: The table with its columns by role; `file` is the path below the root.
        label: The column that tells the class, where there is one.
        context: The columns that describe observations: `date`, `lat`, `lon` and whatever else there is.
    """

    table: OwnTable
    label: str | None
    context: tuple[str, ...]

    def remarks(self) -> tuple[str, ...]:
        return self.table.remarks


def read_photo_table(release: Release, paths: Sequence[str]) -> PhotoLines | None:
    """Reads the table of photos, where there is one.

    Args:
        release: The root.
        paths: The photos that are there.

    Raises:
        InputError: With the line of what cannot be read, or names no photo.
    """
    name = find_table(release, PHOTO_TABLES)
    if name is None:
        return None
    table = read_table(release, name)
    roles = ROLES
    if not set(map(plain_column, FILE_NAMES)) & set(map(plain_column, table.columns)):
        # Many tables have several ids: the best of them.
        best = next(
            (one for name in FILE_IDS for one in table.columns if plain_column(one) == plain_column(name)), "id"
        )
        roles = {**ROLES, "file": (FILE_NAMES[0], best)}
    table = table.by_role(roles, required=("file",))
    table, label = _with_label(table)
    table = with_numbers(with_dates(with_photos(table, paths)))
    # Names that the tables of a dataset have for something else.
    rows = table.rows.rename({one: f"{one} as written" for one in table.columns if one in RESERVED})
    table = replace(table, rows=rows)
    return PhotoLines(table, label, tuple(one for one in table.columns if one not in TAKEN))


def _with_label(table: OwnTable) -> tuple[OwnTable, str | None]:
    """The table with a column `label` where one tells the class, and the name that this has in the file."""
    fits = [one for name in LABEL_NAMES for one in table.columns if plain_column(one) == plain_column(name)]
    if not fits:
        return table, None
    rows = table.rows.with_columns(pl.col(fits[0]).alias("label"))
    return replace(table, rows=rows), fits[0]


def with_photos(table: OwnTable, paths: Sequence[str]) -> OwnTable:
    """The table with the path of the photo of each line.

    Raises:
        InputError: For a line that names no photo, several, or one that another line names.
    """
    names = table.rows["file"]
    path_of = Naming(paths)
    found = [path_of.find(name) for name in names]
    before: set[str] = set()
    for row, (name, fits) in enumerate(zip(names, found, strict=True)):
        if name is None:
            raise table.error(row, "no file", "the path of a photo below the folder")
        if not fits:
            missing = sum(not others for others in found) - 1
            more = f" ({missing} more such lines.)" if missing else ""
            hint = f"Restore the photo, or remove the line.{more}"
            raise table.error(row, f"{name!r}, which is not there", "the path of a photo below the folder", hint)
        if len(fits) > 1:
            hint = "Write the path below the folder."
            raise table.error(row, f"{name!r}, which {len(fits)} photos are called ({fits[0]}, {fits[1]})", "one", hint)
        if fits[0] in before:
            raise table.error(row, f"{name!r} again", "one line per photo")
        before.add(fits[0])
    return replace(table, rows=table.rows.with_columns(file=pl.Series([fits[0] for fits in found], dtype=pl.String)))


class Naming:
    """Photos by what people write for them."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._path_of = {_plain_path(path): path for path in paths}
        self._named: dict[str, list[str]] = {}
        for plain in self._path_of:
            name = plain.rpartition("/")[2]
            self._named.setdefault(name.casefold(), []).append(plain)
            self._named.setdefault(PurePosixPath(name).stem.casefold(), []).append(plain)

    def find(self, written: str | None) -> list[str]:
        """The photos that may be meant: the one at that path, or those whose path ends so."""
        plain = _plain_path(written or "")
        if plain in self._path_of:
            return [self._path_of[plain]]
        lower = plain.casefold()
        folder, _, name = lower.rpartition("/")
        fits = [path for path in self._named.get(name, ()) if _ends_alike(path.casefold().rpartition("/")[0], folder)]
        return [self._path_of[path] for path in fits]


def _ends_alike(folder: str, written: str) -> bool:
    """Whether one of two folders is the end of the other."""
    short, long = sorted((folder, written), key=len)
    return not short or long == short or long.endswith(f"/{short}")


def _plain_path(path: str) -> str:
    return unicodedata.normalize("NFC", path.replace("\\", "/")).removeprefix("./").strip("/")


def with_numbers(table: OwnTable) -> OwnTable:
    """The table with `lat` and `lon` as numbers, with a decimal point or comma, nulls where there are none.

    Raises:
        InputError: With the line of what is no place on Earth.
    """
    problems = RowProblems()
    rows = _checkable(table, ("lat", "lon"))
    for one, other in (("lat", "longitude"), ("lon", "latitude")):
        if len({"lat", "lon"} & set(rows.columns)) == 1 and one in rows.columns:
            raise missing_column(table.where, other, table.columns)
    placed = with_places(rows, problems)
    _refuse_first(table, problems, "place", "degrees such as 46.95 and 7.45, or nothing")
    return _replaced(table, placed.select("lat", "lon"))


def with_dates(table: OwnTable) -> OwnTable:
    """The table with `date`, null where a day is not known.

    Raises:
        InputError: With the line of what is no date, or could be two.
    """
    if "date" not in table.columns:
        return replace(table, rows=table.rows.with_columns(pl.lit(None, pl.Date).alias("date")))
    problems = RowProblems()
    dated = add_dates(_checkable(table, ("date",)), problems)
    _refuse_first(table, problems, "date", "a date such as 2021-09-30")
    coarse = dated.filter(pl.col("date").is_null() & pl.col("event_date").is_not_null())
    remark = f"{len(coarse):,} date(s) in `{table.name}` have no day and count as unknown: "
    remarks = (f"{remark}{named(coarse['event_date'].unique(maintain_order=True).to_list())}.",) if len(coarse) else ()
    return replace(_replaced(table, dated.select("date")), remarks=(*table.remarks, *remarks))


def _checkable(table: OwnTable, columns: Sequence[str]) -> pl.DataFrame:
    """Some columns as the readers of occurrences take them; what databases write for nothing is nothing."""
    there = [pl.when(~pl.col(one).is_in(EMPTY)).then(pl.col(one)).alias(one) for one in columns if one in table.columns]
    return table.rows.select(LINE, pl.lit(table.name).alias("file"), *there)


def _refuse_first(table: OwnTable, problems: RowProblems, what: str, expected: str) -> None:
    """Raises the error of the first line with a problem: what was noted down must not vanish."""
    errors = [
        (line, problem.what, value)
        for problem in problems.listed
        if problem.severity == "error"
        for line, value in problem.rows.select(LINE, "value").iter_rows()
    ]
    if errors:
        line, problem, value = min(errors)
        reason = re.sub(r"(;| and (is )?left empty).*", "", problem)
        hint = DAY_OR_MONTH if EITHER.match(value or "") and "cannot be read" in reason else None
        found = f"{value!r} as {what}" + ("" if "cannot be read" in reason else f" ({reason})")
        raise InputError(table.where, line=line, found=found, expected=expected, hint=hint)


def _replaced(table: OwnTable, columns: pl.DataFrame) -> OwnTable:
    """The table with some columns in place of those of the same name; new ones stand last."""
    return replace(table, rows=table.rows.with_columns(columns.get_columns()))


def told_parts_of(table: OwnTable) -> pl.Series:
    """The part that each line states.

    Raises:
        InputError: With the line of a word that stands for no part.
    """
    parts = [None if word is None else part_of(word) for word in table.rows["part"]]
    for row, (word, part) in enumerate(zip(table.rows["part"], parts, strict=True)):
        if part is None:
            raise table.error(row, f"the part {word!r}" if word else "no part", "train, val or test")
    return pl.Series("part", parts, dtype=pl.String)


def read_taxa_table(release: Release, labels: Sequence[str]) -> tuple[pl.DataFrame | None, list[str]]:
    """What a table says of classes: one row for each label with its ranks, names and `poisonous`; and remarks.

    Raises:
        InputError: With the line of a class that stands there twice, or of a flag that is none.
    """
    name = find_table(release, TAXA_TABLES)
    if name is None:
        return None, []
    table = read_table(release, name)
    column = _label_column(table, labels)
    label = _labels_of(table.rows[column], labels)
    for row in (label.is_duplicated() & label.is_not_null()).arg_true()[1:2]:
        raise table.error(row, f"{table.rows[column][row]!r} again", "one line per class")
    about = table.by_role({one: (one,) for one in TAXA_COLUMNS})
    remarks = [*table.remarks, *([f"Read `{name}`: label from `{column}`."] if column != "label" else [])]
    absent = sorted(set(labels) - set(label))
    remarks += [f"`{name}` says nothing of {len(absent):,} class(es): {named(absent)}."] if absent else []
    unread = [one for one in about.columns if one not in (*TAXA_COLUMNS, column, "label")]
    remarks += [f"Not read of `{name}`: {', '.join(unread)}."] if unread else []
    rows = _with_flags(about.rows.with_columns(label), table)
    kept = [one for one in TAXA_COLUMNS if one in rows.columns]
    return rows.filter(pl.col("label").is_not_null()).select("label", *kept), remarks


def _labels_of(written: pl.Series, labels: Sequence[str]) -> pl.Series:
    """The label that each line of a table is about; null where it is none of them."""
    exact, by_plain_name = set(labels), {plain_label(label): label for label in labels}
    found = [one if one in exact else by_plain_name.get(plain_label(one or "")) for one in written]
    return pl.Series("label", found, dtype=pl.String)


def _with_flags(rows: pl.DataFrame, table: OwnTable) -> pl.DataFrame:
    if "poisonous" not in rows.columns:
        return rows.with_columns(poisonous=pl.lit(None, pl.Boolean))
    try:
        return parse_column(rows, "poisonous", bool, table.where)
    except InputError as error:
        line = None if error.line is None else rows[LINE][error.line - 2]
        raise InputError(error.where, line=line, found=error.found, expected=error.expected) from error


def _label_column(table: OwnTable, labels: Sequence[str]) -> str:
    """The column that names the classes: `label`, or the one that holds most of them."""
    if "label" in table.columns:
        return "label"
    wanted = set(map(plain_label, labels))
    held = {one: len(wanted & {plain_label(value) for value in table.rows[one].drop_nulls()}) for one in table.columns}
    best = max(held, key=lambda one: held[one], default=None)
    if best is None or not held[best]:
        raise missing_column(table.where, "label", table.columns)
    return best


def labels_told(photos: PhotoLines) -> Mapping[str, str]:
    """The class of each photo that the table tells."""
    rows = photos.table.rows
    return dict(rows.filter(pl.col("label").is_not_null()).select("file", "label").iter_rows()) if photos.label else {}
