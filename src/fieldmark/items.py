"""What one answer is about: a photo or a whole recording, an observation, five seconds of a soundscape.

Each kind lays out the media of a release as a table of items (`tables.Item`, with `label` and everything else that is
known); what of it a method may see is decided in `fieldmark.views`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.datasets import Dataset
from fieldmark.errors import InputError
from fieldmark.labels import UNKNOWN, Labels
from fieldmark.tables import ITEMS

# Columns of media that say where a file lies, not what it is about.
FILING = ("path", "parts")
LABEL_ROWS = {"item_id": pl.String, "label": pl.String, "foreground": pl.Boolean}


@dataclass(frozen=True)
class Marks:
    """All true labels of items that have any number of them, as pairs of item and label.

    Args:
        row: The row of the item in its part.
        code: The code of the label.
        foreground: Whether it is what the recording was made for; species heard behind it are not.
        n_items, n_labels: How many items and labels there are.
    """

    row: NDArray[np.int32]
    code: NDArray[np.int32]
    foreground: NDArray[np.bool_]
    n_items: int
    n_labels: int

    def dense(self) -> NDArray[np.bool_]:
        """One row per item, one column per label."""
        matrix = np.zeros((self.n_items, self.n_labels), dtype=np.bool_)
        matrix[self.row, self.code] = True
        return matrix

    def take(self, kept: NDArray[np.bool_]) -> Marks:
        """The marks of some of the items, which are numbered anew."""
        new_row = np.cumsum(kept, dtype=np.int32) - 1
        pairs = kept[self.row]
        return Marks(
            new_row[self.row[pairs]].astype(np.int32),
            self.code[pairs],
            self.foreground[pairs],
            int(kept.sum()),
            self.n_labels,
        )


@dataclass(frozen=True)
class Laid:
    """The items of a release.

    Args:
        table: One row per item with everything that is known about it.
        member: The column of `table` that holds what the parts of the release list.
        listed: The column of media that `member` refers to.
        labels: Where items have any number of labels: `item_id`, `label` and `foreground`, one row for each.
    """

    table: pl.DataFrame
    member: str
    listed: str
    labels: pl.DataFrame | None = None

    def marks(self, items: pl.DataFrame, labels: Labels) -> Marks | None:
        """The labels of some items as codes; None where each item has one."""
        if self.labels is None:
            return None
        numbered = items.select("item_id").with_row_index("row")
        pairs = self.labels.join(numbered, on="item_id", how="inner")
        code = labels.encode(pairs["label"])
        known = code != UNKNOWN
        row = pairs["row"].to_numpy().astype(np.int32)
        return Marks(row[known], code[known], pairs["foreground"].to_numpy()[known], len(items), len(labels))


def lay_out(kind: str, dataset: Dataset, media: pl.DataFrame, *, segment_s: int = 5) -> Laid:
    """Lays out the media of a release as items.

    Args:
        kind: What an item is (`benchmarks.declarations.ItemKind`).
        dataset: The release.
        media: Its media with the columns of their observations.
        segment_s: How long a segment of a soundscape is.
    """
    if kind == "observation":
        return Laid(_observations(media), member="item_id", listed="observation_id")
    if kind == "segment":
        return _segments(dataset, media, segment_s)
    return Laid(_media(media), member="item_id", listed="media_id")


def _media(media: pl.DataFrame) -> pl.DataFrame:
    """One item per photo or recording."""
    items = media.with_columns(item_id=pl.col("media_id"), media_ids=pl.concat_list("media_id"))
    return ITEMS.check(items.drop("media_id", *FILING), "items")


def _observations(media: pl.DataFrame) -> pl.DataFrame:
    """One item per observation, with all its photos."""
    context = [name for name in media.columns if name not in ("media_id", "observation_id", *FILING)]
    items = media.group_by("observation_id", maintain_order=True).agg(
        pl.col("media_id").alias("media_ids"), pl.col(context).first()
    )
    return ITEMS.check(items.with_columns(item_id="observation_id"), "items")


def _segments(dataset: Dataset, media: pl.DataFrame, segment_s: int) -> Laid:
    """One item per segment of a soundscape, and one per focal recording, which is taught as a whole."""
    if dataset.events is None or "seconds" not in media.columns:
        found = "no events in recordings"
        raise InputError(dataset.release.root, found=found, expected="a release of soundscapes")
    media = media.with_columns(recording="media_id", media_ids=pl.concat_list("media_id")).drop(FILING)
    focal = media.filter(pl.col("seconds").is_null()).with_columns(
        item_id="media_id", start_s=pl.lit(None, pl.Float64), end_s=pl.lit(None, pl.Float64)
    )
    scapes = media.filter(pl.col("seconds").is_not_null()).with_columns(
        start=pl.int_ranges(0, (pl.col("seconds") / segment_s).ceil().cast(pl.Int64) * segment_s, segment_s)
    )
    cut = scapes.explode("start", empty_as_null=False).with_columns(
        item_id=pl.format("{}/{}", "media_id", "start"),
        start_s=pl.col("start").cast(pl.Float64),
        end_s=(pl.col("start") + segment_s).cast(pl.Float64),
    )
    heard = _heard(dataset.events, segment_s).filter(pl.col("item_id").is_in(cut["item_id"].implode()))
    longest = heard.sort("item_id", "sounding_s", "label", descending=[False, True, False]).unique(
        "item_id", keep="first"
    )
    cut = cut.drop("start", "label").join(longest.select("item_id", "label"), on="item_id", how="left")
    table = pl.concat([focal, cut.select(focal.columns)]).drop("media_id")
    taught = focal.select("item_id", "label", foreground=pl.lit(True))
    behind = _background(focal)
    rows = [taught, behind, heard.select("item_id", "label", foreground=pl.lit(True))]
    return Laid(ITEMS.check(table, "items"), "recording", "media_id", pl.concat(rows))


def _background(focal: pl.DataFrame) -> pl.DataFrame:
    """The species that are heard behind the one a recording was made for."""
    if "background" not in focal.columns:
        return pl.DataFrame(schema=LABEL_ROWS)
    pairs = focal.select("item_id", pl.col("background").alias("label"), own="label")
    pairs = pairs.explode("label", empty_as_null=False).drop_nulls("label").unique(maintain_order=True)
    return pairs.filter(pl.col("label") != pl.col("own")).select("item_id", "label", foreground=pl.lit(False))


def _heard(events: pl.DataFrame, segment_s: int) -> pl.DataFrame:
    """One row per segment and label that an event overlaps, and how long it sounds there; unknown birds left out."""
    known = events.drop_nulls("label")
    first, last = overlapped(known["start_s"].to_numpy(), known["end_s"].to_numpy(), segment_s)
    marked = known.with_columns(segment=pl.int_ranges(pl.Series(first), pl.Series(last) + 1)).explode(
        "segment", empty_as_null=False
    )
    begin, end = pl.col("segment") * segment_s, (pl.col("segment") + 1) * segment_s
    sounding = pl.min_horizontal("end_s", end) - pl.max_horizontal("start_s", begin)
    return (
        marked.with_columns(item_id=pl.format("{}/{}", "media_id", begin), sounding_s=sounding)
        .group_by("item_id", "label", maintain_order=True)
        .agg(pl.col("sounding_s").sum())
    )


def overlapped(
    start_s: NDArray[np.float64], end_s: NDArray[np.float64], segment_s: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last segment that each event overlaps.

    An event that ends exactly on a boundary does not reach the next segment; one without any length is in one.

    >>> overlapped(np.array([3.0, 5.0]), np.array([10.0, 5.0]), 5)
    (array([0, 1]), array([1, 1]))
    """
    first = np.floor(start_s / segment_s).astype(np.int64)
    return first, np.maximum(first, np.ceil(end_s / segment_s).astype(np.int64) - 1)


def segments_in(seconds: float, segment_s: int) -> int:
    """How many segments a recording has; the last may reach beyond its end.

    >>> segments_in(601.2, 5)
    121
    """
    return math.ceil(seconds / segment_s)
