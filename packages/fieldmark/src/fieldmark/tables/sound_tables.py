"""Tables of what was heard when, as detectors and people write them: detections with scores, annotations without.

A format is a declaration of columns (`FORMATS`); another one is one more of them. Tables are told by their header:

- BirdNET-Analyzer: `Start (s),End (s),Scientific name,Common name,Confidence,File`; the older table for R
  (`filepath,start,end,scientific_name,...`), Kaleidoscope (`INDIR,FOLDER,IN FILE,OFFSET,DURATION,...`), and the labels
  for Audacity, which have no header.
- The `birdnet` package: `input,start_time,end_time,species_name,confidence`, times as `hh:mm:ss.cc`.
- Selection tables of Raven. Tables of many recordings count `Begin Time (s)` from the first one on; `File Offset (s)`
  is the time within the recording. BirdNET-Analyzer writes one selection `nocall` where it hears nothing.
- Perch: `filename,timestamp_s,label,logit`, windows of five seconds.
- Score frames, one column for each species: `file,start_time,end_time,...` (OpenSoundscape), `row_id,...` (BirdCLEF
  since 2021, where an id is the recording and the second at which a window of five ends).
- Runs and truths of BirdCLEF until 2020: `MediaId;hh:mm:ss-hh:mm:ss;ClassId;Probability` and
  `MediaId;ClassId;hh:mm:ss-hh:mm:ss`; truths of 2026, `filename,start,end,primary_label` with semicolons in the last.
- Published annotations (`fieldmark.tables.annotations`), and the answers of `fieldmark identify --out`.

All become one table with the columns of `SOUNDS`. A folder is read as the tables in it. Where a table does not name its
recording, the name of the file does: `dawn.BirdNET.results.csv` and `dawn.Table.1.selections.txt` are about `dawn`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

import polars as pl

from fieldmark.errors import InputError
from fieldmark.storage.files import open_input
from fieldmark.storage.parquet import read_frame
from fieldmark.tables.annotations import ALIASES, UNKNOWN_BIRD, ground_truth_lines
from fieldmark.tables.camera_detections import is_megadetector, read_megadetector
from fieldmark.tables.media import EVERY_SUFFIX, is_leftover
from fieldmark.tables.raven import END, FILE_COLUMNS, HIGH, LABEL_COLUMNS, LOW, START, one_row_each
from fieldmark.tables.reader import decoded, read_csv, rows_of
from fieldmark.tables.schema import parse_column
from fieldmark.tables.timecodes import parse_interval

SOUNDS: Final = {
    "file": pl.String,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "label": pl.String,
    "common_name": pl.String,
    "code": pl.String,
    "score": pl.Float64,
    "low_hz": pl.Float64,
    "high_hz": pl.Float64,
}
SUFFIXES: Final = (".csv", ".txt", ".tsv", ".json")
ANSWERS: Final = ("answers.json", "answers.parquet")  # a folder of `fieldmark identify --out`
# What tools add to the name of a recording when they name a table after it.
OF_TABLES: Final = re.compile(
    r"(\.BirdNET(\.(results|selection\.table|selections?))?|\.Table\.\d+|\.selections?|\.results)+$", re.IGNORECASE
)
NOTHING_HEARD: Final = ("nocall", "no_call", "no call")
SCORES_OF_PERCH_S, BIRDCLEF_S = 5.0, 5.0
AUDACITY_LINE: Final = re.compile(r"\s*\d+(\.\d+)?\t\s*\d+(\.\d+)?(\t|$)")
_CLOCK = re.compile(r"(\d{1,4}):([0-5]\d):([0-5]\d(?:\.\d+)?)")


@dataclass(frozen=True)
class SoundFormat:
    """The columns of one kind of table.

    Args:
        title: What people call it.
        columns: The names that the column of each role goes by, the best first. Roles are those of `SOUNDS`, and
            `folder` (before the file), `duration` (in place of the end), `offset` (the start within the recording).
        seconds: How long each row is, where the table says only when it starts.
        labels_split: What stands between several labels of a row; empty where there is one.
        wide: Whether each further column is a species with its scores.
    """

    title: str
    columns: Mapping[str, Sequence[str]]
    seconds: float = 0.0
    labels_split: str = ""
    wide: bool = False
    told_by: Sequence[str] = field(default=("start_s", "label"))

    def fits(self, header: Sequence[str]) -> bool:
        """Whether a table with this header is one: it has a column for each role that tells the format."""
        return all(any(name in header for name in self.columns[role]) for role in self.told_by)


FORMATS: Final = (
    SoundFormat(
        "a table of BirdNET-Analyzer",
        {
            "file": ("File",),
            "start_s": ("Start (s)",),
            "end_s": ("End (s)",),
            "label": ("Scientific name",),
            "common_name": ("Common name",),
            "score": ("Confidence",),
        },
    ),
    SoundFormat(
        "a table of BirdNET-Analyzer for R",
        {
            "file": ("filepath",),
            "start_s": ("start",),
            "end_s": ("end",),
            "label": ("scientific_name",),
            "common_name": ("common_name",),
            "score": ("confidence",),
        },
    ),
    SoundFormat(
        "a table of Kaleidoscope",
        {
            "folder": ("FOLDER",),
            "file": ("IN FILE",),
            "start_s": ("OFFSET",),
            "duration": ("DURATION",),
            "label": ("scientific_name", "TOP1MATCH"),
            "common_name": ("common_name", "TOP1MATCH"),
            "score": ("confidence", "TOP1DIST"),
        },
    ),
    SoundFormat(
        "a table of the birdnet package",
        {
            "file": ("input",),
            "start_s": ("start_time",),
            "end_s": ("end_time",),
            "label": ("species_name",),
            "score": ("confidence",),
        },
    ),
    SoundFormat(
        "scores of Perch",
        {"file": ("filename",), "start_s": ("timestamp_s",), "label": ("label",), "score": ("logit",)},
        seconds=SCORES_OF_PERCH_S,
    ),
    SoundFormat(
        "a selection table of Raven",
        {
            "file": FILE_COLUMNS,
            "start_s": (START,),
            "end_s": (END,),
            "offset": ("File Offset (s)",),
            "label": ("Scientific Name", *LABEL_COLUMNS),
            "common_name": ("Common Name",),
            "code": ("Species Code",),
            "score": ("Confidence",),
            "low_hz": (LOW,),
            "high_hz": (HIGH,),
        },
        told_by=("start_s",),
    ),
    SoundFormat(
        "a truth of BirdCLEF 2026",
        {"file": ("filename",), "start_s": ("start",), "end_s": ("end",), "label": ("primary_label",)},
        labels_split=";",
    ),
    SoundFormat("published annotations", ALIASES | {"file": ALIASES["name"]}, labels_split=" "),
    SoundFormat(
        "a table of Fieldmark",
        {
            "file": ("file", "recording"),
            "start_s": ("start_s",),
            "end_s": ("end_s",),
            "label": ("label",),
            "common_name": ("common_name",),
            "score": ("score",),
        },
    ),
    SoundFormat(
        "a table of whole files",
        {"file": ("file", "recording"), "label": ("label",), "score": ("score",)},
        told_by=("file", "label"),
    ),
    SoundFormat(
        "a score frame",
        {"file": ("file",), "start_s": ("start_time",), "end_s": ("end_time",)},
        wide=True,
        told_by=("file", "start_s", "end_s"),
    ),
)


@dataclass(frozen=True)
class SoundTable:
    """What one or several tables say.

    Args:
        rows: One row for each sound, with the columns of `SOUNDS`.
        files: The recordings that the tables are about, those without any sound among them.
        formats: What the tables are, in words.
    """

    rows: pl.DataFrame
    files: tuple[str, ...]
    formats: tuple[str, ...]


def read_sounds(path: Path) -> SoundTable:
    """Reads a table of sounds, or all tables of a folder.

    Raises:
        InputError: When there is none, one is of no known kind, or a line is not what it should be.
    """
    if not path.is_dir():
        with open_input(path, "a table of detections or annotations") as file:
            return parse_sounds(file.read(), path)
    if all((path / name).is_file() for name in ANSWERS):
        return _answered(path / ANSWERS[1])
    places = sorted(one for one in path.rglob("*") if one.suffix.lower() in SUFFIXES and not is_leftover(one.name))
    tables = [parse_sounds(one.read_bytes(), one) for one in places if one.is_file()]
    if not tables:
        raise InputError(path, found="no table", expected=f"tables that end in {', '.join(SUFFIXES)}")
    files = dict.fromkeys(file for table in tables for file in table.files)
    formats = dict.fromkeys(name for table in tables for name in table.formats)
    return SoundTable(pl.concat([table.rows for table in tables]), tuple(files), tuple(formats))


def _answered(table: Path) -> SoundTable:
    """The answers to recordings; those that could not be read were not listened to."""
    rows = read_frame(table, table, expected="a table of answers")
    rows = rows.filter(pl.col("problem").is_null()).with_columns(file=pl.col("files").list.first())
    heard = rows.filter(pl.col("name") != "").select("file", "start_s", "end_s", label="name", score="probability")
    if heard["start_s"].is_null().any():
        raise InputError(table, found="answers without times, as of photos", expected="answers to recordings")
    files = tuple(rows["file"].unique(maintain_order=True))
    return SoundTable(_filled(heard), files, ("answers of Fieldmark",))


def parse_sounds(data: bytes, where: Path) -> SoundTable:
    """The same from the bytes of a table; `where` is its path, which may name the recording."""
    first = data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8", errors="replace").strip("\r")
    if is_megadetector(data):
        rows, title = read_megadetector(data, where).select(list(SOUNDS)), "MegaDetector JSON"
    elif AUDACITY_LINE.match(first):
        rows, title = _audacity(data, where), "labels of Audacity"
    elif ";" in first and "," not in first.partition(";")[0]:
        rows, title = _birdclef(data, where), "a run or truth of BirdCLEF"
    elif first.startswith("row_id"):
        rows, title = _row_ids(data, where), "a run of BirdCLEF"
    else:
        separator = "\t" if "\t" in first else ","
        table = read_csv(io.BytesIO(data), where, separator=separator)
        chosen = next((one for one in FORMATS if one.fits(table.columns)), None)
        if chosen is None:
            known = "; ".join(one.title for one in FORMATS)
            hint = f"Name its columns file,start_s,end_s,label,score. Known are {known}."
            found = f"the columns {', '.join(table.columns)}"
            raise InputError(where, line=1, found=found, expected="a table of sounds", hint=hint)
        rows, title = _declared(table, chosen, where), chosen.title
    own = (where.parent / recording_of_table(where)).as_posix()
    rows = rows.with_columns(file=pl.col("file").fill_null(own))
    _refuse_impossible(rows, where)
    files = tuple(rows["file"].unique(maintain_order=True)) or (own,)
    silent = pl.col("label").str.to_lowercase().is_in(NOTHING_HEARD).fill_null(False)
    named = pl.when(pl.col("label").str.contains(UNKNOWN_BIRD)).then(None).otherwise(pl.col("label"))
    return SoundTable(rows.filter(~silent).with_columns(label=named), files, (title,))


def recording_of_table(path: Path) -> str:
    """The recording that a table is named after.

    >>> recording_of_table(Path("x/dawn.BirdNET.results.csv")), recording_of_table(Path("a.Table.1.selections.txt"))
    ('dawn', 'a')
    """
    return OF_TABLES.sub("", path.name.removesuffix(path.suffix)) or path.stem


def recording_name(file: str, parts: int = 1) -> str:
    r"""What a recording is called in every table: the last parts of its path, without the ending of sound files.

    >>> recording_name(r"C:\dawn\site 1\A.WAV"), recording_name("site1/A.flac", parts=2), recording_name("A.v2")
    ('A', 'site1/A', 'A.v2')
    """
    path = PurePosixPath(file.replace("\\", "/"))
    name = "/".join(path.parts[-parts:])
    return name[: -len(path.suffix)] if path.suffix.lower() in EVERY_SUFFIX else name


def _declared(table: pl.DataFrame, chosen: SoundFormat, where: Path) -> pl.DataFrame:
    column_of = {
        role: next((name for name in names if name in table.columns), None) for role, names in chosen.columns.items()
    }
    if chosen.title.startswith("a selection table"):
        table = one_row_each(table)
    if chosen.wide:
        ids = [name for name in column_of.values() if name]
        species = [name for name in table.columns if name not in ids]
        table = table.unpivot(species, index=ids, variable_name="label", value_name="score").drop_nulls("score")
        column_of |= {"label": "label", "score": "score"}
    for role in ("start_s", "end_s", "duration", "offset"):
        if (name := column_of.get(role)) is not None:
            table = _in_seconds(table, name, where)
    for role in ("score", "low_hz", "high_hz"):
        if (name := column_of.get(role)) is not None:
            table = parse_column(table, name, float, where)

    def named(role: str) -> pl.Expr:
        name = column_of.get(role)
        return (pl.lit(None) if name is None else pl.col(name)).cast(SOUNDS.get(role, pl.Float64))

    start = named("start_s")
    if column_of.get("end_s") or not column_of.get("start_s"):
        end = named("end_s")
    else:
        end = start + (named("duration") if column_of.get("duration") else pl.lit(chosen.seconds))
    if column_of.get("offset"):
        start, end = named("offset"), named("offset") + (end - start)
    file = named("file")
    if column_of.get("folder"):
        file = pl.format("{}/{}", pl.col(str(column_of["folder"])), file)
    label = named("label").str.strip_chars()
    if chosen.title.endswith("birdnet package"):  # "Turdus merula_Common Blackbird"
        common: pl.Expr = pl.when(label.str.contains("_", literal=True)).then(
            label.str.splitn("_", 2).struct.field("field_1")
        )
        label = label.str.splitn("_", 2).struct.field("field_0")
    else:
        common = named("common_name")
    rows = table.select(
        file=file,
        start_s=start,
        end_s=end,
        label=label,
        common_name=common,
        code=named("code"),
        score=named("score"),
        low_hz=pl.min_horizontal(named("low_hz"), named("high_hz")),
        high_hz=pl.max_horizontal(named("low_hz"), named("high_hz")),
    )
    if chosen.labels_split:
        rows = rows.with_columns(pl.col("label").str.split(chosen.labels_split)).explode("label")
    return rows.unique(maintain_order=True)


def _in_seconds(table: pl.DataFrame, name: str, where: Path) -> pl.DataFrame:
    """A column of times, as seconds or as hours, minutes and seconds."""
    if not table[name].drop_nulls().str.contains(":", literal=True).any():
        return parse_column(table, name, float, where)
    parts = [pl.col(name).str.extract(_CLOCK.pattern, group).cast(pl.Float64) for group in (1, 2, 3)]
    whole = pl.col(name).str.contains(f"^{_CLOCK.pattern}$")
    seconds = table.select(pl.when(whole).then(3600 * parts[0] + 60 * parts[1] + parts[2])).to_series()
    wrong = seconds.is_null().arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise InputError(where, line=row + 2, found=f"{table[name][row]!r} as {name}", expected="hh:mm:ss")
    return table.with_columns(seconds.alias(name))


def _audacity(data: bytes, where: Path) -> pl.DataFrame:
    r"""Labels of Audacity: start, end and text with tabs between, then a score; `\` begins a line of frequencies.

    BirdNET-Analyzer writes "Turdus merula, Common Blackbird" and the score behind it; this package a score in the text.
    """
    rows: list[dict[str, object]] = []
    for line, fields in rows_of(io.StringIO(decoded(data, where), newline=""), where, separator="\t", strict=False):
        if fields[0] == "\\":
            low, high = sorted(_number(text, where, line, "a frequency") for text in fields[1:3])
            rows[-1] |= {"low_hz": low, "high_hz": high}
            continue
        start, end = (_number(text, where, line, "seconds") for text in fields[:2])
        text, score = (fields[2] if len(fields) > 2 else ""), (fields[3] if len(fields) > 3 else None)
        if score is None and (inside := re.fullmatch(r"(.+) ([01]\.\d+)", text)):
            text, score = inside.groups()
        label, _, common = text.partition(", ")
        rows.append(
            {
                "start_s": start,
                "end_s": end,
                "label": label or None,
                "common_name": common or None,
                "score": None if score is None else _number(score, where, line, "a score"),
            }
        )
    return pl.DataFrame(rows, schema=dict(SOUNDS))


def _number(text: str, where: Path, line: int, expected: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(where, line=line, found=repr(text), expected=expected) from error


def _birdclef(data: bytes, where: Path) -> pl.DataFrame:
    """A run has the interval in its second column and a score in its fourth; a truth has the label there."""
    text = decoded(data, where, "lines of BirdCLEF in UTF-8")
    first = next(rows_of(io.StringIO(text, newline=""), where, separator=";"), (1, []))[1]
    if len(first) != 4 or parse_interval(first[1]) is None:
        return _filled(ground_truth_lines(data, where).rename({"name": "file"}))
    rows = []
    for line, fields in rows_of(io.StringIO(text, newline=""), where, separator=";"):
        interval = parse_interval(fields[1]) if len(fields) == 4 else None
        if interval is None:
            expected = "MediaId;hh:mm:ss-hh:mm:ss;ClassId;Probability"
            raise InputError(where, line=line, found=";".join(fields), expected=expected)
        score = _number(fields[3], where, line, "a probability")
        rows.append(
            {"file": fields[0], "start_s": interval[0], "end_s": interval[1], "label": fields[2], "score": score}
        )
    return pl.DataFrame(rows, schema=dict(SOUNDS), strict=False)


def _row_ids(data: bytes, where: Path) -> pl.DataFrame:
    """Windows by the recording and the second at which they end: scores of all species, or the list of those heard."""
    table = read_csv(io.BytesIO(data), where, required=("row_id",))
    parts = table["row_id"].str.extract_groups(r"^(?<file>.+)_(?<end>\d+)$").struct.unnest()
    wrong = parts["end"].is_null().arg_true()
    if len(wrong):
        row = int(wrong[0])
        expected = "the recording, an underscore and the second at which the window ends"
        raise InputError(where, line=row + 2, found=f"the row_id {table['row_id'][row]!r}", expected=expected)
    end = parts["end"].cast(pl.Float64)
    table = table.with_columns(file=parts["file"], start_s=end - BIRDCLEF_S, end_s=end)
    ids = ["file", "start_s", "end_s"]
    if "birds" in table.columns:
        listed = table.select(*ids, label=pl.col("birds").str.split(" ")).explode("label")
        return _filled(listed.with_columns(score=pl.lit(1.0)))
    species = [name for name in table.columns if name not in (*ids, "row_id")]
    for name in species:
        table = parse_column(table, name, float, where)
    return _filled(table.unpivot(species, index=ids, variable_name="label", value_name="score").drop_nulls("score"))


def _filled(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(kind).alias(name) for name, kind in SOUNDS.items()
    )


def _refuse_impossible(rows: pl.DataFrame, where: Path) -> None:
    timed = rows["start_s"].is_not_null() | rows["end_s"].is_not_null()
    ordered = (rows["start_s"] >= 0) & (rows["end_s"] >= rows["start_s"]) & rows["end_s"].is_finite()
    wrong = (timed & ~ordered.fill_null(False)).arg_true()
    if len(wrong):
        row = int(wrong[0])
        found = f"a sound from {rows['start_s'][row]} to {rows['end_s'][row]} s (row {row + 1})"
        raise InputError(where, found=found, expected="one that ends after it begins")
    strange = (~rows["score"].is_finite()).fill_null(False).arg_true()
    if len(strange):
        row = int(strange[0])
        raise InputError(where, found=f"the score {rows['score'][row]} (row {row + 1})", expected="a finite number")


def describe(table: SoundTable) -> str:
    """A sentence about what was read."""
    kinds = " and ".join(table.formats)
    return f"{len(table.rows):,} sounds in {len(table.files):,} recordings ({kinds})"
