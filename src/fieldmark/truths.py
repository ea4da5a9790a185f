"""The truth as it is given without a release: small tables, in files or in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from fieldmark.answers import UNKNOWN_NAME
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Task
from fieldmark.datasets.annotations import TRUTH_LINE, UNKNOWN_BIRD, event_interval, ground_truth_lines
from fieldmark.errors import InputError, MisuseError
from fieldmark.files import appearing_folder
from fieldmark.items import overlapped, segments_in
from fieldmark.labels import Labels
from fieldmark.runs.segments import segment_name
from fieldmark.tables import parse_column, read_csv
from fieldmark.timecodes import clock
from fieldmark.views import Truth, open_benchmark, open_release

SEGMENT_S = 5


def given_truth(task: Task, truth: Any, classes: Any, media: Any = None) -> tuple[Truth, Labels, pl.DataFrame]:
    """The truth, the known labels and the table of classes, from files, frames or mappings of columns.

    Args:
        task: What is asked.
        truth: `id`, `label` and, where they matter, `unit`, `split`, `date`; for soundscapes events in recordings.
        classes: `label` and, where they matter, `poisonous`, `rare`; None takes the labels of the truth.
        media: For soundscapes: `MediaId`, `seconds` and, where it matters, `site`.
    """
    if task.item == "segment":
        return _soundscapes(task, truth, classes, media)
    if media is not None:
        raise MisuseError("Only soundscapes come with a table of recordings: leave --media out.")
    rows, where = _frame(truth, "truth", ("id", "label"))
    if rows.is_empty():
        raise InputError(where, found="a header and no row", expected="a row for each item that is asked about")
    for name in ("id", "label"):
        without = rows[name].is_null().arg_true()
        if len(without):
            raise InputError(where, line=int(without[0]) + 2, found=f"no {name}", expected="one in each row")
    twice = rows["id"].is_duplicated().arg_true()
    if len(twice) > 1:
        line = int(twice[1]) + 2
        raise InputError(where, line=line, found=f"the id {rows['id'][line - 2]!r} again", expected="each id once")
    if "month" in task.by and "month" not in rows.columns and "date" in rows.columns:
        rows = rows.with_columns(pl.col("date").str.slice(5, 2).alias("month"))
    units = rows["unit"] if "unit" in rows.columns else rows["id"]
    known = rows.filter(pl.col("label") != UNKNOWN_NAME)["label"] if task.unknown else rows["label"]
    labels, table = _classes(classes, known, where)
    groups = rows.select([name for name in (*task.by, "split") if name in rows.columns])
    truths = Truth(rows.select(pl.col("id").alias("item_id"), "label"), tuple(rows["id"]), tuple(units), groups)
    return truths, labels, table


def _frame(source: Any, what: str, required: tuple[str, ...]) -> tuple[pl.DataFrame, str]:
    """A table with text columns from a file, a frame or a mapping of columns, and what to call it in messages."""
    if isinstance(source, (str, Path)):
        try:
            with Path(source).open("rb") as file:
                return read_csv(file, source, required=required), str(source)
        except FileNotFoundError as error:
            raise InputError(source, found="no such file", expected=f"a CSV table of {what}") from error
    frame = pl.DataFrame(source)
    for name in required:
        if name not in frame.columns:
            raise InputError(what, found=f"the columns {', '.join(frame.columns)}", expected=f"a column {name!r}")
    return frame.with_columns(pl.all().cast(pl.String)), what


def write_truth(
    name: str, data: str | Path, out: Path, *, split: str = "test", seed: int = 0, overwrite: bool = False
) -> int:
    """Writes the truth of one part of a release as `truth.csv` and `classes.csv`, and returns the number of items.

    For soundscapes `media.csv` lists the recordings.

    Raises:
        InputError: When the release does not hold the labels of that part.
    """
    benchmark = BENCHMARKS[name]
    opened = open_benchmark(benchmark, open_release(benchmark, data), seed=seed)
    known = opened.truth_of(split)
    with appearing_folder(out, overwrite=overwrite) as folder:
        if benchmark.task.item == "segment":
            _write_soundscapes(folder, known, opened.items[split])
        else:
            units = pl.DataFrame({"item_id": known.items, "unit": known.units})
            shown_by = [name for name in benchmark.task.by if name in opened.items[split].columns]
            context = opened.items[split].select("item_id", "date", *shown_by)
            rows = known.rows.join(units, on="item_id", how="left", maintain_order="left").join(
                context, on="item_id", how="left", maintain_order="left"
            )
            rows.rename({"item_id": "id"}).write_csv(folder / "truth.csv")
        opened.dataset.taxa.write_csv(folder / "classes.csv")
    return len(known.items)


def _write_soundscapes(folder: Path, known: Truth, items: pl.DataFrame) -> None:
    """The truth as the organizers give it, segment by segment, and the recordings, so that silence counts."""
    segments = known.rows.join(items, on="item_id", how="left", maintain_order="left", suffix="_longest")
    with (folder / "truth.csv").open("w", encoding="utf-8") as file:
        for name, label, start, end in segments.select("recording", "label", "start_s", "end_s").iter_rows():
            file.write(f"{name};{label};{clock(int(start))}-{clock(int(end))}\n")
    media = items.group_by("recording", maintain_order=True).agg(pl.col("seconds", "site").first())
    media.rename({"recording": "MediaId"}).write_csv(folder / "media.csv")


def _classes(classes: Any, known: pl.Series, where: str) -> tuple[Labels, pl.DataFrame]:
    """The known labels and what is known about them; without a table, those that the truth names."""
    if classes is None:
        return Labels.of(known), pl.DataFrame({"label": []}, schema={"label": pl.String})
    table, classes_where = _frame(classes, "classes", ("label",))
    for flag in ("poisonous", "rare"):
        if flag in table.columns:
            table = parse_column(table, flag, bool, classes_where)
    labels = Labels(tuple(name for name in table["label"].unique(maintain_order=True) if name != UNKNOWN_NAME))
    strange = [name for name in known if name not in labels.code_of]
    if strange:
        raise InputError(where, found=f"the label {strange[0]!r}", expected=f"a label listed in {classes_where}")
    return labels, table


def _soundscapes(task: Task, truth: Any, classes: Any, media: Any) -> tuple[Truth, Labels, pl.DataFrame]:
    """Events in recordings as labels of five-second segments.

    An event marks every segment it overlaps; one that ends exactly on a boundary does not reach the next.
    """
    if media is None:
        raise MisuseError("Soundscapes need a table of recordings (--media): MediaId, seconds and site.")
    recordings, media_where = _frame(media, "media", ("MediaId", "seconds"))
    recordings = parse_column(recordings, "seconds", float, media_where)
    site = recordings["site"] if "site" in recordings.columns else pl.Series([None] * len(recordings), dtype=pl.String)
    items: list[str] = []
    units: list[str] = []
    sites: list[str | None] = []
    for name, seconds, place in zip(recordings["MediaId"], recordings["seconds"], site, strict=True):
        starts = range(0, segments_in(seconds, SEGMENT_S) * SEGMENT_S, SEGMENT_S)
        items += [segment_name(name, start) for start in starts]
        units += [name] * len(starts)
        sites += [place] * len(starts)
    events, where = _events(truth)
    rows = _marked(events, where, set(items))
    if rows.is_empty():
        expected = "at least one, since silence alone cannot be scored"
        raise InputError(where, found="no event with a name", expected=expected)
    labels, table = _classes(classes, rows["label"], where)
    return Truth(rows, tuple(items), tuple(units), pl.DataFrame({"site": sites})), labels, table


def _events(truth: Any) -> tuple[pl.DataFrame, str]:
    """Events as `line`, `name`, `start_s`, `end_s` and `label`; a file has semicolons and no header."""
    if isinstance(truth, (str, Path)):
        try:
            return ground_truth_lines(Path(truth).read_bytes(), truth), str(truth)
        except FileNotFoundError as error:
            raise InputError(truth, found="no such file", expected=TRUTH_LINE) from error
    frame, where = _frame(truth, "truth", ("MediaId", "ClassId", "interval"))
    spans = [event_interval(text, where, line) for line, text in enumerate(frame["interval"], 1)]
    spans_s = pl.DataFrame(spans, schema={"start_s": pl.Float64, "end_s": pl.Float64}, orient="row")
    named = frame.select(pl.int_range(1, pl.len() + 1).alias("line"), name="MediaId", label="ClassId")
    return pl.concat([named, spans_s], how="horizontal"), where


def _marked(events: pl.DataFrame, where: str, items: set[str]) -> pl.DataFrame:
    """One row per segment and class that an event overlaps; birds that nobody could name (`????`) count as silence."""
    # Unlike in a release, where people round an event up beyond its recording, one outside is a mistake here.
    rows: dict[tuple[str, str], None] = {}
    first, last = overlapped(events["start_s"].to_numpy(), events["end_s"].to_numpy(), SEGMENT_S)
    named = events["label"].fill_null("").str.contains(UNKNOWN_BIRD).not_()
    lines = zip(events["line"], events["name"], events["label"], named, first, last, strict=True)
    for number, name, label, known, begin, end in lines:
        for segment in range(int(begin), int(end) + 1):
            item = segment_name(name, segment * SEGMENT_S)
            if item not in items:
                found = f"an event at {segment * SEGMENT_S} s of {name!r}"
                raise InputError(where, line=number, found=found, expected="one within a recording listed in media")
            if known:
                rows[item, label] = None
    return pl.DataFrame(list(rows), schema={"item_id": pl.String, "label": pl.String}, orient="row")
