"""Species heard when: the tables in which people wrote it down.

- Ground truth of BirdCLEF: `MediaId;ClassId;hh:mm:ss-hh:mm:ss[;country]`, no header. The organizers' perfect run says
  the same as a run does, `MediaId;hh:mm:ss-hh:mm:ss;ClassId;Probability`.
- Annotations as published on Zenodo: `Filename,Start Time (s),End Time (s),Low Freq (Hz),High Freq (Hz),Species eBird
  Code`, where `????` is a bird that nobody could name. The same with other names: `fid,start_time_s,end_time_s,
  ebird_codes` (several codes with spaces between).
- Selection tables of Raven (`fieldmark.tables.raven`).

All become one table: `name` (of the recording, as the file has it), `start_s`, `end_s`, `label` (null for unknown),
`low_hz`, `high_hz`.
"""

from __future__ import annotations

import io

import polars as pl

from fieldmark.errors import InputError
from fieldmark.tables.raven import START as RAVEN_START
from fieldmark.tables.raven import parse_selections
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import parse_column
from fieldmark.tables.timecodes import parse_interval

EVENT_COLUMNS = {
    "name": pl.String,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "label": pl.String,
    "low_hz": pl.Float64,
    "high_hz": pl.Float64,
}
TRUTH_LINE = "MediaId;ClassId;hh:mm:ss-hh:mm:ss"
# Columns of published annotations, by the names they go by.
ALIASES = {
    "name": ("Filename", "fid", "filename"),
    "start_s": ("Start Time (s)", "start_time_s"),
    "end_s": ("End Time (s)", "end_time_s"),
    "label": ("Species eBird Code", "ebird_codes", "label"),
    "low_hz": ("Low Freq (Hz)",),
    "high_hz": ("High Freq (Hz)",),
}
UNKNOWN_BIRD = r"^\?*$"  # question marks, or nothing at all
REPLACED = "\ufffd"  # what decoding leaves of bytes that are not UTF-8


def read_events(data: bytes, where: object) -> pl.DataFrame:
    """Reads a table of events, whichever of the known kinds it is.

    Raises:
        InputError: When it is none of them, or a line is not what it should be.
    """
    first = data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8", errors="replace")
    if RAVEN_START in first:
        events = parse_selections(data, where).rename({"file": "name"}).select(list(EVENT_COLUMNS))
    elif any(name in first for name in ALIASES["start_s"]):
        events = _published(data, where)
    else:
        events = read_ground_truth(data, where)
    named = pl.when(pl.col("label").str.contains(UNKNOWN_BIRD)).then(None).otherwise(pl.col("label"))
    return events.with_columns(label=named)


def read_ground_truth(data: bytes, where: object) -> pl.DataFrame:
    """Reads the organizers' ground truth, or their perfect run; rows are in the order of the lines.

    Raises:
        InputError: For a line that is not `MediaId;ClassId;hh:mm:ss-hh:mm:ss`.
    """
    events = ground_truth_lines(data, where, perfect_run=True)
    return events.drop("line").with_columns(low_hz=pl.lit(None, pl.Float64), high_hz=pl.lit(None, pl.Float64))


def ground_truth_lines(data: bytes, where: object, *, perfect_run: bool = False) -> pl.DataFrame:
    """The lines of a ground truth as `line`, `name`, `start_s`, `end_s` and `label`.

    Args:
        data: The file.
        where: What to call it.
        perfect_run: Whether to take lines in the order of a run as well. A release has such files; where somebody names
            the truth by hand, a run is there by mistake.

    Raises:
        InputError: For a line that is none.
    """
    rows: list[tuple[int, str, float, float, str]] = []
    for number, line in enumerate(data.decode("utf-8-sig", errors="replace").splitlines(), 1):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split(";")]
        if len(fields) not in (3, 4):
            found = f"{len(fields)} field{'s' if len(fields) != 1 else ''}"
            raise InputError(where, line=number, found=found, expected=TRUTH_LINE)
        name, label, text = fields[:3]
        if REPLACED in name + label + text:
            raise InputError(where, line=number, found="bytes that are not UTF-8", expected=TRUTH_LINE)
        if perfect_run and parse_interval(label) is not None:
            label, text = text, label
        rows.append((number, name, *event_interval(text, where, number), label))
    columns = {name: EVENT_COLUMNS[name] for name in ("name", "start_s", "end_s", "label")}
    return pl.DataFrame(rows, schema={"line": pl.Int64, **columns}, orient="row")


def event_interval(text: str | None, where: object, line: int) -> tuple[float, float]:
    """Start and end of an event in seconds.

    Raises:
        InputError: When it is no interval, or ends before it begins.
    """
    interval = parse_interval(text or "")
    if interval is None or interval[1] < interval[0]:
        raise InputError(where, line=line, found=f"the interval {text!r}", expected="hh:mm:ss-hh:mm:ss")
    return float(interval[0]), float(interval[1])


def _published(data: bytes, where: object) -> pl.DataFrame:
    rows = read_csv(io.BytesIO(data), where)
    column_of = {ours: next((name for name in names if name in rows.columns), None) for ours, names in ALIASES.items()}
    for ours in ("name", "start_s", "end_s", "label"):
        if column_of[ours] is None:
            columns = ", ".join(rows.columns)
            expected = " or ".join(repr(name) for name in ALIASES[ours])
            raise InputError(where, line=1, found=f"the columns {columns}", expected=f"a column {expected}")
    rows = rows.rename({theirs: ours for ours, theirs in column_of.items() if theirs is not None})
    for name in ("start_s", "end_s", "low_hz", "high_hz"):
        rows = parse_column(rows, name, float, where)
    wrong = (rows["start_s"].is_null() | rows["end_s"].is_null() | (rows["end_s"] < rows["start_s"])).arg_true()
    if len(wrong):
        row = int(wrong[0])
        what = f"an event from {rows['start_s'][row]} to {rows['end_s'][row]} s"
        raise InputError(where, line=row + 2, found=what, expected="one that ends after it begins")
    labels = pl.col("label").fill_null("????").str.strip_chars().str.split(" ")
    return rows.select(list(EVENT_COLUMNS)).with_columns(labels).explode("label")
