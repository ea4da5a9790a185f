"""What an answer is: names with probabilities for a photo, a timeline for a recording."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Circumstances:
    """What is known about a photo or recording besides itself; None where it is not known."""

    lat: float | None = None
    lon: float | None = None
    date: datetime.date | None = None
    site: str | None = None
    country: str | None = None

    @property
    def known(self) -> dict[str, Any]:
        """What is known of it, by the names of columns."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Name:
    """One name that an answer gives.

    Args:
        label: What the model calls it.
        species, common_name: The scientific and the common name, where they are known.
        probability: How sure, from 0 to 1.
        poisonous: Whether it is, where that is known.
    """

    label: str
    species: str | None
    common_name: str | None
    probability: float
    poisonous: bool | None = None

    @property
    def shown(self) -> str:
        """The name a person would use."""
        return self.common_name or self.species or self.label


@dataclass(frozen=True)
class PhotoAnswer:
    """What a photo shows, or several of one specimen.

    Args:
        file: The photo.
        names: The likeliest names, best first.
        unknown: How strongly it looks like none of the labels, where the model says so; higher is stranger.
        simulated: Whether the model learned from simulated data.
        remarks: What a person should know about the answer.
        further: Further photos of the same specimen, which the answer rests on as well.
    """

    file: Path
    names: tuple[Name, ...]
    unknown: float | None
    simulated: bool
    remarks: tuple[str, ...] = ()
    further: tuple[Path, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {"kind": "photo", **asdict(self), "file": str(self.file), "further": [str(one) for one in self.further]}


@dataclass(frozen=True)
class Detection:
    """A voice in a recording, from when to when."""

    label: str
    species: str | None
    common_name: str | None
    score: float
    start_s: float
    end_s: float

    @property
    def shown(self) -> str:
        """The name a person would use."""
        return self.common_name or self.species or self.label


@dataclass(frozen=True)
class Timeline:
    """Who is heard in a recording, and when.

    Args:
        file: The recording.
        seconds: How long it is.
        step_s: The length of the windows that were asked about.
        windows: One entry for each window and name at or above the threshold, in the order of time, best first.
        at_least: The threshold.
        simulated: Whether the model learned from simulated data.
        remarks: What a person should know about the answer.
    """

    file: Path
    seconds: float
    step_s: float
    windows: tuple[Detection, ...]
    at_least: float
    simulated: bool
    remarks: tuple[str, ...] = ()

    @property
    def detections(self) -> tuple[Detection, ...]:
        """Windows of the same name that touch each other as one, with the highest of their scores."""
        return joined(self.windows)

    def to_json(self) -> dict[str, Any]:
        """The timeline as plain data."""
        return {
            "kind": "recording",
            "file": str(self.file),
            "seconds": round(self.seconds, 3),
            "window_s": self.step_s,
            "at_least": self.at_least,
            "simulated": self.simulated,
            "remarks": list(self.remarks),
            "detections": [asdict(detection) for detection in self.detections],
            "windows": [asdict(detection) for detection in self.windows],
        }


Identified = PhotoAnswer | Timeline


def joined(windows: Sequence[Detection]) -> tuple[Detection, ...]:
    """Detections of the same label that touch or overlap as one, in the order of time, louder ones first."""
    running: dict[str, Detection] = {}
    done: list[Detection] = []
    for window in sorted(windows, key=lambda window: window.start_s):
        before = running.get(window.label)
        if before is not None and window.start_s <= before.end_s:
            window = Detection(
                window.label,
                window.species,
                window.common_name,
                max(before.score, window.score),
                before.start_s,
                max(before.end_s, window.end_s),
            )
        elif before is not None:
            done.append(before)
        running[window.label] = window
    done += running.values()
    return tuple(sorted(done, key=lambda found: (found.start_s, -found.score, found.label)))
