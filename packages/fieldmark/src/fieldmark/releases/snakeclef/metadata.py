"""The tables of SnakeCLEF: which files of a folder are metadata, and what a line of them says.

The two editions call the same things by other names. A file is told by its columns, never by its name alone:

| | 2020 | 2021 |
|---|---|---|
| species | `scientific_name`: `crotalus-atrox` | `binomial`: `Crotalus atrox` |
| photo | `hashed_id` | `UUID` |
| part | the name of the file: `train...`, `val...`, `test...` | the column `subset`, else the name of the file |
| nobody knows the place | `UNKNOWN` | `unknown` |
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from fieldmark.errors import InputError
from fieldmark.storage.release import Release
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import parse_column

CLASSES_FILE = "round4_classes.csv"
TABLE_NAME = re.compile(r".*\.csv(\.gz|\.xz)?", re.IGNORECASE)
NOWHERE = ("", "unknown", "nan", "none", "null")
# A column as either edition calls it.
SPECIES, PHOTO = ("scientific_name", "binomial"), ("hashed_id", "UUID")
BOX = ("X", "Y", "width", "height")
# Hashed ids and UUIDs become names of files.
PHOTO_ID = re.compile(r"[0-9A-Za-z_-]+")


@dataclass(frozen=True)
class MetadataTable:
    """One table of photos.

    Args:
        path: Its file.
        edition: 2020 or 2021, as its columns tell.
        part: The part of the release it is about; the name of the file where that tells none.
        rows: `line, media_id, label, country, continent` and what else either edition says of a photo.
    """

    path: str
    edition: int
    part: str
    rows: pl.DataFrame


def slug_of(name: str) -> str:
    """The name of a species as the 2020 edition writes it.

    >>> slug_of("Crotalus atrox"), slug_of("crotalus-atrox")
    ('crotalus-atrox', 'crotalus-atrox')
    """
    return "-".join(name.replace("_", " ").replace("-", " ").casefold().split())


def binomial_of(slug: str) -> str:
    """A slug as a scientific name.

    >>> binomial_of("crotalus-atrox")
    'Crotalus atrox'
    """
    return slug.replace("-", " ", 1).capitalize()


def csv_files(release: Release) -> list[str]:
    """The tables in the root, plain or packed."""
    return [name for name in release.files() if TABLE_NAME.fullmatch(name)]


def read_table(release: Release, path: str) -> pl.DataFrame:
    """A table with every column as text."""
    with release.open(path) as file:
        return read_csv(file, release.where(path))


def metadata_tables(release: Release) -> Iterator[MetadataTable]:
    """Every table of photos in the root; the small copy of val is left out where the whole is there.

    Raises:
        InputError: For a line without an id, or with an id or a species that cannot be one.
    """
    names = csv_files(release)
    for name in names:
        whole = name.replace("_small", "")
        if "_small" in name and whole in names:
            continue
        table = metadata_table(release, name)
        if table is not None:
            yield table


def metadata_table(release: Release, name: str) -> MetadataTable | None:
    """One file as a table of photos, None where it is something else.

    Raises:
        InputError: See `metadata_tables`.
    """
    frame = read_table(release, name)
    photo = next((column for column in PHOTO if column in frame.columns), None)
    if photo is None or not {*SPECIES, "country"} & set(frame.columns):  # a run has ids as well
        return None
    return MetadataTable(name, 2020 if photo == PHOTO[0] else 2021, part_of(name), _rows(release, name, frame, photo))


def part_of(name: str) -> str:
    """The part that the name of a table tells.

    >>> part_of("validate_labels.csv"), part_of("snakeclef2021_microtrain_metadata.csv"), part_of("subset_boxes.csv.gz")
    ('val', 'train', 'subset_boxes')
    """
    stem = name.partition(".")[0]
    return next((part for part in ("train", "val", "test") if part in stem.casefold()), stem)


def _rows(release: Release, path: str, frame: pl.DataFrame, photo: str) -> pl.DataFrame:
    where = release.where(path)
    frame = frame.with_row_index("line", offset=2)
    species = next((column for column in SPECIES if column in frame.columns), None)
    labels = (
        frame[species].map_elements(slug_of, pl.String) if species else pl.Series([None] * len(frame), dtype=pl.String)
    )
    rows = frame.select(
        "line",
        pl.col(photo).str.strip_chars().alias("media_id"),
        labels.alias("label"),
        *(_place(frame, column) for column in ("country", "continent")),
        *(_text(frame, column) for column in ("family", "source", "class_id", "subset")),
    )
    _refuse_bad_lines(rows, where, labeled=species is not None)
    rows = rows.with_columns(parse_column(frame, "poisonous", bool, where)["poisonous"])
    return rows.with_columns(_boxes(frame, where))


def _place(frame: pl.DataFrame, column: str) -> pl.Expr:
    text = _text(frame, column)
    return pl.when(text.str.to_lowercase().is_in(NOWHERE)).then(None).otherwise(text).alias(column)


def _text(frame: pl.DataFrame, column: str) -> pl.Expr:
    if column not in frame.columns:
        return pl.lit(None, pl.String).alias(column)
    text = pl.col(column).str.strip_chars()
    return pl.when(text == "").then(None).otherwise(text).alias(column)


def _refuse_bad_lines(rows: pl.DataFrame, where: str, *, labeled: bool) -> None:
    """Refuses lines that name no photo, the same photo again, or no species where others do."""
    strange = ~rows["media_id"].fill_null("").str.contains(f"^{PHOTO_ID.pattern}$")
    problems = [
        ("no id", rows["media_id"].fill_null("") == "", "the id of a photo"),
        ("{!r} as an id", strange, "letters, digits, - and _, as in a file name"),
        ("the id {!r} again", ~rows["media_id"].is_first_distinct(), "each photo once"),
    ]
    if labeled:
        problems.append(("no species", rows["label"].fill_null("") == "", "a slug such as crotalus-atrox"))
    for found, wrong, expected in problems:
        if wrong.any():
            row = int(wrong.arg_true()[0])
            raise InputError(
                where, line=int(rows["line"][row]), found=found.format(rows["media_id"][row]), expected=expected
            )


def _boxes(frame: pl.DataFrame, where: str) -> list[pl.Series]:
    """The edges of boxes from their centers and sizes, all as shares; what sticks out is cut off."""
    names = ("box_left", "box_top", "box_right", "box_bottom")
    if not set(BOX) <= set(frame.columns):
        return [pl.Series(name, [None] * len(frame), pl.Float64) for name in names]
    for column in BOX:
        frame = parse_column(frame, column, float, where)
        wrong = (frame[column] < 0) | ~frame[column].is_finite()
        if wrong.fill_null(False).any():
            row = int(wrong.arg_true()[0])
            found, expected = f"{frame[column][row]} as {column}", "a share of the photo, at least 0"
            raise InputError(where, line=int(frame["line"][row]), found=found, expected=expected)
    x, y, width, height = (frame[column] for column in BOX)
    edges = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    return [edge.clip(0, 1).round(6).alias(name) for edge, name in zip(edges, names, strict=True)]
