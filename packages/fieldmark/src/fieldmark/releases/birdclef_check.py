"""A check of a BirdCLEF 2020 release: counts beside the published ones, and what is missing, broken or leaking."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

import polars as pl

from fieldmark.errors import InputError
from fieldmark.releases.birdclef import (
    METADATA,
    Names,
    RecordingFile,
    annotation_files,
    focal_recordings,
    json_files,
    listed_names,
    part_folders,
    scape_id,
    scape_site,
    soundscapes,
)
from fieldmark.releases.checks import CheckRun, Count, PartCount, Problems
from fieldmark.releases.identical import identical_files
from fieldmark.releases.recording_checks import check_recordings
from fieldmark.storage.release import Release
from fieldmark.tables.annotations import read_events
from fieldmark.tables.row_problems import Severity

SEED = "LifeCLEF 2020, section 3"
AT_LEAST = f"{SEED}: more than"
PUBLISHED = {
    "train": {
        AT_LEAST: Count(recordings=70_000, classes=960),
        "MetaAudio, README": Count(recordings=72_305, classes=960),
    },
    "val": {SEED: Count(hours=2.0)},
    "test": {SEED: Count(recordings=153, hours=25.5, sites=4)},
}
SOUNDSCAPE_S, SOUNDSCAPE_HZ = 600.0, 32_000


def check_birdclef(check: CheckRun) -> list[PartCount]:
    """Checks a release.

    Recordings with the same bytes are sought among all of train with `near_duplicates`; without it, soundscapes alone
    are looked for there.
    """
    release, problems = check.release, check.problems
    for part in ("train", "val", "test"):
        if not part_folders(release, part):
            problems.add("warning", "a part is missing", [part])
    broken: list[InputError] = []
    names = Names(dict(listed_names(release)))
    focal, scapes = focal_recordings(release), soundscapes(release, broken)
    problems.at("error", "a soundscape cannot be read", [f"{error.where}: {error.found}" for error in broken])
    counts = [PartCount("train", _count_focal(focal, names), PUBLISHED["train"])]
    for part in ("val", "test"):
        here = [recording for recording in scapes if recording.part == part]
        heard = _check_events(release, part, here, focal, names, problems)
        counts.append(PartCount(part, _count_scapes(here, heard), PUBLISHED[part]))
    _check_metadata(release, focal, problems)
    _check_species(focal, problems)
    if check.real:
        _check_make(scapes, problems)
    _check_leaks(release, focal, scapes, problems, all_of_train=check.near_duplicates)
    if check.media:
        check_recordings(release, [recording.path for recording in (*focal, *scapes)], problems)
    return counts


def _count_focal(focal: Sequence[RecordingFile], names: Names) -> Count:
    return Count(recordings=len(focal), classes=len({names.code(recording.folder or "") for recording in focal}))


def _count_scapes(scapes: Sequence[RecordingFile], heard: set[str] | None) -> Count:
    seconds = sum(recording.header.seconds for recording in scapes if recording.header)
    sites = {scape_site(recording) for recording in scapes} - {None}
    return Count(
        recordings=len(scapes),
        classes=None if heard is None else len(heard),
        hours=round(seconds / 3600, 2),
        sites=len(sites),
    )


def _check_events(
    release: Release,
    part: str,
    scapes: Sequence[RecordingFile],
    focal: Sequence[RecordingFile],
    names: Names,
    problems: Problems,
) -> set[str] | None:
    """Checks the events of a part, and returns the classes that are heard; None where that is not known."""
    files = annotation_files(release, part)
    if not files:
        if scapes and part == "val":
            problems.add("error", "the validation soundscapes have no annotations", part_folders(release, part))
        elif scapes:
            problems.add("note", "the labels of a part are hidden", [part])
        return None
    seconds = {
        name: recording.header.seconds
        for recording in scapes
        for name in (PurePosixPath(recording.path).name, recording.stem, scape_id(recording))
        if recording.header
    }
    taught = {names.code(recording.folder or "") for recording in focal}
    heard: set[str] = set()
    for path in files:
        try:
            events = read_events(release.read(path), release.where(path)).with_row_index("row", offset=1)
        except InputError as error:
            line = f", line {error.line}" if error.line else ""
            problems.add("error", "a table of events cannot be read", [f"{path}{line}: {error.found}"])
            continue
        length = pl.col("name").replace_strict(seconds, default=None, return_dtype=pl.Float64)
        for what, wrong in (
            ("an event is of a recording that is not here", length.is_null()),
            ("an event begins after the end of its recording", pl.col("start_s") >= length),
        ):
            _note(problems, "error", what, path, events.filter(wrong))
        _note(
            problems,
            "note",
            "an event is of a bird without a name (????)",
            path,
            events.filter(pl.col("label").is_null()),
        )
        labeled = events.drop_nulls("label")
        untaught = labeled.filter(~pl.col("label").is_in(list(taught)))
        _note(problems, "warning", "a class is heard that train does not have", path, untaught.unique("label"))
        heard |= set(labeled["label"])
    return heard


def _note(problems: Problems, severity: Severity, what: str, path: str, events: pl.DataFrame) -> None:
    if len(events):
        rows = events.sort("row").select("row", "name", "start_s", "label").iter_rows()
        places = [
            f"{path}, event {row}: {label or '????'} at {start:g} s of {name}" for row, name, start, label in rows
        ]
        problems.add(severity, what, places)


def _check_metadata(release: Release, focal: Sequence[RecordingFile], problems: Problems) -> None:
    """Focal recordings without metadata, and metadata without a recording."""
    bare = [
        recording.path for recording in focal if recording.about["species"] is None and recording.about["date"] is None
    ]
    problems.at("note", "a recording has no metadata", bare)
    stems = {recording.stem for recording in focal}
    for top in part_folders(release, "train"):
        if METADATA in release.folders(top):
            listed = json_files(release, f"{top}/{METADATA}")
            lost = sorted({path for stem, path in listed.items() if "/" not in stem and stem not in stems})
            problems.at("warning", "metadata without a recording", lost)


def _check_species(focal: Sequence[RecordingFile], problems: Problems) -> None:
    """A species folder holds one species; subspecies and synonyms make it two now and then."""
    species: dict[str, dict[str, str]] = {}
    for recording in focal:
        if recording.about["species"]:
            species.setdefault(recording.folder or "", {}).setdefault(recording.about["species"], recording.path)
    mixed = [f"{folder}: {', '.join(sorted(seen))}" for folder, seen in sorted(species.items()) if len(seen) > 1]
    problems.at("warning", "a species folder holds recordings of several species", mixed)


def _check_make(scapes: Sequence[RecordingFile], problems: Problems) -> None:
    """Soundscapes are ten minutes long, at 32 kHz, in one channel."""
    for recording in scapes:
        header = recording.header
        if header is None:
            continue
        if abs(header.seconds - SOUNDSCAPE_S) > 1:
            place = f"{recording.path}: {header.seconds:.1f} s"
            problems.add("warning", "a soundscape is not ten minutes long", [place])
        if header.sample_rate_hz != SOUNDSCAPE_HZ or header.channels != 1:
            place = f"{recording.path}: {header.sample_rate_hz:,} Hz, {header.channels} channel(s)"
            problems.add("note", "a soundscape is not sampled at 32 kHz in mono", [place])


def _check_leaks(
    release: Release,
    focal: Sequence[RecordingFile],
    scapes: Sequence[RecordingFile],
    problems: Problems,
    *,
    all_of_train: bool,
) -> None:
    """Recordings with the same bytes in two places."""
    recording = {one.path: one for one in (*scapes, *focal)}
    for group in identical_files(release, recording):
        same = [recording[path] for path in group]
        places = [" and ".join(group)]
        if len({one.part for one in same}) > 1:
            problems.add("error", "the same recording is in two parts", places)
        elif all_of_train and len({one.folder for one in same}) > 1:
            problems.add("warning", "the same recording is in two species folders", places)
