"""Detections and annotations under one set of names and recordings, and what was listened to.

Names of both tables are joined through the concept layer (`tables.name_concepts`); recordings by as many of the last
parts of their paths as tell them apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from fieldmark.audio.samples import Recording, SoundError
from fieldmark.errors import InputError, MisuseError
from fieldmark.scoring.sound_matching import LISTENED
from fieldmark.storage.files import open_input
from fieldmark.tables.media import RECORDING
from fieldmark.tables.name_concepts import NameConcepts, NameMatch, load_concepts
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import parse_column
from fieldmark.tables.sound_tables import SoundTable, read_sounds, recording_name

# How recorders name files: SITE_20240501_053000.
DATED: Final = re.compile(r"^(?:(?P<site>.+?)[_-])?(?P<date>(?:19|20)\d{6})[_T-]?\d{4,6}")
WHOLE: Final = "recordings"
ASK: Final = (
    "Say what was listened to: --listened recordings where every recording of the annotations was heard from "
    "beginning to end, or --listened TABLE with recording[,start_s,end_s]. Windows that nobody heard are not silence."
)


@dataclass(frozen=True)
class Compared:
    """Both tables with one set of names and recordings, and what was listened to.

    Args:
        detections, annotations: `recording`, `start_s`, `end_s`, `label`, `score`.
        listened: The spans (`scoring.sound_matching.LISTENED`).
        species: What was listened for.
        names: How names of annotations were found.
        common: The common name of each species, where a table tells one.
        remarks: What a person should know.
    """

    detections: pl.DataFrame
    annotations: pl.DataFrame
    listened: pl.DataFrame
    species: tuple[str, ...]
    names: tuple[NameMatch, ...]
    common: Mapping[str, str]
    remarks: tuple[str, ...]


def compare_tables(
    found: Path,
    against: Path,
    listened: str | Path | None,
    recordings: str | Path | None,
    *,
    label: str | None = None,
    complete: bool = False,
    names: Sequence[Path] = (),
) -> Compared:
    """Reads both tables and brings recordings and names of both together."""
    said, true = read_sounds(found), read_sounds(against)
    if said.rows["score"].is_null().any():
        raise InputError(found, found="detections without a score", expected="a score for each")
    if listened is None:
        raise MisuseError(ASK)
    parts = _parts_that_tell(said, true)
    rows, noted = (table.rows.with_columns(recording=_named(table.rows["file"], parts)) for table in (said, true))
    if label is not None:
        noted = noted.with_columns(pl.col("label").fill_null(label))
    elif noted["label"].is_null().all() and len(noted):
        hint = "Say of which species they are: --label NAME."
        raise InputError(against, found="annotations without any name", expected="a label for each", hint=hint)
    noted, rows, how = _joined(noted, rows, load_concepts(names))
    about = tuple(dict.fromkeys(recording_name(file, parts) for file in (*true.files, *noted["file"])))
    spans = _spans(listened, recordings, about, noted, rows, parts)
    remarks = _strangers(said, true, parts)
    detected, annotated = set(rows["label"].drop_nulls()), set(noted["label"].drop_nulls())
    species = sorted(annotated | detected) if complete else sorted(annotated)
    if not complete and detected - annotated:
        left = rows.filter(~pl.col("label").is_in(list(annotated)))
        remarks.append(
            f"{len(left):,} detections of {len(detected - annotated):,} species that no annotation names are not "
            "scored; with --complete (annotators noted every species they heard) they are wrong."
        )
    if not species:
        raise InputError(against, found="no annotation with a name", expected="at least one")
    common = dict(rows.drop_nulls("common_name").select("label", "common_name").unique("label").iter_rows())
    keys = ["recording", "start_s", "end_s", "label"]
    return Compared(rows.select(*keys, "score"), noted.select(keys), spans, tuple(species), how, common, tuple(remarks))


def _parts_that_tell(said: SoundTable, true: SoundTable) -> int:
    """How many of the last parts of a path tell recordings apart: 1 where their names do.

    Raises:
        InputError: When recordings of one name lie in several folders, and the annotations do not say which is meant.
    """
    for parts in (1, 2, 3):
        clear = True
        for table in (said, true):
            stems = {file.replace("\\", "/").rpartition(".")[0] or file for file in table.files}
            clear = clear and len({recording_name(file, parts) for file in table.files}) == len(stems)
        if clear and (parts == 1 or _shared(said, true, parts)):
            return parts
    twice = sorted(name for name, number in Counter(recording_name(file) for file in said.files).items() if number > 1)
    if twice and _shared(said, true, 1):
        raise InputError(
            twice[0],
            found="a recording of this name in several folders",
            expected="annotations that say which of them they are about",
            hint="Keep annotations in folders of the same names, or write folder/recording into the column file.",
        )
    return 1


def _shared(said: SoundTable, true: SoundTable, parts: int) -> set[str]:
    """The recordings that both tables are about."""
    one, two = ({recording_name(file, parts) for file in table.files} for table in (said, true))
    return one & two


def _strangers(said: SoundTable, true: SoundTable, parts: int) -> list[str]:
    """Says so where no detection is of an annotated recording, which may be a matter of names."""
    if not (said.files and true.files) or _shared(said, true, parts):
        return []
    one, two = (recording_name(table.files[0], parts) for table in (said, true))
    return [f"No detection is of an annotated recording. Do their names differ? Detections: {one}; annotations: {two}."]


def _named(files: pl.Series, parts: int) -> pl.Series:
    names = {file: recording_name(file, parts) for file in files.unique()}
    return files.replace_strict(list(names), list(names.values()), return_dtype=pl.String) if names else files


def _joined(
    noted: pl.DataFrame, rows: pl.DataFrame, concepts: NameConcepts
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[NameMatch, ...]]:
    """Both tables under scientific names, as far as these are known, and how each name of an annotation was found.

    What the detector calls a species (its label, code or common name in one row) is one taxon; what no source of names
    knows keeps the label of the detector.
    """
    named: dict[str, str] = {}
    own: dict[str, str] = {}
    for label, common, code in rows.select("label", "common_name", "code").unique(maintain_order=True).iter_rows():
        if label is None:
            continue
        found = [concepts.find(one).concept for one in (label, common, code) if one]
        named[label] = next((one.scientific for one in found if one is not None), label)
        own |= {name: named[label] for name in (code, common, label) if name}
    how, renamed = [], {}
    for name in noted["label"].drop_nulls().unique(maintain_order=True):
        match = concepts.find(name)
        if name in own:
            renamed[name] = own[name]
            match = match._replace(how="exact" if own[name] == name or name in named else "concept", note="")
        elif match.concept is not None:
            renamed[name] = match.concept.scientific
        how.append(match)
    detected = rows.with_columns(pl.col("label").replace(named))
    return noted.with_columns(pl.col("label").replace(renamed)), detected, tuple(how)


def _spans(
    listened: str | Path,
    recordings: str | Path | None,
    about: Sequence[str],
    noted: pl.DataFrame,
    rows: pl.DataFrame,
    parts: int,
) -> pl.DataFrame:
    """What was listened to, with site and date of each recording."""
    facts = _facts(recordings, parts)
    if str(listened) == WHOLE:
        spans = pl.DataFrame({"recording": list(about)}, schema={"recording": pl.String})
    else:
        path = Path(listened)
        with open_input(path, "a table recording[,start_s,end_s]") as file:
            spans = read_csv(file, path, required=("recording",))
        for name in ("start_s", "end_s"):
            spans = parse_column(spans, name, float, path)
        spans = spans.with_columns(recording=_named(spans["recording"], parts))
    for name, kind in LISTENED.items():
        if name not in spans.columns:
            spans = spans.with_columns(pl.lit(None, kind).alias(name))
    last = pl.concat([noted.select("recording", "end_s"), rows.select("recording", "end_s")])
    last = last.group_by("recording").agg(last_s=pl.col("end_s").max())
    spans = spans.join(facts, on="recording", how="left", maintain_order="left", suffix="_known")
    spans = spans.join(last, on="recording", how="left", maintain_order="left")
    dated = spans["recording"].map_elements(_dated, return_dtype=pl.List(pl.String))
    return spans.select(
        "recording",
        pl.col("start_s").fill_null(0.0),
        pl.coalesce("end_s", "seconds", "last_s", pl.lit(0.0)).alias("end_s"),
        pl.coalesce("site", "site_known", dated.list.get(0)).alias("site"),
        pl.coalesce("date", "date_known", dated.list.get(1)).alias("date"),
    ).filter(pl.col("end_s") >= pl.col("start_s"))


def _dated(name: str) -> list[str | None]:
    """Site and date of a recording by its name.

    >>> _dated("SNE_20180509_050002"), _dated("XC1234")
    (['SNE', '2018-05-09'], [None, None])
    """
    match = DATED.match(name.rpartition("/")[2])
    if match is None:
        return [None, None]
    site, date = match["site"] or (name.rpartition("/")[0] or None), match["date"]
    return [site, f"{date[:4]}-{date[4:6]}-{date[6:]}"]


def _facts(recordings: str | Path | None, parts: int) -> pl.DataFrame:
    """Length, site and date of recordings, by a table or by the files themselves."""
    columns = {"recording": pl.String, "seconds": pl.Float64, "site": pl.String, "date": pl.String}
    if recordings is None:
        return pl.DataFrame(schema=columns)
    path = Path(recordings)
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if RECORDING.owns(one))
        rows = [(recording_name(str(file), parts), _seconds(file), None, None) for file in files]
        return pl.DataFrame(rows, schema=columns, orient="row").unique("recording", maintain_order=True)
    with open_input(path, "a table recording[,seconds,site,date]") as file:
        table = parse_column(read_csv(file, path, required=("recording",)), "seconds", float, path)
    for name in ("site", "date"):
        if name not in table.columns:
            table = table.with_columns(pl.lit(None, pl.String).alias(name))
    table = table.with_columns(recording=_named(table["recording"], parts))
    return table.select(list(columns)).unique("recording", maintain_order=True)


def _seconds(file: Path) -> float:
    try:
        with Recording(file) as recording:
            return float(recording.seconds)
    except SoundError as error:
        raise InputError(file, found=str(error), expected="a recording") from error
