"""Many observations to be named: a folder of photos or recordings, or a table of observations.

A folder: every photo (or recording) in it, to any depth, is an observation of its own. A table (CSV):

```
file                  the photo or recording, below the folder of the table; rows of one observation belong together
observation           optional: which observation it belongs to
date, time            optional: 2021-09-30, 06:15:00
latitude, longitude   optional: degrees; lat, lon and the terms of Darwin Core are understood as well
site, country, habitat, substrate   optional
```
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from fieldmark.errors import InputError
from fieldmark.identification.exif import taken
from fieldmark.storage.files import check_name, open_input
from fieldmark.tables.media import MEDIA, PHOTO, Medium, medium_of
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import parse_column

# Other names of columns, in small letters.
CALLED: Final = {
    **{
        "observation_id": "observation",
        "occurrenceid": "observation",
        "photo": "file",
        "image": "file",
        "path": "file",
    },
    **{"latitude": "lat", "decimallatitude": "lat", "longitude": "lon", "decimallongitude": "lon"},
    **{"eventdate": "date", "eventtime": "time", "deployment": "site", "deploymentid": "site", "locationid": "site"},
}
TEXTS: Final = ("time", "site", "country", "habitat", "substrate")
TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?")


@dataclass(frozen=True)
class Asked:
    """One observation to be named.

    Args:
        observation_id: What it is called.
        files: Its photos or its recording, below the root where they lie below it.
        known: What else is known: date, time, lat, lon, site, country, habitat, substrate.
    """

    observation_id: str
    files: tuple[str, ...]
    known: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AskedMany:
    """Observations to be named.

    Args:
        root: Where their files lie.
        observations: The observations, in the order of the table, or of their paths.
        passed_over: How many files are of the other kind, and were passed over.
    """

    root: Path
    observations: tuple[Asked, ...]
    passed_over: int = 0

    def with_known(self, known: Mapping[str, Any]) -> AskedMany:
        """With what is known about all of them, where nothing is known about each."""
        if not known:
            return self
        return replace(
            self, observations=tuple(replace(one, known={**known, **one.known}) for one in self.observations)
        )

    def with_exif(self) -> AskedMany:
        """With dates and places as the cameras noted them, where the table says nothing."""
        return replace(self, observations=tuple(_with_exif(one, self.root) for one in self.observations))


def is_many(places: Sequence[Path]) -> bool:
    """Whether a folder or a table is meant, and not the photos of one specimen.

    >>> is_many([Path("finds.csv")]), is_many([Path("a.jpg"), Path("b.jpg")])
    (True, False)
    """
    return len(places) == 1 and (places[0].is_dir() or places[0].suffix.lower() in (".csv", ".tsv", ".gz"))


def media_in(place: Path) -> list[Medium]:
    """Whether a folder or a table holds photos, recordings, or both; photos where it holds neither."""
    if place.is_dir():
        names: Iterable[Path | str] = (path for path in place.rglob("*") if path.is_file())
    else:
        with open_input(place, "a table of observations") as file:
            table = read_csv(file, place, separator="\t" if place.suffix.lower() == ".tsv" else ",")
        names = [value for column in table.columns for value in table[column].drop_nulls().head(1)]
    held = {medium_of(name) for name in names}
    return [medium for medium in MEDIA.values() if medium in held] or [PHOTO]


def are_separate(files: Sequence[Path]) -> bool:
    """Whether files are as many questions: several of which one at least is a recording.

    >>> are_separate([Path("a.wav"), Path("b.wav")]), are_separate([Path("a.jpg"), Path("b.jpg")])
    (True, False)
    """
    media = [medium_of(file) for file in files]
    return len(files) > 1 and None not in media and any(medium is not None and not medium.visual for medium in media)


def read_observations(place: Path, medium: Medium) -> AskedMany:
    """Reads what is to be named.

    Args:
        place: A folder or a table.
        medium: Whether photos or recordings are meant.

    Raises:
        InputError: When there is nothing to name, or a row of the table is at fault.
    """
    return _of_folder(place, medium) if place.is_dir() else _of_table(place, medium)


def _of_folder(folder: Path, medium: Medium) -> AskedMany:
    found = [
        path.relative_to(folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    files = [path.as_posix() for path in found if medium.owns(path)]
    if not files:
        endings = ", ".join(medium.suffixes)
        raise InputError(folder, found=f"no {medium.plural}", expected=f"files ending in {endings}")
    for file in files:
        check_name(file)
    observations = tuple(Asked(file, (file,)) for file in files)
    return AskedMany(folder, observations, sum(medium_of(path) not in (None, medium) for path in found))


def _of_table(path: Path, medium: Medium) -> AskedMany:
    with open_input(path, "a table of observations") as file:
        table = read_csv(file, path, separator="\t" if path.suffix.lower() == ".tsv" else ",")
    names = {name: CALLED.get(name.strip().lower(), name.strip().lower()) for name in table.columns}
    doubled = sorted({name for name in names.values() if list(names.values()).count(name) > 1})
    if doubled:
        raise InputError(path, line=1, found=f"two columns that mean {doubled[0]}", expected="one of each")
    table = table.rename(names)
    if "file" not in table.columns:
        raise InputError(path, line=1, found=f"the columns {', '.join(table.columns)}", expected="a column 'file'")
    for name, what in (("date", datetime.date), ("lat", float), ("lon", float)):
        table = parse_column(table, name, what, path)
    _check_rows(table, path, medium)
    observation = pl.col("observation") if "observation" in table.columns else pl.col("file")
    rows = table.with_columns(observation=pl.coalesce(observation, pl.col("file")))
    known = [name for name in ("date", "lat", "lon", *TEXTS) if name in rows.columns]
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows.iter_rows(named=True):
        groups.setdefault(row["observation"], []).append(row)
    return AskedMany(path.parent, tuple(_grouped(name, own, known) for name, own in groups.items()))


def _grouped(name: str, rows: Sequence[Mapping[str, Any]], known: Sequence[str]) -> Asked:
    """One observation of several rows: of each column the first value that is there."""
    first = {column: next((row[column] for row in rows if row[column] is not None), None) for column in known}
    files = tuple(dict.fromkeys(row["file"] for row in rows))
    return Asked(name, files, {column: value for column, value in first.items() if value is not None})


def _check_rows(table: pl.DataFrame, path: Path, medium: Medium) -> None:
    """Refuses rows whose file is missing or of the other kind, and places and times that cannot be."""
    if table.is_empty():
        raise InputError(path, found="a header and no row", expected="a row for each photo or recording")
    times = table["time"] if "time" in table.columns else [None] * len(table)
    both = zip(table["file"], table["lat"], table["lon"], times, strict=True)
    for line, (file, lat, lon, time) in enumerate(both, start=2):
        if not file:
            raise InputError(path, line=line, found="no file", expected="the path of a photo or recording")
        if not (path.parent / file).is_file():
            raise InputError(
                path, line=line, found=f"{file!r}, which is not there", expected=f"a {medium} beside the table"
            )
        if not medium.owns(file):
            raise InputError(path, line=line, found=f"{file!r}", expected=f"a {medium}, as the model was fitted to")
        if (lat is None) != (lon is None):
            raise InputError(path, line=line, found="a latitude or a longitude alone", expected="both, or none")
        if lat is not None and not (-90 <= lat <= 90 and -180 <= lon <= 180):
            raise InputError(path, line=line, found=f"{lat:g}, {lon:g}", expected="a place on this planet, in degrees")
        if time is not None and not TIME.fullmatch(time):
            raise InputError(path, line=line, found=f"the time {time!r}", expected="one such as 06:15:00")


def _with_exif(asked: Asked, root: Path) -> Asked:
    missing = {"date", "lat"} - asked.known.keys()
    if not missing and "time" in asked.known:
        return asked
    noted: dict[str, Any] = {}
    for found in (taken((root / file).read_bytes()) for file in asked.files if PHOTO.owns(file)):
        if found.date is not None and found.time is not None and asked.known.get("date", found.date) == found.date:
            noted.setdefault("date", found.date)
            noted.setdefault("time", found.time.isoformat("seconds"))
        if found.lat is not None and "lat" not in asked.known:
            noted |= {} if "lat" in noted else {"lat": found.lat, "lon": found.lon}
    return replace(asked, known={**noted, **asked.known})


def seconds_of(time: str | None) -> str | None:
    """A time with its seconds, as tables of other programs want it.

    >>> seconds_of("06:15"), seconds_of("06:15:30")
    ('06:15:00', '06:15:30')
    """
    return f"{time}:00" if time and len(time) == 5 else time


def files_of(observations: Iterable[Asked]) -> list[str]:
    """All files of some observations, each once."""
    return list(dict.fromkeys(file for one in observations for file in one.files))
