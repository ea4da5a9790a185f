"""One answer for each few seconds of a soundscape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import InputError, MisuseError
from fieldmark.questions.items import FILING, MEDIA_FILE, TRUTH_FILE, Items, Layout, TruthRows
from fieldmark.questions.truth import Truth
from fieldmark.runs.segments import item_of, row_id_of, segment_name
from fieldmark.storage.files import open_input
from fieldmark.tables.annotations import TRUTH_LINE, UNKNOWN_BIRD, event_interval, ground_truth_lines
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.given_tables import LINE, read_given
from fieldmark.tables.schema import ITEMS
from fieldmark.tables.timecodes import clock

PAIRS = {"item_id": pl.String, "label": pl.String, "foreground": pl.Boolean}
# Longer recordings are slips of the finger (minutes, milliseconds), and every segment of them would be made.
LONGEST_S = 172_800
MOST_SEGMENTS = 5_000_000
SOUNDSCAPES_HINT = "Focal recordings stand in train, the validation soundscapes with their annotations in val."


@dataclass(frozen=True)
class Segments(Items):
    """Soundscapes are cut into segments; focal recordings, which a method learns from, are items as a whole.

    Args:
        seconds: How long a segment is.
    """

    seconds: int = 5
    noun: ClassVar[str] = "segment"
    empty_hint: ClassVar[str] = SOUNDSCAPES_HINT

    def lay_out(self, dataset: Dataset, rows: pl.DataFrame) -> Layout:
        if dataset.events is None or "seconds" not in rows.columns:
            found = "no events in recordings"
            raise InputError(dataset.release.root, found=found, expected="a release of soundscapes")
        media = rows.with_columns(recording="media_id", media_ids=pl.concat_list("media_id")).drop(FILING)
        focal = media.filter(pl.col("seconds").is_null()).with_columns(
            item_id="media_id", start_s=pl.lit(None, pl.Float64), end_s=pl.lit(None, pl.Float64)
        )
        cut = self._cut(media.filter(pl.col("seconds").is_not_null()))
        heard = _heard(dataset.events, self.seconds).filter(pl.col("item_id").is_in(cut["item_id"].implode()))
        longest = heard.sort("item_id", "sounding_s", "label", descending=[False, True, False]).unique(
            "item_id", keep="first"
        )
        cut = cut.drop("start", "label").join(longest.select("item_id", "label"), on="item_id", how="left")
        table = pl.concat([focal, cut.select(focal.columns)]).drop("media_id")
        taught = focal.select("item_id", "label", foreground=pl.lit(True))
        pairs = [taught, _background(focal), heard.select("item_id", "label", foreground=pl.lit(True))]
        return Layout(ITEMS.check(table, "items"), "recording", "media_id", pl.concat(pairs))

    def _cut(self, soundscapes: pl.DataFrame) -> pl.DataFrame:
        length = (pl.col("seconds") / self.seconds).ceil().cast(pl.Int64) * self.seconds
        cut = soundscapes.with_columns(start=pl.int_ranges(0, length, self.seconds))
        return cut.explode("start", empty_as_null=False).with_columns(
            item_id=pl.format("{}/{}", "media_id", "start"),
            start_s=pl.col("start").cast(pl.Float64),
            end_s=(pl.col("start") + self.seconds).cast(pl.Float64),
        )

    def check(self, dataset: Dataset, tables: Mapping[str, pl.DataFrame]) -> None:
        if not tables["val"]["annotated"].all():
            found, root = "validation soundscapes without annotations", dataset.release.root
            raise InputError(root, found=found, expected="a table", hint=SOUNDSCAPES_HINT)

    def is_labeled(self, table: pl.DataFrame, column: str) -> bool:
        # A segment without any label may be silent, so that recordings tell.
        return len(table) > 0 and bool(table["annotated"].all())

    def loose(self, files: Sequence[Path], context: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """The segments of recordings; `context` says how long each is (`seconds`, by path) and what else is known."""
        columns = dict(context or {})
        seconds: Mapping[str, float] = columns.pop("seconds")
        rows = [
            (segment_name(str(file), start), str(file), float(start), float(start + self.seconds))
            for file in files
            for start in range(0, max(1, segments_in(seconds[str(file)], self.seconds)) * self.seconds, self.seconds)
        ]
        table = pl.DataFrame(rows, schema=["item_id", "observation_id", "start_s", "end_s"], orient="row")
        table = table.with_columns(media_ids=pl.concat_list("observation_id"))
        return ITEMS.check(table.with_columns(**columns), "segments")

    def read_truth(self, truth: Any, media: Any, by: Sequence[str]) -> TruthRows:
        """Events in recordings as labels of segments.

        An event marks every segment it overlaps; one that ends exactly on a boundary does not reach the next.
        """
        if media is None:
            raise MisuseError("Soundscapes need a table of recordings (--media): MediaId, seconds and site.")
        recordings = self._recordings(media)
        items: list[str] = []
        units: list[str] = []
        sites: list[str | None] = []
        for name, seconds, place in recordings.select("MediaId", "seconds", "site").iter_rows():
            starts = range(0, segments_in(seconds, self.seconds) * self.seconds, self.seconds)
            items += [segment_name(name, start) for start in starts]
            units += [name] * len(starts)
            sites += [place] * len(starts)
        events, where = _events(truth)
        rows = self._marked(events, where, set(items))
        if rows.is_empty():
            expected = "at least one, since silence alone cannot be scored"
            raise InputError(where, found="no event with a name", expected=expected)
        return TruthRows(rows, tuple(items), tuple(units), pl.DataFrame({"site": sites}), where)

    def _recordings(self, media: Any) -> pl.DataFrame:
        """The recordings with their length and site, each once and none impossibly long."""
        table = read_given(media, "media", ("MediaId", "seconds")).filled("MediaId")
        table = table.once(["MediaId"], "the recording {MediaId} again", "each once")
        expected = f"a length in seconds, above 0 and up to {LONGEST_S:,} (two days)"
        table = table.bounded("seconds", 0, LONGEST_S, expected)
        frame = table.frame if "site" in table else table.frame.with_columns(site=pl.lit(None, pl.String))
        if frame["seconds"].sum() > MOST_SEGMENTS * self.seconds:
            found = f"recordings of {frame['seconds'].sum():,.0f} seconds"
            expected = f"at most {MOST_SEGMENTS * self.seconds:,}"
            raise InputError(table.where, found=found, expected=expected, hint="Score the recordings in several runs.")
        return frame

    def _marked(self, events: pl.DataFrame, where: str, items: set[str]) -> pl.DataFrame:
        """One row per segment and class that an event overlaps; birds that nobody could name (`????`) are silence."""
        # Unlike in a release, where people round an event up beyond its recording, one outside is a mistake here.
        rows: dict[tuple[str, str], int] = {}
        first, last = overlapped(events["start_s"].to_numpy(), events["end_s"].to_numpy(), self.seconds)
        named = events["label"].fill_null("").str.contains(UNKNOWN_BIRD).not_()
        lines = zip(events["line"], events["name"], events["label"], named, first, last, strict=True)
        for number, name, label, is_known, begin, end in lines:
            for segment in range(int(begin), int(end) + 1):
                item = segment_name(name, segment * self.seconds)
                if item not in items:
                    found = f"an event at {segment * self.seconds} s of {name!r}"
                    raise InputError(where, line=number, found=found, expected="one within a recording listed in media")
                if is_known:
                    rows.setdefault((item, label), number)
        table = [(line, item, label) for (item, label), line in rows.items()]
        return pl.DataFrame(table, schema={"line": pl.Int64, "item_id": pl.String, "label": pl.String}, orient="row")

    def write_truth(self, folder: Path, truth: Truth, table: pl.DataFrame, by: Sequence[str]) -> None:
        """The truth as the organizers give it, segment by segment, and the recordings, so that silence counts."""
        segments = truth.rows.join(table, on="item_id", how="left", maintain_order="left", suffix="_longest")
        with (folder / TRUTH_FILE).open("w", encoding="utf-8") as file:
            for name, label, start, end in segments.select("recording", "label", "start_s", "end_s").iter_rows():
                file.write(f"{name};{label};{clock(int(start))}-{clock(int(end))}\n")
        media = table.group_by("recording", maintain_order=True).agg(pl.col("seconds", "site").first())
        media.rename({"recording": "MediaId"}).write_csv(folder / MEDIA_FILE)


def _events(truth: Any) -> tuple[pl.DataFrame, str]:
    """Events as `line`, `name`, `start_s`, `end_s` and `label`; a file has semicolons and no header."""
    if isinstance(truth, (str, Path)):
        with open_input(Path(truth), TRUTH_LINE) as file:
            return ground_truth_lines(file.read(), truth), str(truth)
    table = read_given(truth, "truth", ("MediaId", "ClassId", "interval")).filled("MediaId", "interval")
    rows = zip(table.frame["interval"], table.frame[LINE], strict=True)
    spans = [event_interval(text, table.where, line - 1) for text, line in rows]
    spans_s = pl.DataFrame(spans, schema={"start_s": pl.Float64, "end_s": pl.Float64}, orient="row")
    named = table.frame.select((pl.col(LINE) - 1).alias("line"), name="MediaId", label="ClassId")
    return pl.concat([named, spans_s], how="horizontal"), table.where


def _background(focal: pl.DataFrame) -> pl.DataFrame:
    """The species that are heard behind the one a recording was made for."""
    if "background" not in focal.columns:
        return pl.DataFrame(schema=PAIRS)
    pairs = focal.select("item_id", pl.col("background").alias("label"), own="label")
    pairs = pairs.explode("label", empty_as_null=False).drop_nulls("label").unique(maintain_order=True)
    return pairs.filter(pl.col("label") != pl.col("own")).select("item_id", "label", foreground=pl.lit(False))


def _heard(events: pl.DataFrame, seconds: int) -> pl.DataFrame:
    """One row per segment and label that an event overlaps, and how long it sounds there; unknown birds left out."""
    labeled = events.drop_nulls("label")
    first, last = overlapped(labeled["start_s"].to_numpy(), labeled["end_s"].to_numpy(), seconds)
    marked = labeled.with_columns(segment=pl.int_ranges(pl.Series(first), pl.Series(last) + 1)).explode(
        "segment", empty_as_null=False
    )
    begin, end = pl.col("segment") * seconds, (pl.col("segment") + 1) * seconds
    sounding = pl.min_horizontal("end_s", end) - pl.max_horizontal("start_s", begin)
    return (
        marked.with_columns(item_id=pl.format("{}/{}", "media_id", begin), sounding_s=sounding)
        .group_by("item_id", "label", maintain_order=True)
        .agg(pl.col("sounding_s").sum())
    )


def overlapped(
    start_s: NDArray[np.float64], end_s: NDArray[np.float64], seconds: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last segment that each event overlaps.

    An event that ends exactly on a boundary does not reach the next segment; one without any length is in none, as the
    organizers have it: its last segment comes before its first.

    >>> overlapped(np.array([3.0, 7.0]), np.array([10.0, 7.0]), 5)
    (array([0, 1]), array([1, 0]))
    """
    first = np.floor(start_s / seconds).astype(np.int64)
    last = np.maximum(first, np.ceil(end_s / seconds).astype(np.int64) - 1)
    return first, np.where(end_s > start_s, last, first - 1)


def segments_in(duration_s: float, seconds: int) -> int:
    """How many segments a recording has; the last may reach beyond its end.

    >>> segments_in(601.2, 5)
    121
    """
    return math.ceil(duration_s / seconds)


@dataclass(frozen=True)
class SegmentRows(Segments):
    """As segments, but the truth is a table with a row for each segment and label instead of events.

    A recording is independent of the others unless the table has a column `unit`.
    """

    def read_truth(self, truth: Any, media: Any, by: Sequence[str]) -> TruthRows:
        given = Items.read_truth(self, truth, media, by)
        items = tuple(item_of(row_id, self.seconds) for row_id in given.items)
        for row_id, item in zip(given.items, items, strict=True):
            if item == row_id or int(item.rpartition("/")[2]) % self.seconds:
                line = given.rows.filter(pl.col("item_id") == row_id)[LINE][0]
                expected = f"<recording>_<end second>, a multiple of {self.seconds} in plain digits"
                raise InputError(given.where, line=line, found=f"the id {row_id!r}", expected=expected)
        renamed = dict(zip(given.items, items, strict=True))
        rows = given.rows.with_columns(item_id=pl.col("item_id").replace_strict(renamed, return_dtype=pl.String))
        units = given.units if "unit" in given.rows.columns else tuple(item.rpartition("/")[0] for item in items)
        return given._replace(rows=rows, items=items, units=units)

    def write_truth(self, folder: Path, truth: Truth, table: pl.DataFrame, by: Sequence[str]) -> None:
        Items.write_truth(self, folder, truth, table, by)
        path = folder / TRUTH_FILE
        rows = pl.read_csv(path, infer_schema=False)
        ids = [row_id_of(item, self.seconds) for item in rows["id"]]
        rows.with_columns(id=pl.Series(ids, dtype=pl.String)).write_csv(path)
