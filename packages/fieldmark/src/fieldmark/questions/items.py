"""What an answer is about: how a release or a table is laid out as items."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.questions.truth import Truth
from fieldmark.tables.codes import all_different
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.given_tables import GivenTable, read_given
from fieldmark.tables.schema import ITEMS
from fieldmark.tables.text_columns import NameColumn

# Columns of media that say where a file lies, not what it is about.
FILING = ("path", "parts")
# Everything that was found at a place or in a photo, where that may be any number of labels.
LABELS = "labels"
TRUTH_FILE, MEDIA_FILE = "truth.csv", "media.csv"


@dataclass(frozen=True)
class Layout:
    """The items of a release.

    Args:
        table: One row per item with everything that is known about it.
        member: The column of `table` that holds what the parts of the release list.
        listed: The column of the listed rows (`Items.rows`) that `member` refers to.
        pairs: Where items have any number of labels: `item_id`, `label` and `foreground`, one row for each.
    """

    table: pl.DataFrame
    member: str
    listed: str
    pairs: pl.DataFrame | None = None


class TruthRows(NamedTuple):
    """A table of truth as it was given.

    Args:
        rows: One row for each line with `line`, `item_id`, `label` and what else it says.
        items, units: What is asked about, and the independent unit of each.
        groups: For each item what it is shown by.
        where: What to call the table in messages.
    """

    rows: pl.DataFrame
    items: Sequence[str]
    units: Sequence[str]
    groups: pl.DataFrame
    where: str

    @property
    def table(self) -> GivenTable:
        """The rows as a table that knows its line numbers."""
        return GivenTable(self.rows, self.where)


class Items(ABC):
    """What an answer is about. Subclasses are dataclasses; they take plain values and know nothing of tasks.

    Attributes:
        noun: What one of them is called.
        empty_hint: What to do about a release in which a part has none.
    """

    noun: ClassVar[str]
    empty_hint: ClassVar[str] = ""

    def noun_for(self, medium: str) -> str:
        """What a reader calls one of them in a release of photos or recordings."""
        return self.noun

    def rows(self, dataset: Dataset) -> pl.DataFrame:
        """What the parts of a release list, with `parts`, `observation_id` and `label`: its media, as a rule."""
        return dataset.media.join(dataset.observations, on="observation_id", how="left", maintain_order="left")

    @abstractmethod
    def lay_out(self, dataset: Dataset, rows: pl.DataFrame) -> Layout:
        """Lays out the listed rows of a release as items."""

    def check(self, dataset: Dataset, tables: Mapping[str, pl.DataFrame]) -> None:
        """Refuses parts that cannot be learned from, before anything else is done with them."""

    def is_labeled(self, table: pl.DataFrame, column: str) -> bool:
        """Whether the labels of a part are known."""
        return len(table) > 0 and bool(table[column].is_not_null().all())

    def loose(self, files: Sequence[Path], context: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """The items of files that belong to no release, with what is known about all of them (place, date)."""
        raise MisuseError(f"A {self.noun} cannot be made of loose files.")

    def read_truth(self, truth: Any, media: Any, by: Sequence[str]) -> TruthRows:
        """Reads the truth as it is given without a release: `id`, `label` and, where they matter, `unit` and others.

        Args:
            truth: A file, a frame or a mapping of columns.
            media: A table of recordings, for those who need one.
            by: The columns that scores are shown by.
        """
        if media is not None:
            raise MisuseError("Only soundscapes come with a table of recordings: leave --media out.")
        table = read_given(truth, "truth", ("id", "label"))
        if table.frame.is_empty():
            found = "a header and no row"
            raise InputError(table.where, found=found, expected="a row for each item that is asked about")
        table = table.filled("id", *(["unit"] if "unit" in table else []))
        if "month" in by and "month" not in table and "date" in table:
            table = table.parsed("date", datetime.date)
            table = replace(table, frame=table.frame.with_columns(month=pl.col("date").dt.strftime("%m")))
        rows = table.frame.with_columns(item_id="id")
        alone = all_different(rows["item_id"])
        one_each = rows if alone else rows.unique("item_id", keep="first", maintain_order=True)
        units = one_each["unit"] if "unit" in table else one_each["item_id"]
        groups = one_each.select([name for name in (*by, "split") if name in table])
        return TruthRows(rows, NameColumn(one_each["item_id"]), NameColumn(units), groups, table.where)

    def write_truth(self, folder: Path, truth: Truth, table: pl.DataFrame, by: Sequence[str]) -> None:
        """Writes the truth of a part as `read_truth` reads it.

        Args:
            folder: Where to.
            truth: The truth.
            table: The items of the part with everything that is known about them.
            by: The columns that scores are shown by.
        """
        units = pl.DataFrame({"item_id": truth.items, "unit": truth.units})
        shown_by = [name for name in by if name in table.columns]
        context = table.select("item_id", "date", *shown_by)
        # An item without any label has a line of its own, so that it is asked about as well.
        rows = units.join(truth.rows, on="item_id", how="left", maintain_order="left").join(
            context, on="item_id", how="left", maintain_order="left"
        )
        rows.select(pl.col("item_id").alias("id"), "label", pl.exclude("item_id", "label")).write_csv(
            folder / TRUTH_FILE
        )


def loose_items(files: Sequence[Path], context: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """One item per file, called by its path."""
    ids = [str(file) for file in files]
    table = pl.DataFrame({"item_id": ids, "observation_id": ids}).with_columns(media_ids=pl.concat_list("item_id"))
    return ITEMS.check(table.with_columns(**{name: pl.lit(value) for name, value in (context or {}).items()}), "files")


def listed_pairs(table: pl.DataFrame) -> pl.DataFrame | None:
    """Item and label of every label in the column `labels`; None for a table without it."""
    if LABELS not in table.columns:
        return None
    listed = table.select("item_id", label=LABELS).explode("label", empty_as_null=False).drop_nulls("label")
    return listed.with_columns(foreground=pl.lit(True))
