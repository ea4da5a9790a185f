"""Answers about photos of camera traps as a data package of Camtrap DP 1.0.

```
OUT/
  datapackage.json   what it is, where, when, which taxa
  deployments.csv    a camera at a place: its first and last photo
  media.csv          one row per photo
  observations.csv   one row per answer: by a machine, or by the person who checked it
  media/             the photos, linked where the disk can, copied where it cannot
```

- A deployment is a site (column `site`), else the folder that the photos lie in. It needs a place.
- Camera clocks know no time zone. Without one the times are written as UTC and `timestampIssues` says so.
- An answer to several photos is an observation at the level of an event, one to a single photo at that of media.
- `observationType` is animal for a name, unknown where the machine finds none that it knows or a person could not tell,
  and unclassified where there is no answer. Whether anything moves in a photo at all is not asked here.
"""

from __future__ import annotations

import csv
import datetime
import json
import mimetypes
import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from fieldmark.errors import InputError, MisuseError
from fieldmark.identification.darwin_core_rows import COARSE_DEGREES, COARSE_M, WITHHELD
from fieldmark.identification.label_facts import THREATENED
from fieldmark.identification.review.answer_folders import AnsweredEntry, AnswerFolder
from fieldmark.identification.review.session import ReviewLook
from fieldmark.storage.files import appearing_folder
from fieldmark.version import __version__

VERSION: Final = "1.0.1"
ADDRESS: Final = f"https://raw.githubusercontent.com/tdwg/camtrap-dp/{VERSION}"
# All columns of the format in their order, empty where nothing is known.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "deployments": (
        *("deploymentID", "locationID", "locationName", "latitude", "longitude", "coordinateUncertainty"),
        *("deploymentStart", "deploymentEnd", "setupBy", "cameraID", "cameraModel", "cameraDelay", "cameraHeight"),
        *("cameraDepth", "cameraTilt", "cameraHeading", "detectionDistance", "timestampIssues", "baitUse"),
        *("featureType", "habitat", "deploymentGroups", "deploymentTags", "deploymentComments"),
    ),
    "media": (
        *("mediaID", "deploymentID", "captureMethod", "timestamp", "filePath", "filePublic", "fileName"),
        *("fileMediatype", "exifData", "favorite", "mediaComments"),
    ),
    "observations": (
        *("observationID", "deploymentID", "mediaID", "eventID", "eventStart", "eventEnd", "observationLevel"),
        *("observationType", "cameraSetupType", "scientificName", "count", "lifeStage", "sex", "behavior"),
        *("individualID", "individualPositionRadius", "individualPositionAngle", "individualSpeed", "bboxX", "bboxY"),
        *("bboxWidth", "bboxHeight", "classificationMethod", "classifiedBy", "classificationTimestamp"),
        *("classificationProbability", "observationTags", "observationComments"),
    ),
}
ZONE = re.compile(r"Z|[+-][0-9][0-9]:[0-9][0-9]")


@dataclass(frozen=True)
class PackageAbout:
    """What a package says about itself beyond what the answers tell.

    Args:
        title: Of the project.
        contributor: The person or organization that answers for it.
        zone: The time zone of the camera clocks, such as +01:00; empty for not known.
        sampling: How the places of the cameras were chosen, a word of the format.
    """

    title: str = "Camera traps"
    contributor: str = "not stated"
    zone: str = ""
    sampling: str = "opportunistic"

    def __post_init__(self) -> None:
        if self.zone and not ZONE.fullmatch(self.zone):
            raise MisuseError(f"The time zone {self.zone!r} is none: expected Z, or hours and minutes such as +01:00.")


@dataclass(frozen=True)
class PackageWritten:
    """How many rows the three tables have."""

    deployments: int
    media: int
    observations: int


def write_camtrap(
    answers: AnswerFolder,
    out: Path,
    *,
    looks: Mapping[str, ReviewLook] | None = None,
    about: PackageAbout | None = None,
    overwrite: bool = False,
) -> PackageWritten:
    """Writes answers as a Camtrap DP package.

    Args:
        answers: The answers.
        out: The folder; it appears when complete.
        looks: What a person said, by observation.
        about: What the package says about itself.
        overwrite: Whether an existing folder is replaced.

    Raises:
        InputError: When a photo has no time, or a deployment no place.
        MisuseError: When the answers are about recordings.
    """
    about = about or PackageAbout()
    if not answers.medium.visual:
        raise MisuseError("Camtrap DP is a format for photos of camera traps; these are recordings.")
    entries = list(answers.entries())
    if not entries:
        raise MisuseError("There are no answers to write.")
    shots = [_shots(entry, answers, about.zone or "Z") for entry in entries]
    deployments = _deployments(entries, shots, about, _threatened(answers, entries, looks or {}))
    media = [row for rows in shots for row in rows]
    twice = {row["mediaID"] for row in media}
    if len(twice) != len(media):
        raise InputError(answers.root, found="a photo in two observations", expected="each photo in one observation")
    observations = [
        _observation(entry, rows, answers, (looks or {}).get(entry.observation_id))
        for entry, rows in zip(entries, shots, strict=True)
    ]
    with appearing_folder(out, overwrite=overwrite) as folder:
        _link_media(answers, entries, folder)
        for name, rows in (("deployments", deployments), ("media", media), ("observations", observations)):
            _write_table(folder / f"{name}.csv", COLUMNS[name], rows)
        package = _descriptor(answers, deployments, observations, about, looks or {})
        (folder / "datapackage.json").write_text(
            json.dumps(package, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    return PackageWritten(len(deployments), len(media), len(observations))


def _shots(entry: AnsweredEntry, answers: AnswerFolder, zone: str) -> list[dict[str, Any]]:
    """The rows of media of one observation."""
    if entry.date is None or entry.time is None:
        raise InputError(
            answers.path_of(entry.files[0]),
            found="no date and time of the photo",
            expected="both, for a package of camera traps",
            hint="Read them from the photos with --exif, or give columns date and time in a table of observations.",
        )
    stamp = f"{entry.date.isoformat()}T{entry.time}{zone}"
    return [
        {
            "mediaID": _inside(file),
            "deploymentID": _deployment(entry),
            "timestamp": stamp,
            "filePath": f"media/{_inside(file)}",
            "filePublic": "false",
            "fileName": PurePosixPath(file).name,
            "fileMediatype": mimetypes.guess_type(file)[0] or "image/jpeg",
        }
        for file in entry.files
    ]


def _threatened(answers: AnswerFolder, entries: Sequence[AnsweredEntry], looks: Mapping[str, ReviewLook]) -> set[str]:
    """The observations of species that are threatened, by the machine or by the person."""
    listed = {str(taxon["label"]) for taxon in answers.taxa if taxon.get("red_list") in THREATENED}
    said = {one for one, look in looks.items() if look.name in listed}
    return said | {entry.observation_id for entry in entries if entry.threatened}


def _inside(file: str) -> str:
    """The path of a photo in the package: nothing that leads out of it."""
    parts = [part for part in PurePosixPath(file).parts if part not in ("/", "..", ".")]
    return "/".join(part.lstrip(".~") or "_" for part in parts)


def _deployment(entry: AnsweredEntry) -> str:
    folder = str(PurePosixPath(_inside(entry.files[0])).parent)
    return entry.site or (folder if folder != "." else "deployment-1")


def _deployments(
    entries: Sequence[AnsweredEntry],
    shots: Sequence[Sequence[Mapping[str, Any]]],
    about: PackageAbout,
    threatened: Collection[str],
) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for entry, own in zip(entries, shots, strict=True):
        name, stamp = _deployment(entry), own[0]["timestamp"]
        row = rows.setdefault(name, {"deploymentID": name, "locationID": name, "locationName": name})
        if entry.lat is not None and entry.lon is not None and "latitude" not in row:
            row |= {"latitude": entry.lat, "longitude": entry.lon}
        if entry.observation_id in threatened:
            row["coordinateUncertainty"] = COARSE_M
        row["deploymentStart"] = min(row.get("deploymentStart", stamp), stamp)
        row["deploymentEnd"] = max(row.get("deploymentEnd", stamp), stamp)
        if not about.zone:
            row["timestampIssues"] = "true"
            row["deploymentComments"] = "The time zone of the camera clock is not known; times are written as UTC."
    for name, row in rows.items():
        if "coordinateUncertainty" in row and "latitude" in row:
            row |= {one: round(row[one], COARSE_DEGREES) for one in ("latitude", "longitude")}
            row["deploymentComments"] = f"{WITHHELD} {row.get('deploymentComments', '')}".strip()
        if "latitude" not in row:
            raise InputError(
                name,
                found="a deployment without a place",
                expected="latitude and longitude of each deployment",
                hint="Give --lat and --lon, or columns latitude and longitude in a table of observations.",
            )
    return list(rows.values())


def _observation(
    entry: AnsweredEntry, shots: Sequence[Mapping[str, Any]], answers: AnswerFolder, look: ReviewLook | None
) -> dict[str, Any]:
    stamps = [row["timestamp"] for row in shots]
    alone = len(shots) == 1
    record = answers.record(entry, None if look is None else look.name)
    unsure = look is None and entry.verdict == "possibly unknown"
    kind = "animal" if record and not unsure else "unknown" if look is not None or unsure else "unclassified"
    by_machine = f"Fieldmark {__version__}, {answers.about.get('model', 'a model')}"
    return {
        "observationID": entry.observation_id,
        "deploymentID": shots[0]["deploymentID"],
        "mediaID": shots[0]["mediaID"] if alone else "",
        "eventID": entry.observation_id,
        "eventStart": min(stamps),
        "eventEnd": max(stamps),
        "observationLevel": "media" if alone else "event",
        "observationType": kind,
        "scientificName": record.name if record and kind == "animal" else "",
        "classificationMethod": "machine" if look is None else "human",
        "classifiedBy": by_machine if look is None else "reviewer",
        "classificationTimestamp": _utc(answers.about.get("created") if look is None else look.when),
        "classificationProbability": "" if look is not None or entry.probability is None else entry.probability,
        "observationComments": "" if look is not None else "Machine identification, not verified by a person.",
    }


def _utc(moment: str | None) -> str:
    """A moment with a zone, as the format writes it."""
    return "" if not moment else datetime.datetime.fromisoformat(moment).strftime("%Y-%m-%dT%H:%M:%SZ")


def _descriptor(
    answers: AnswerFolder,
    deployments: Sequence[Mapping[str, Any]],
    observations: Sequence[Mapping[str, Any]],
    about: PackageAbout,
    looks: Mapping[str, ReviewLook],
) -> dict[str, Any]:
    """What the package says about itself."""
    lats, lons = ([float(row[name]) for row in deployments] for name in ("latitude", "longitude"))
    west, east, south, north = min(lons), max(lons), min(lats), max(lats)
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    levels = sorted({row["observationLevel"] for row in observations}, reverse=True)
    return {
        "resources": [
            {
                "name": name,
                "path": f"{name}.csv",
                "profile": "tabular-data-resource",
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8",
                "schema": f"{ADDRESS}/{name}-table-schema.json",
            }
            for name in COLUMNS
        ],
        "profile": f"{ADDRESS}/camtrap-dp-profile.json",
        "name": re.sub(r"[^a-z0-9._/-]+", "-", about.title.lower()).strip("-") or "camera-traps",
        "created": _utc(datetime.datetime.now(datetime.UTC).isoformat()),
        "title": about.title,
        "description": "Simulated data: no name in it is that of a living thing." if answers.simulated else about.title,
        "contributors": [{"title": about.contributor, "role": "contact"}],
        "sources": [{"title": "Fieldmark", "version": __version__}],
        "project": {
            "title": about.title,
            "samplingDesign": about.sampling,
            "captureMethod": ["activityDetection"],
            "individualAnimals": False,
            "observationLevel": levels,
        },
        "spatial": {"type": "Polygon", "bbox": [west, south, east, north], "coordinates": [ring]},
        "temporal": {
            "start": min(str(row["deploymentStart"]) for row in deployments)[:10],
            "end": max(str(row["deploymentEnd"]) for row in deployments)[:10],
        },
        "taxonomic": _taxonomic(answers, observations, looks),
    }


def _taxonomic(
    answers: AnswerFolder, observations: Sequence[Mapping[str, Any]], looks: Mapping[str, ReviewLook]
) -> list[dict[str, Any]]:
    """Each taxon that the observations name, once."""
    rows: dict[str, dict[str, Any]] = {}
    for observation in observations:
        look = looks.get(observation["observationID"])
        record = answers.record(answers[observation["observationID"]], None if look is None else look.name)
        if record is None or not observation["scientificName"]:
            continue
        above = {rank: taxon for rank, taxon in record.lineage.items() if rank != "species"}
        row = rows.setdefault(record.name, {"scientificName": record.name, **above})
        if record.rank is not None:
            row["taxonRank"] = record.rank
        if record.common_name:
            row["vernacularNames"] = {"eng": record.common_name}
    return list(rows.values())


def _link_media(answers: AnswerFolder, entries: Sequence[AnsweredEntry], folder: Path) -> None:
    for entry in entries:
        for file in entry.files:
            target = folder / "media" / _inside(file)
            target.parent.mkdir(parents=True, exist_ok=True)
            source = answers.path_of(file).resolve()
            try:
                os.link(source, target)
            except OSError:
                shutil.copyfile(source, target)


def _write_table(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
