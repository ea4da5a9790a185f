"""Releases whose tables list photos: which file is which table, what its columns are called, where its photos lie.

A release is a `TableLayout`, which is data; `open_photo_tables` reads any of them. Every table has one row per photo.

Quirks that these releases share:

- The same release is unpacked in several ways and sizes: a table is looked for in several places, and its photos lie in
  the first folder in which those of its first rows are found.
- Photos of one observation are one observation. Where a row names none, the photo is an observation of its own.
- Numbers are written as floats in some files (`12.0`), and nothing as `NaN`.
- Where an observation has several classes, the first counts, as in the organizers' evaluators; a remark says how many.
- Labels of test are kept back. Where somebody has them, `test_labels.csv` holds them under the names of the other
  tables; a table of test that has them itself is taken at its word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.labels import UNKNOWN_NAME
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import RANKS, missing_column, parse_column, parse_places

TEST_LABELS = "test_labels.csv"
NOTHING = ("", "NaN", "nan", "NA", "None", "unknown", "UNKNOWN")
# What is known of a class, not of an observation.
OF_TAXA = ("scientific_name", *RANKS)
# So many of the first photos of a table are looked for in each of its folders.
TRIED_PHOTOS = 3


@dataclass(frozen=True)
class PhotoTable:
    """One table of photos.

    Args:
        part: The part whose photos it lists.
        paths: Where it may lie; the first that is there counts.
        folders: Where its photos may lie.
        by_class: Whether photos lie in a folder for each class below that.
    """

    part: str
    paths: tuple[str, ...]
    folders: tuple[str, ...]
    by_class: bool = False


@dataclass(frozen=True)
class FlagList:
    """A table of classes that are dangerous to people: its name, and its columns for the class and for 0 or 1."""

    path: str
    label: str
    flag: str


@dataclass(frozen=True)
class TableLayout:
    """A release whose tables list photos.

    Args:
        name: The dataset.
        tables: Its tables.
        columns: What a column is called, by its name here: `observation_id`, `photo`, `label`, and what else is known.
        separator: What stands between fields.
        part_column: A column that says which part a photo of the first table is in, and
        part_names: what its values mean.
        observation_in: A pattern whose group is the observation in the name of a photo, for tables that name none.
        flags: The list of dangerous classes.
        hint: What to do where there is no table to learn from.
    """

    name: str
    tables: tuple[PhotoTable, ...]
    columns: Mapping[str, tuple[str, ...]]
    separator: str = ","
    part_column: str = ""
    part_names: Mapping[str, str] = field(default_factory=dict)
    observation_in: str = ""
    flags: FlagList | None = None
    hint: str = "Unpack the download of the challenge, and name the folder that holds it."

    def found(self, release: Release) -> list[tuple[PhotoTable, str]]:
        """The tables that are there, each with its path."""
        paths = [(table, next((one for one in table.paths if release.exists(one)), "")) for table in self.tables]
        return [(table, path) for table, path in paths if path]


def open_photo_tables(release: Release, subset: str = "all", *, layout: TableLayout) -> Dataset:
    """Opens a release; there are no subsets.

    Raises:
        InputError: When there is no table to learn from, or a row lacks what it must have.
    """
    if subset != "all":
        raise MisuseError(f"{layout.name} has no subset called {subset!r}.")
    rows = read_photos(release, layout)
    named = rows["media_id"].is_duplicated()
    media_id = pl.when(named).then(pl.col("photo")).otherwise("media_id").alias("media_id")
    media = rows.select(media_id, "observation_id", "path", "parts")
    observations, several = _observations(release, layout, rows)
    taxa = taxa_of(release, layout, rows)
    return Dataset(layout.name, release, taxa, observations, media, _remarks(layout, observations, rows, several))


def read_photos(release: Release, layout: TableLayout) -> pl.DataFrame:
    """One row per photo of every table that is there, columns by our names: `path`, `parts`, `media_id` and others."""
    found = layout.found(release)
    if not any(table.part == "train" for table, _ in found):
        wanted = " or ".join(next(table for table in layout.tables if table.part == "train").paths)
        raise InputError(release.root, found=f"no {wanted}", expected=f"the release of {layout.name}", hint=layout.hint)
    tables = [_read_table(release, layout, table, path) for table, path in found]
    rows = pl.concat(tables, how="diagonal_relaxed")
    kept = [name for name in rows.columns if name not in ("path", "part")]
    first = (pl.col(name).drop_nulls().first() for name in kept)
    parts = pl.col("part").unique(maintain_order=True).alias("parts")
    return rows.group_by("path", maintain_order=True).agg(parts, *first)


def _read_table(release: Release, layout: TableLayout, table: PhotoTable, path: str) -> pl.DataFrame:
    where = release.where(path)
    needed = ("photo", "label") if table.part in ("train", "val") else ("photo",)
    rows = renamed(release, layout, path, needed)
    for name in needed:
        empty = rows[name].is_null().arg_true()
        if len(empty):
            found = f"no {layout.columns[name][0]}"
            raise InputError(where, line=int(empty[0]) + 2, found=found, expected="one in each row")
    part = pl.lit(table.part)
    if layout.part_column and layout.part_column in rows.columns:
        part = pl.col(layout.part_column).replace_strict(layout.part_names, default=None)
        strange = rows.select(part.is_null()).to_series().arg_true()
        if len(strange):
            found = f"{rows[layout.part_column][int(strange[0])]!r} as {layout.part_column}"
            expected = f"one of {', '.join(layout.part_names)}"
            raise InputError(where, line=int(strange[0]) + 2, found=found, expected=expected)
        rows = rows.with_columns(part.alias("part")).drop(layout.part_column)
    else:
        rows = rows.with_columns(part.alias("part"))
    if table.by_class:
        rows = rows.with_columns(pl.format("{}/{}", "label", "photo").alias("photo"))
    folder = _folder(release, table, rows["photo"].head(TRIED_PHOTOS).to_list())
    path_of = pl.concat_str(pl.lit(f"{folder}/" if folder else ""), "photo")
    told = [pl.col("observation_id")] if "observation_id" in rows.columns else []
    if layout.observation_in and not told:
        told.append(pl.col("photo").str.extract(layout.observation_in))
    return rows.with_columns(
        path_of.alias("path"),
        pl.coalesce(*told, "photo").alias("observation_id"),
        pl.col("photo").str.extract(r"([^/]+)$").alias("media_id"),
    )


def renamed(release: Release, layout: TableLayout, path: str, needed: Sequence[str]) -> pl.DataFrame:
    """A table by our names, nothing as null, numbers as numbers; columns that nobody asked for are left out.

    Raises:
        InputError: When a needed column is not there.
    """
    where = release.where(path)
    with release.open(path) as file:
        rows = read_csv(file, where, separator=layout.separator)
    theirs = {ours: next((one for one in names if one in rows.columns), "") for ours, names in layout.columns.items()}
    for name in needed:
        if not theirs[name]:
            raise missing_column(where, layout.columns[name][0], rows.columns)
    chosen = [pl.col(one).alias(ours) for ours, one in theirs.items() if one]
    if layout.part_column in rows.columns:
        chosen.append(pl.col(layout.part_column))
    rows = rows.select(chosen)
    rows = rows.with_columns(pl.when(~pl.all().is_in(NOTHING)).then(pl.all()).name.keep())
    codes = [pl.col(name).str.strip_suffix(".0") for name in ("observation_id", "label") if name in rows.columns]
    rows = rows.with_columns(codes)
    placed = [name for name in ("lat", "lon") if name in rows.columns]
    rows = parse_places(rows, where).select(rows.columns) if placed else rows
    if "date" in rows.columns:
        rows = rows.with_columns(pl.col("date").str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False))
    return rows


def _folder(release: Release, table: PhotoTable, photos: list[str]) -> str:
    """The folder in which the first photos of a table are found; the first one where there is none."""
    for folder in table.folders:
        if any(release.exists(f"{folder}/{photo}" if folder else photo) for photo in photos):
            return folder
    return table.folders[0]


def _observations(release: Release, layout: TableLayout, rows: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """One row per observation, and how many have several classes."""
    context = [name for name in rows.columns if name not in ("path", "parts", "photo", "media_id", "observation_id")]
    shown = [name for name in context if name not in RANKS]
    table = rows.group_by("observation_id", maintain_order=True).agg(
        *(pl.col(name).drop_nulls().first() for name in shown), pl.col("label").drop_nulls().n_unique().alias("classes")
    )
    several = int((table["classes"] > 1).sum())
    table = table.drop("classes")
    if release.exists(TEST_LABELS) and any(one.part == "test" for one in layout.tables):
        hidden = renamed(release, layout, TEST_LABELS, ("observation_id", "label"))
        hidden = hidden.select("observation_id", hidden="label").unique("observation_id", maintain_order=True)
        table = table.join(hidden, on="observation_id", how="left", maintain_order="left")
        table = table.with_columns(pl.coalesce("label", "hidden").alias("label")).drop("hidden")
    return table, several


def taxa_of(release: Release, layout: TableLayout, rows: pl.DataFrame) -> pl.DataFrame:
    """One row per class of train and val, in the order of their numbers."""
    learned = rows.filter(pl.col("parts").list.set_intersection(["train", "val"]).list.len() > 0)
    known = learned.filter(pl.col("label").is_not_null() & (pl.col("label") != UNKNOWN_NAME))
    given = [name for name in OF_TAXA if name in rows.columns]
    taxa = known.group_by("label").agg(pl.col(given).drop_nulls().first()) if given else known.select("label").unique()
    taxa = taxa.sort(pl.col("label").cast(pl.Int64, strict=False), "label", nulls_last=True)
    if "species" not in given and "scientific_name" in given:
        taxa = taxa.with_columns(species="scientific_name")
    if "genus" not in given and "scientific_name" in given:
        taxa = taxa.with_columns(pl.col("scientific_name").str.extract(r"^(\S+)").alias("genus"))
    return taxa.with_columns(_flags(release, layout, taxa["label"]))


def _flags(release: Release, layout: TableLayout, labels: pl.Series) -> pl.Series:
    """Which classes are dangerous; nulls where nobody says."""
    flags = layout.flags
    path = next((one for one in (flags.path, f"metadata/{flags.path}") if release.exists(one)), "") if flags else ""
    if flags is None or not path:
        return pl.Series("poisonous", [None] * len(labels), dtype=pl.Boolean)
    where = release.where(path)
    with release.open(path) as file:
        listed = parse_column(read_csv(file, where, required=(flags.label, flags.flag)), flags.flag, bool, where)
    of_class = dict(listed.select(pl.col(flags.label).str.strip_suffix(".0"), flags.flag).iter_rows())
    return pl.Series("poisonous", [of_class.get(label, False) for label in labels], dtype=pl.Boolean)


def _remarks(layout: TableLayout, observations: pl.DataFrame, rows: pl.DataFrame, several: int) -> tuple[str, ...]:
    told = []
    if several:
        told.append(f"{several:,} observation(s) have photos of several classes; the first counts.")
    asked = rows.filter(pl.col("parts").list.contains("test"))["observation_id"].unique()
    hidden = observations.filter(pl.col("observation_id").is_in(asked.implode()) & pl.col("label").is_null()).height
    if hidden:
        told.append(f"{hidden:,} observations of test have no label: a run on them can be written, not scored.")
    return tuple(told)
