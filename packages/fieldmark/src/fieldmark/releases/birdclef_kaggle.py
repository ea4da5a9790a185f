"""BirdCLEF 2021 to 2026 as Kaggle packs them.

```
ROOT/
  train_metadata.csv | train.csv         primary_label, secondary_labels, latitude, longitude, filename, ...
  train_short_audio/ | train_audio/      <primary_label>/<file>.ogg
  taxonomy.csv                           primary_label, scientific_name, common_name, class_name (since 2025)
  train_soundscapes/                     soundscapes, annotated in 2021 and 2026
  train_soundscape_labels.csv            2021: row_id, site, audio_id, seconds, birds
  train_soundscapes_labels.csv           2026: filename, start, end, primary_label (joined by ;)
  test_soundscapes/                      empty, or what somebody has put there
```

Quirks:

- `filename` has the folder in front since 2023, and none before. `secondary_labels` is a list as Python writes it.
- Labels are eBird codes, and since 2025 also numbers of iNaturalist and sonotypes (`47158son16`): always text.
- In 2021 a row is called `<audio_id>_<site>_<end>`, so that a soundscape `7019_COR_20190904.ogg` is called `7019_COR`;
  in later years a soundscape is called by its file name.
- Annotated soundscapes are val. Where there are none, val is drawn from the focal recordings; soundscapes without
  annotations are counted and left out.
- 28 classes of 2026 have no focal recording: the classes are those of `taxonomy.csv` and of every table.
- The real table of 2026 lists every block twice, with the same labels. A block counts once, with all labels that its
  rows name; remarks count the rows that repeat one, and those that name other labels.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.checks import COMPETITION_PAGE, Count, ReleaseCheck
from fieldmark.releases.citations import LIFECLEF_2022, working_note
from fieldmark.releases.record import ReleaseRecord, World
from fieldmark.releases.soundfiles import read_header
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.media import RECORDING
from fieldmark.tables.numbers import is_digits
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import EVENTS, parse_places

TABLES, FOLDERS = ("train_metadata.csv", "train.csv"), ("train_audio", "train_short_audio")
SOUNDSCAPES, TEST = "train_soundscapes", "test_soundscapes"
# Tables of rows by the end of a segment, and of events; those of test are there where somebody has them.
ROWS = ("train_soundscape_labels.csv", "test_soundscape_labels.csv")
TIMES = ("train_soundscapes_labels.csv", "test_soundscapes_labels.csv")
REPEATED = "repeat an earlier row and count once"
OTHERS = "list a block again with other labels, which count as well"
TAXONOMY, SEGMENT_S, SILENCE = "taxonomy.csv", 5, "nocall"
DATED = re.compile(r"(?P<name>[0-9]+_[A-Z]+)_[0-9]{8}")
CLOCK = re.compile(r"([0-9]{1,4}):([0-5]?[0-9]):([0-5]?[0-9])")


def open_birdclef_kaggle(release: Release, subset: str = "all", *, year: int) -> Dataset:
    """Opens the release of one year; there are no subsets.

    Raises:
        InputError: When a table is missing or is not what it should be, or a recording that it names is not there.
    """
    name = f"birdclef-{year}"
    if subset != "all":
        raise MisuseError(f"{name} has no subset called {subset!r}.")
    focal = _focal(name, release)
    scapes = _soundscapes(release)
    blocks, told = _annotations(release)
    known = set(scapes["media_id"])
    blocks = [block for block in blocks if block.media_id in known]
    events = _events(blocks)
    annotated = {block.media_id for block in blocks}  # those in which nothing is heard included
    scapes = scapes.with_columns(annotated=pl.col("media_id").is_in(list(annotated)))
    part = pl.when(pl.col("folder") == TEST).then(pl.lit("test")).when("annotated").then(pl.lit("val"))
    scapes = scapes.with_columns(parts=pl.concat_list(part).list.drop_nulls(), label=pl.lit(None, pl.String))
    silent = int((scapes["parts"].list.len() == 0).sum())
    shared = ["media_id", "path", "parts", "seconds", "annotated", "label", "site", "lat", "lon", "background"]
    everything = pl.concat([table.select(shared) for table in (focal, scapes)])
    remarks = (*told, *([f"{silent:,} soundscapes without annotations are left out."] if silent else []))
    return Dataset(
        name=name,
        release=release,
        taxa=_taxa(release, focal, events),
        observations=everything.select(
            pl.col("media_id").alias("observation_id"), "label", "lat", "lon", "site", "background"
        ),
        media=everything.select(
            "media_id", pl.col("media_id").alias("observation_id"), "path", "parts", "seconds", "annotated"
        ),
        remarks=remarks,
        medium=RECORDING,
        events=events.filter(pl.col("label").is_not_null()),
    )


def _focal(name: str, release: Release) -> pl.DataFrame:
    """One row per recording of one species."""
    table = next((one for one in TABLES if release.exists(one)), None)
    folder = next((one for one in FOLDERS if one in release.folders()), None)
    if table is None or folder is None:
        found = f"no {' or '.join(TABLES if table is None else FOLDERS)}"
        hint = "Unpack the download of the competition, and name the folder that holds it."
        raise InputError(release.root, found=found, expected=f"the release of {name}", hint=hint)
    where = release.where(table)
    with release.open(table) as file:
        rows = read_csv(file, where, required=("primary_label", "filename"))
    for number, label in enumerate(rows["primary_label"], 2):
        if label is None:
            raise InputError(where, line=number, found="no primary_label", expected="one in each row")
    for column in ("secondary_labels", "latitude", "longitude", "scientific_name", "common_name"):
        if column not in rows.columns:
            rows = rows.with_columns(pl.lit(None, pl.String).alias(column))
    # Some say where a recording was made in words, which is no place.
    degrees = pl.col("latitude", "longitude").str.strip_chars()
    is_number = degrees.cast(pl.Float64, strict=False).is_finite()
    rows = parse_places(rows.with_columns(pl.when(is_number).then(degrees)), where, lat="latitude", lon="longitude")
    files = [
        f"{folder}/{name}" if "/" in name else f"{folder}/{label}/{name}"
        for name, label in rows.select("filename", "primary_label").iter_rows()
    ]
    lists = [_names(text, where, number) for number, text in enumerate(rows["secondary_labels"], 2)]
    return rows.with_columns(
        label="primary_label",
        path=pl.Series(files, dtype=pl.String),
        media_id=pl.Series([path.removeprefix(f"{folder}/") for path in files], dtype=pl.String),
        parts=pl.lit(["train"], pl.List(pl.String)),
        seconds=pl.lit(None, pl.Float64),
        annotated=pl.lit(True),
        site=pl.lit(None, pl.String),
        lat=pl.col("latitude"),
        lon=pl.col("longitude"),
        background=pl.Series(lists, dtype=pl.List(pl.String)),
    )


def _names(text: str | None, where: object, line: int) -> list[str]:
    """A list as Python writes it; "[]", "['']" and nothing at all are empty."""
    try:
        listed = ast.literal_eval(text) if text else []
    except (ValueError, SyntaxError):
        listed = None
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise InputError(where, line=line, found=repr(text), expected="a list such as ['amerob', 'houspa']")
    return [one for one in listed if one]


def _soundscapes(release: Release) -> pl.DataFrame:
    """The soundscapes with their length; the site is what stands behind the number in names of 2021."""
    rows: list[dict[str, Any]] = []
    for folder in (SOUNDSCAPES, TEST):
        names = [name for name in release.files(folder) if RECORDING.owns(name)] if folder in release.folders() else []
        paths = [f"{folder}/{name}" for name in names]
        for path, file in zip(paths, release.open_many(paths), strict=True):
            stem = PurePosixPath(path).stem
            dated = DATED.fullmatch(stem)
            media_id = dated["name"] if dated else stem
            with file:
                seconds = read_header(file, release.where(path)).seconds
            site = media_id.rpartition("_")[2] if dated else None
            rows.append({"media_id": media_id, "path": path, "folder": folder, "seconds": seconds, "site": site})
    schema = dict.fromkeys(("media_id", "path", "folder", "site"), pl.String) | {"seconds": pl.Float64}
    nowhere = {name: pl.lit(None, pl.Float64) for name in ("lat", "lon")}
    return pl.DataFrame(rows, schema=schema).with_columns(**nowhere, background=pl.lit([], pl.List(pl.String)))


class Block(NamedTuple):
    """A row of a table of annotations: what is heard in a soundscape from when to when."""

    media_id: str
    start_s: float
    end_s: float
    labels: tuple[str, ...]
    line: int


def _events(blocks: Iterable[Block]) -> pl.DataFrame:
    """Species heard when."""
    rows = [(*block[:3], label) for block in blocks for label in block.labels if label != SILENCE]
    return pl.DataFrame(rows, schema=EVENTS.types, orient="row").unique(maintain_order=True)


def _annotations(release: Release) -> tuple[list[Block], list[str]]:
    """Every row of every table that is no repetition, and what to say about those that are."""
    kept: list[Block] = []
    told: list[str] = []
    for name in (*ROWS, *TIMES):
        if release.exists(name):
            blocks = list(_rows(release, name) if name in ROWS else _times(release, name))
            own, remarks = _once(blocks, name)
            kept, told = kept + own, told + remarks
    return kept, told


def _once(blocks: Sequence[Block], name: str) -> tuple[list[Block], list[str]]:
    """The rows of a table without those that repeat an earlier one; and remarks on blocks that are listed again."""
    first: dict[tuple[str, float, float], Block] = {}
    kept: list[Block] = []
    again: dict[str, list[str]] = {REPEATED: [], OTHERS: []}
    for block in blocks:
        earlier = first.setdefault(block[:3], block)
        same = earlier is not block and set(earlier.labels) == set(block.labels)
        if not same:
            kept.append(block)
        if earlier is not block:
            again[REPEATED if same else OTHERS].append(f"line {block.line} after line {earlier.line}")
    return kept, [
        f"{len(lines):,} of {len(blocks):,} rows of {name} {what} (the first: {lines[0]})."
        for what, lines in again.items()
        if lines
    ]


def _rows(release: Release, name: str) -> Iterator[Block]:
    where = release.where(name)
    with release.open(name) as file:
        rows = read_csv(file, where, required=("row_id", "site", "audio_id", "seconds", "birds"))
    for line, row in enumerate(rows.iter_rows(named=True), 2):
        if not is_digits(row["seconds"] or "") or int(row["seconds"]) < SEGMENT_S:
            expected = "the second at which a segment ends"
            raise InputError(where, line=line, found=f"seconds {row['seconds']!r}", expected=expected)
        end = float(row["seconds"])
        labels = tuple((row["birds"] or SILENCE).split())
        yield Block(f"{row['audio_id']}_{row['site']}", end - SEGMENT_S, end, labels, line)


def _times(release: Release, name: str) -> Iterator[Block]:
    where = release.where(name)
    with release.open(name) as file:
        rows = read_csv(file, where, required=("filename", "start", "end", "primary_label"))
    for line, row in enumerate(rows.iter_rows(named=True), 2):
        start, end = (_seconds(row[column], where, line) for column in ("start", "end"))
        labels = tuple(one.strip() for one in (row["primary_label"] or "").split(";") if one.strip())
        yield Block(PurePosixPath(row["filename"] or "").stem, start, end, labels, line)


def _seconds(text: str | None, where: object, line: int) -> float:
    match = CLOCK.fullmatch(text or "")
    if match is None:
        raise InputError(where, line=line, found=repr(text), expected="a time such as 00:00:05")
    hours, minutes, seconds = (int(number) for number in match.groups())
    return 3600.0 * hours + 60.0 * minutes + seconds


def _taxa(release: Release, focal: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """One row per class of any table, by name."""
    columns = ("label", "species", "common_name")
    named = [focal.select("label", species="scientific_name", common_name="common_name")]
    if release.exists(TAXONOMY):
        with release.open(TAXONOMY) as file:
            rows = read_csv(file, release.where(TAXONOMY), required=("primary_label",))
        given = {"species": "scientific_name", "common_name": "common_name"}
        known = [pl.col(theirs).alias(ours) for ours, theirs in given.items() if theirs in rows.columns]
        missing = [pl.lit(None, pl.String).alias(ours) for ours, theirs in given.items() if theirs not in rows.columns]
        named.insert(0, rows.select(pl.col("primary_label").alias("label"), *known, *missing).select(columns))
    heard = events.select("label", species=pl.lit(None, pl.String), common_name=pl.lit(None, pl.String))
    return (
        pl.concat([*named, heard]).drop_nulls("label").unique("label", keep="first", maintain_order=True).sort("label")
    )


RECORDS = (
    ReleaseRecord(
        name="birdclef-2021",
        about="BirdCLEF 2021: focal recordings, soundscapes where there are annotated ones",
        open=partial(open_birdclef_kaggle, year=2021),
        check=ReleaseCheck(
            published={"train": {COMPETITION_PAGE: Count(classes=397)}, "val": {COMPETITION_PAGE: Count(recordings=20)}}
        ),
        world=World(
            "fieldmark_worlds.layouts.birdclef_kaggle:write",
            "the same birds as Kaggle packs BirdCLEF 2021, rows of five seconds with their birds",
        ),
        homepage="https://www.kaggle.com/c/birdclef-2021",
        citation=working_note(
            "kahl2021birdclef",
            "Overview of BirdCLEF 2021: Bird call identification in soundscape recordings",
            "Kahl, Stefan and Denton, Tom and Klinck, Holger and Glotin, Hervé and Goëau, Hervé and Vellinga, "
            "Willem-Pier and Planqué, Robert and Joly, Alexis",
            2021,
            paper="paper-123",
        ),
    ),
    ReleaseRecord(
        name="birdclef-2022",
        about="BirdCLEF 2022: focal recordings, soundscapes where there are annotated ones",
        open=partial(open_birdclef_kaggle, year=2022),
        homepage="https://www.imageclef.org/LifeCLEF2022",
        citation=LIFECLEF_2022,
    ),
    ReleaseRecord(
        name="birdclef-2023",
        about="BirdCLEF 2023: focal recordings, soundscapes where there are annotated ones",
        open=partial(open_birdclef_kaggle, year=2023),
        check=ReleaseCheck(published={"train": {COMPETITION_PAGE: Count(classes=264)}}),
        homepage="https://www.imageclef.org/BirdCLEF2023",
        citation=working_note(
            "kahl2023birdclef",
            "Overview of BirdCLEF 2023: Automated Bird Species Identification in Eastern Africa",
            "Kahl, Stefan and others",
            2023,
        ),
    ),
    ReleaseRecord(
        name="birdclef-2024",
        about="BirdCLEF 2024: focal recordings, soundscapes where there are annotated ones",
        open=partial(open_birdclef_kaggle, year=2024),
        check=ReleaseCheck(published={"train": {COMPETITION_PAGE: Count(classes=182)}}),
        citation=working_note(
            "kahl2024birdclef",
            "Overview of BirdCLEF 2024: Acoustic Identification of Under-studied Bird Species in the Western Ghats",
            "Kahl, Stefan and Denton, Tom and Klinck, Holger and Ramesh, Vijay and Joshi, Viral and Srivathsa, "
            "Meghana and Anand, Akshay and Arvind, Chiti and CP, Harikrishnan and Sawant, Suyash and V V, Robin and "
            "Glotin, Hervé and Goëau, Hervé and Vellinga, Willem-Pier and Planqué, Robert and Joly, Alexis",
            2024,
            paper="paper-184",
        ),
    ),
    ReleaseRecord(
        name="birdclef-2025",
        about="BirdCLEF 2025: focal recordings, soundscapes where there are annotated ones",
        open=partial(open_birdclef_kaggle, year=2025),
        check=ReleaseCheck(published={"train": {COMPETITION_PAGE: Count(classes=206)}}),
        citation=working_note(
            "canas2025birdclef",
            "Overview of BirdCLEF+ 2025: Multi-Taxonomic Sound Identification in the Middle Magdalena, Colombia",
            "Cañas, Juan Sebastián and Kahl, Stefan and Denton, Tom and others",
            2025,
            paper="paper_232",
        ),
    ),
    ReleaseRecord(
        name="birdclef-2026",
        about="BirdCLEF 2026: focal recordings, soundscapes where there are annotated ones",
        open=partial(open_birdclef_kaggle, year=2026),
        check=ReleaseCheck(published={"train": {COMPETITION_PAGE: Count(classes=206)}}),
    ),
)
