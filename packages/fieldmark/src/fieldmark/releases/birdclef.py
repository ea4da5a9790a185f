"""BirdCLEF 2020 as it is released: focal recordings to learn from, soundscapes to listen to.

```
ROOT/
  train/audio/<species>/XC1234.mp3       one folder per species; `audio/` may be left out
  train/metadata/<species>/XC1234.json   or beside the recording; optional
  train/species_names_to_codes.txt       name,code (also at the root, or in a folder of its own); optional
  val/PER54_20190116.wav                 <MediaId>_<date>; also one folder down
  val/PER54_20190116.json                or in metadata/; optional
  val/ground_truth.csv                   MediaId;ClassId;hh:mm:ss-hh:mm:ss, or any other table of `annotations`; where
                                         there is none, scripts/perfect_run.csv, which says the same
  test/...                               as val; without a table where the labels are hidden
```

Quirks:

- The parts are the folders whose names hold "train", "val" and "test" ("BirdCLEF2020_Train_Additional_Data" may
  well lie beside "BirdCLEF2020_Train"): the archives have been unpacked under many names.
- Classes are eBird codes. Species folders are called by the code, or by a name that `species_names_to_codes.txt` knows.
- The keys of the JSON files differ from year to year; see `birdclef_metadata`.
- A table may call a recording by its MediaId, by its file name or by its stem. The site is what a MediaId begins with.
- Birds that nobody could name (`????`) stand in the events without a label and count as silence.
- Two hours of soundscapes with labels are given for validation and **may not be trained on**. A training recording that
  bears the name of a soundscape is refused.
- The label set is every class of every part, so that a class that cannot be learned still counts.

Only the soundscapes' headers are read; 70,000 focal recordings stay closed until somebody listens to them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.birdclef_metadata import KEYS, NUMBERS, read_metadata
from fieldmark.releases.citations import working_note
from fieldmark.releases.record import PublishedSize, ReleaseRecord, World
from fieldmark.releases.soundfiles import SoundHeader, read_header
from fieldmark.storage.release import Release
from fieldmark.tables.annotations import EVENT_COLUMNS, read_events
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.media import RECORDING
from fieldmark.work.progress import progress

CODES_FILE = "species_names_to_codes.txt"
AUDIO, METADATA = "audio", "metadata"
DATED = re.compile(r"^(.+?)_([0-9]{4})([0-9]{2})([0-9]{2})$")
SITE = re.compile(r"^[A-Z]{3}")
# Reading so many folders takes seconds.
WORTH_WATCHING = 100
TABLE_SUFFIXES = (".csv", ".txt", ".tsv")
# Files that lie beside the soundscapes and are no annotations.
NO_ANNOTATIONS = ("readme", "license", "location", "requirements", CODES_FILE)
SCRIPTS, PERFECT_RUN = "scripts", "perfect_run"
NO_SPECIES = (METADATA, SCRIPTS)

# What is known about a recording besides when, where and what.
CONTEXT = ("time", "site", "country", "locality", "elevation_m", "recordist", "quality", "vocalization")


@dataclass(frozen=True)
class RecordingFile:
    """One sound file of the release: where it lies, and what its JSON says."""

    path: str
    part: str
    folder: str | None
    about: Mapping[str, Any]
    header: SoundHeader | None = None

    @property
    def stem(self) -> str:
        return PurePosixPath(self.path).stem


@dataclass(frozen=True)
class Names:
    """How names of species, in folders and lists, become class ids."""

    code_of: Mapping[str, str] = field(default_factory=dict)

    def code(self, name: str) -> str:
        """The class id behind a name; a name that is not listed is one itself."""
        return self.code_of.get(_plain(name), name)


def open_birdclef(release: Release, subset: str = "all") -> Dataset:
    """Opens BirdCLEF 2020; there are no subsets.

    Raises:
        InputError: When there are no focal recordings, a file is not what it should be, or a soundscape stands among
            the training recordings.
    """
    if subset != "all":
        raise MisuseError(f"BirdCLEF 2020 has no subset called {subset!r}.")
    names = Names(dict(listed_names(release)))
    focal = focal_recordings(release)
    if not focal:
        expected = "recordings in train/audio/<species>/"
        raise InputError(release.root, found="no focal recordings", expected=expected)
    scapes = soundscapes(release)
    _refuse_trained_soundscapes(release, focal, scapes)
    ids = [*_unique_ids([recording.stem for recording in focal], focal), *(scape_id(recording) for recording in scapes)]
    everything = [*focal, *scapes]
    events, annotated, stray = _events(release, scapes)
    taxa, name_of = _taxa(focal, names, events)
    media = pl.DataFrame(
        {
            "media_id": ids,
            "observation_id": ids,
            "path": [recording.path for recording in everything],
            "parts": [[recording.part] for recording in everything],
            "seconds": pl.Series(
                [recording.header.seconds if recording.header else None for recording in everything], dtype=pl.Float64
            ),
            "annotated": [recording.folder is not None or recording.path in annotated for recording in everything],
        }
    )
    return Dataset(
        name="birdclef-2020",
        release=release,
        taxa=taxa,
        observations=_observations(ids, everything, names, name_of),
        media=media,
        remarks=_remarks(focal, events, stray),
        medium=RECORDING,
        events=events,
    )


def part_folders(release: Release, part: str) -> list[str]:
    """The folders of a part: those whose names hold it."""
    return [name for name in release.folders() if part in name.lower()]


def focal_recordings(release: Release) -> list[RecordingFile]:
    """Every recording of every species folder, with what its JSON says."""
    recordings: list[RecordingFile] = []
    for top in part_folders(release, "train"):
        inside = release.folders(top)
        base = f"{top}/{AUDIO}" if AUDIO in inside else top
        species = [name for name in release.folders(base) if name not in NO_SPECIES]
        shared = json_files(release, f"{top}/{METADATA}") if METADATA in inside else {}
        with progress("reading metadata", len(species) if len(species) >= WORTH_WATCHING else 0) as tick:
            for name in species:
                recordings += _species_folder(release, base, name, shared)
                tick(1)
    return recordings


def _species_folder(release: Release, base: str, name: str, shared: Mapping[str, str]) -> Iterator[RecordingFile]:
    files = release.files(f"{base}/{name}")
    beside = {PurePosixPath(file).stem: f"{base}/{name}/{file}" for file in files if file.endswith(".json")}
    sounds = [file for file in files if RECORDING.owns(file)]
    stems = [PurePosixPath(file).stem for file in sounds]
    json_paths = [beside.get(stem) or shared.get(f"{name}/{stem}") or shared.get(stem) for stem in stems]
    for file, about in zip(sounds, _about_each(release, json_paths), strict=True):
        yield RecordingFile(f"{base}/{name}/{file}", "train", name, about)


def soundscapes(release: Release, broken: list[InputError] | None = None) -> list[RecordingFile]:
    """The soundscapes of val and test, with their headers.

    Args:
        release: The root.
        broken: Where given, what cannot be read is noted here and passed over.
    """
    recordings: list[RecordingFile] = []
    for part in ("val", "test"):
        for top in part_folders(release, part):
            shared = json_files(release, top)
            paths = [path for path in files_below(release, top) if RECORDING.owns(path)]
            for path, file in zip(paths, release.open_many(paths), strict=True):
                try:
                    about = next(_about_each(release, [shared.get(PurePosixPath(path).stem)]))
                    with file:
                        header = read_header(file, release.where(path))
                    recordings.append(RecordingFile(path, part, None, about, header))
                except InputError as error:
                    if broken is None:
                        raise
                    broken.append(error)
    return recordings


def files_below(release: Release, top: str) -> list[str]:
    """The files of a folder and of the folders in it."""
    inside = [f"{top}/{folder}" for folder in release.folders(top) if folder != SCRIPTS]
    return [f"{folder}/{name}" for folder in (top, *inside) for name in release.files(folder)]


def json_files(release: Release, top: str) -> dict[str, str]:
    """JSON files in a folder and one folder down, by stem and by `folder/stem`."""
    path_of: dict[str, str] = {}
    for path in files_below(release, top):
        if path.endswith(".json"):
            place = PurePosixPath(path)
            path_of[place.stem] = path_of[f"{place.parent.name}/{place.stem}"] = path
    return path_of


def _about_each(release: Release, json_paths: Sequence[str | None]) -> Iterator[Mapping[str, Any]]:
    """What the JSON of each recording says; nothing for one without."""
    files = release.read_many(path for path in json_paths if path is not None)
    for path in json_paths:
        if path is None:
            yield dict.fromkeys(KEYS) | {"background": []}
        else:
            yield read_metadata(next(files), release.where(path))


def scape_id(recording: RecordingFile) -> str:
    """The MediaId of a soundscape: from its JSON, or from its file name, without the date.

    >>> scape_id(RecordingFile("val/PER54_20190116.wav", "val", None, {"media_id": None}))
    'PER54'
    """
    dated = DATED.match(recording.stem)
    return recording.about["media_id"] or (dated.group(1) if dated else recording.stem)


def _unique_ids(stems: Sequence[str], recordings: Sequence[RecordingFile]) -> list[str]:
    """File names without their endings; where two are the same, digits that stand for the folder are put in front."""
    twice = {
        stem for stem, shared in zip(stems, pl.Series(stems, dtype=pl.String).is_duplicated(), strict=True) if shared
    }
    return [
        f"{hashlib.blake2b(one.path.encode(), digest_size=4).hexdigest()}-{stem}" if stem in twice else stem
        for stem, one in zip(stems, recordings, strict=True)
    ]


def _refuse_trained_soundscapes(
    release: Release, focal: Sequence[RecordingFile], scapes: Sequence[RecordingFile]
) -> None:
    """Soundscapes may not be trained on, val no more than test."""
    reserved = {name: recording for recording in scapes for name in (recording.stem, scape_id(recording))}
    for one in focal:
        if one.stem in reserved:
            other = reserved[one.stem]
            raise InputError(
                release.where(one.path),
                found=f"the soundscape {other.path} among the training recordings",
                expected="focal recordings only",
                hint="Soundscapes of val and test may not be trained on: remove it from train.",
            )


def listed_names(release: Release) -> Iterator[tuple[str, str]]:
    """Names of species and their codes, as far as a list of them lies somewhere near the top."""
    for folder in ("", *release.folders()):
        path = f"{folder}/{CODES_FILE}".lstrip("/")
        if not release.exists(path):
            continue
        for number, line in enumerate(release.read(path).decode("utf-8-sig").splitlines(), 1):
            name, comma, code = line.rpartition(",")
            if not comma and line.strip():
                raise InputError(release.where(path), line=number, found=repr(line), expected="name,code")
            for part in name.split("_") if "_" in name else [name]:
                yield _plain(part), code.strip()


def _plain(name: str) -> str:
    return name.replace("_", " ").strip().lower()


def annotation_files(release: Release, part: str) -> list[str]:
    """The tables of events of a part; where there are none, the organizers' perfect run, which says the same."""
    tables: list[str] = []
    for top in part_folders(release, part):
        beside = [f"{top}/{SCRIPTS}/{name}" for name in release.files(f"{top}/{SCRIPTS}")]
        tables += [
            path
            for path in (*files_below(release, top), *beside)
            if path.lower().endswith(TABLE_SUFFIXES)
            and not any(word in PurePosixPath(path).name.lower() for word in NO_ANNOTATIONS)
        ]
    perfect = [path for path in tables if PERFECT_RUN in PurePosixPath(path).name.lower()]
    return [path for path in tables if path not in perfect] or perfect


def _events(release: Release, scapes: Sequence[RecordingFile]) -> tuple[pl.DataFrame, set[str], int]:
    """The events of all soundscapes, the soundscapes that were annotated, and how many events have no recording."""
    tables, annotated, stray = [pl.DataFrame(schema=EVENT_COLUMNS)], set(), 0
    for part in ("val", "test"):
        here = [recording for recording in scapes if recording.part == part]
        id_of = {
            name: scape_id(recording)
            for recording in here
            for name in (PurePosixPath(recording.path).name, recording.stem, scape_id(recording))
        }
        for path in annotation_files(release, part):
            events = read_events(release.read(path), release.where(path))
            media_id = events["name"].replace_strict(id_of, default=None, return_dtype=pl.String)
            stray += media_id.null_count()
            tables.append(events.with_columns(name=media_id).drop_nulls("name"))
            annotated |= {recording.path for recording in here}
    events = pl.concat(tables).rename({"name": "media_id"})
    return _within(release, events, scapes), annotated, stray


def _within(release: Release, events: pl.DataFrame, scapes: Sequence[RecordingFile]) -> pl.DataFrame:
    """Events cut off at the end of their recording, to which people round up."""
    seconds = {scape_id(recording): recording.header.seconds for recording in scapes if recording.header}
    length = pl.col("media_id").replace_strict(seconds, default=None, return_dtype=pl.Float64)
    late = events.filter(pl.col("start_s") >= length)
    if len(late):
        name, start = late["media_id"][0], late["start_s"][0]
        found = f"an event at {start:g} s of {name!r}, which lasts {seconds[name]:g} s"
        hint = f"{len(late) - 1} more such events." if len(late) > 1 else None
        raise InputError(release.root, found=found, expected="events within their recordings", hint=hint)
    return events.with_columns(end_s=pl.min_horizontal("end_s", length))


def _taxa(focal: Sequence[RecordingFile], names: Names, events: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, str]]:
    """One row per class, and the class behind each scientific name."""
    rows: dict[str, dict[str, str | None]] = {}
    for one in focal:
        row = rows.setdefault(names.code(one.folder or ""), dict.fromkeys(("genus", "species", "common_name")))
        for key in row:
            row[key] = row[key] or one.about[key]
    for label in events["label"].drop_nulls():
        rows.setdefault(label, dict.fromkeys(("genus", "species", "common_name")))
    taxa = pl.DataFrame(
        [{"label": label, **row} for label, row in sorted(rows.items())],
        schema=dict.fromkeys(("label", "genus", "species", "common_name"), pl.String),
    ).with_columns(poisonous=pl.lit(None, pl.Boolean))
    name_of = {str(row["species"]): label for label, row in rows.items() if row["species"]}
    return taxa, {_plain(name): label for name, label in name_of.items()}


def _observations(
    ids: Sequence[str], recordings: Sequence[RecordingFile], names: Names, name_of: Mapping[str, str]
) -> pl.DataFrame:
    """One row per recording, which is an observation of its own."""

    def behind(one: RecordingFile) -> list[str]:
        listed = [name_of.get(_plain(name)) or names.code_of.get(_plain(name)) for name in one.about["background"]]
        return [code for code in listed if code is not None]

    columns: dict[str, Any] = {
        "observation_id": ids,
        "label": [names.code(one.folder) if one.folder else None for one in recordings],
        "date": pl.Series([_date(one) for one in recordings], dtype=pl.Date),
        **{name: pl.Series([one.about[name] for one in recordings], dtype=pl.Float64) for name in ("lat", "lon")},
    }
    for name in CONTEXT:
        values = [scape_site(one) if name == "site" else one.about[name] for one in recordings]
        columns[name] = pl.Series(values, dtype=pl.Float64 if name in NUMBERS else pl.String)
    columns["background"] = pl.Series([behind(one) for one in recordings], dtype=pl.List(pl.String))
    return pl.DataFrame(columns)


def _date(one: RecordingFile) -> Any:
    dated = re.search(r"_([0-9]{4})([0-9]{2})([0-9]{2})", one.stem)
    if one.about["date"] is not None or dated is None:
        return one.about["date"]
    return read_metadata(f'{{"date": "{"-".join(dated.groups())}"}}'.encode(), one.path)["date"]


def scape_site(one: RecordingFile) -> str | None:
    """The site of a soundscape; focal recordings come from everywhere."""
    if one.folder is not None:
        return None
    match = SITE.match(scape_id(one))
    return match.group() if match else one.about["site"] or one.about["locality"] or one.about["country"]


def _remarks(focal: Sequence[RecordingFile], events: pl.DataFrame, stray: int) -> tuple[str, ...]:
    remarks = []
    unnamed = events["label"].null_count()
    if unnamed:
        remarks.append(f"{unnamed} event(s) are of birds without a name (????); they count as silence.")
    if stray:
        remarks.append(f"{stray} event(s) are of recordings that are not here; they are skipped.")
    bare = sum(one.about["species"] is None and one.about["date"] is None for one in focal)
    if bare:
        remarks.append(f"{bare} focal recording(s) have no metadata.")
    return tuple(remarks)


RECORDS = (
    ReleaseRecord(
        name="birdclef-2020",
        about="BirdCLEF 2020: focal recordings, soundscapes",
        open=open_birdclef,
        check="fieldmark.releases.birdclef_check:check_birdclef",
        download="fieldmark.releases.download.manifests.lifeclef_2020:BIRDCLEF_2020",
        world=World(
            "fieldmark_worlds.layouts.birdclef:write",
            "invented birds as BirdCLEF 2020 is released: focal recordings, and soundscapes of four sites",
        ),
        terms="recordings to learn from are from Xeno-canto, each under its own Creative Commons license",
        homepage="https://www.lifeclef.org/",
        size=PublishedSize(recordings=70_000, rounded=True),
        citation=working_note(
            "kahl2020birdclef",
            "Overview of BirdCLEF 2020: Bird Sound Recognition in Complex Acoustic Environments",
            "Kahl, Stefan and Clapp, Mary and Hopping, W. Alexander and Goëau, Hervé and Glotin, Hervé and Planqué, "
            "Robert and Vellinga, Willem-Pier and Joly, Alexis",
            2020,
            paper="paper_262",
        ),
    ),
)
