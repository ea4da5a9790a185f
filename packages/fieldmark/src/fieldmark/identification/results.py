"""What is known about a photo or recording besides itself, and the answer to a recording: a timeline."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from fieldmark.errors import MisuseError
from fieldmark.identification.exif import taken
from fieldmark.notebooks import BLUE, DrawnPlot, draw_plot, html_note, html_page, html_table
from fieldmark.storage.files import appearing_file
from fieldmark.tables.media import RECORDING
from fieldmark.tables.raven import write_selections
from fieldmark.tables.schema import MOST_EAST, MOST_NORTH
from fieldmark.tables.timecodes import clock


@dataclass(frozen=True)
class Circumstances:
    """What is known about a photo or recording besides itself; None where it is not known.

    Raises:
        MisuseError: For a place off the globe, or one that is no number.
    """

    lat: float | None = None
    lon: float | None = None
    date: datetime.date | None = None
    site: str | None = None
    country: str | None = None
    habitat: str | None = None
    substrate: str | None = None

    def __post_init__(self) -> None:
        for called, degrees, most in (("latitude", self.lat, MOST_NORTH), ("longitude", self.lon, MOST_EAST)):
            if degrees is not None and not -most <= degrees <= most:
                raise MisuseError(f"A {called} lies between -{most:g} and {most:g} degrees: found {degrees:g}.")

    @property
    def known(self) -> dict[str, Any]:
        """What is known of it, by the names of columns."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Detection:
    """A voice in a recording, from when to when; its probability where scores were calibrated."""

    label: str
    species: str | None
    common_name: str | None
    score: float
    start_s: float
    end_s: float
    probability: float | None = None

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
        removed: What was heard at or above the threshold and left out, because it is not expected at the place and
            date that were given.
        ignored: What was given and not used, one sentence each.
    """

    file: Path
    seconds: float
    step_s: float
    windows: tuple[Detection, ...]
    at_least: float
    simulated: bool
    remarks: tuple[str, ...] = ()
    removed: tuple[Detection, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def detections(self) -> tuple[Detection, ...]:
        """Windows of the same name that touch each other as one, with the highest of their scores."""
        return joined(self.windows)

    def to_frame(self) -> pl.DataFrame:
        """One row for each voice, from when to when."""
        kinds = {"label": pl.String, "species": pl.String, "common_name": pl.String, "score": pl.Float64}
        seconds = {"start_s": pl.Float64, "end_s": pl.Float64, "probability": pl.Float64}
        return pl.DataFrame([asdict(one) for one in self.detections], schema={**kinds, **seconds})

    def plot(self) -> DrawnPlot:
        """Who is heard when; the surer, the darker."""
        names = list(dict.fromkeys(one.shown for one in self.detections))

        def paint(axes: Any) -> None:
            for one in self.detections:
                row, dark = names.index(one.shown), max(one.score, 0.15)
                axes.barh(row, one.end_s - one.start_s, left=one.start_s, height=0.6, color=BLUE, alpha=dark)
            axes.set_yticks(range(len(names)), names)
            axes.invert_yaxis()
            axes.set_xlim(0, self.seconds)
            axes.set_xlabel("seconds; darker: higher score")

        return draw_plot(paint, height=1.0 + 0.4 * max(len(names), 1))

    def __repr__(self) -> str:
        heard = ", ".join(dict.fromkeys(one.shown for one in self.detections)) or "nothing heard"
        return f"<Timeline of {self.file.name}, {self.seconds:.1f} s: {heard}>"

    def _repr_html_(self) -> str:
        rows = [
            [one.shown, f"{one.score:.2f}", clock(int(one.start_s)), clock(round(one.end_s))] for one in self.detections
        ]
        table = html_table(["name", "score", "from", "to"], rows) or html_note(
            f"Nothing heard with a score of {self.at_least:g} or more."
        )
        notes = [html_note(sentence) for sentence in (*self.ignored, *self.remarks)]
        return html_page(self.file.name, table, *notes, simulated=self.simulated)

    def to_json(self) -> dict[str, Any]:
        """The timeline as plain data."""
        return {
            "kind": RECORDING.name,
            "file": str(self.file),
            "seconds": round(self.seconds, 3),
            "window_s": self.step_s,
            "at_least": self.at_least,
            "simulated": self.simulated,
            "remarks": list(self.remarks),
            "detections": [asdict(detection) for detection in self.detections],
            "windows": [asdict(detection) for detection in self.windows],
            "removed": [asdict(detection) for detection in joined(self.removed)],
            "ignored": list(self.ignored),
        }


def joined(windows: Sequence[Detection]) -> tuple[Detection, ...]:
    """Detections of the same label that touch or overlap as one, in the order of time, louder ones first."""
    running: dict[str, Detection] = {}
    done: list[Detection] = []
    for window in sorted(windows, key=lambda window: window.start_s):
        before = running.get(window.label)
        if before is not None and window.start_s <= before.end_s:
            best = max(before, window, key=lambda one: one.score)
            window = replace(best, start_s=before.start_s, end_s=max(before.end_s, window.end_s))
        elif before is not None:
            done.append(before)
        running[window.label] = window
    done += running.values()
    return tuple(sorted(done, key=lambda found: (found.start_s, -found.score, found.label)))


def with_camera_notes(context: Circumstances, photos: Sequence[Path]) -> tuple[Circumstances, tuple[str, ...]]:
    """The circumstances with date and place from the first photo that tells them, and a sentence about what was read.

    What a person said stays as it is.
    """
    notes = [taken(photo.read_bytes()) for photo in photos if photo.is_file()]
    remarks = []
    date = next((one.date for one in notes if one.date is not None), None)
    if context.date is None and date is not None:
        context = replace(context, date=date)
        remarks.append(f"The date was read from the photo: {date}.")
    place = next(((one.lat, one.lon) for one in notes if one.lat is not None), None)
    if context.lat is None and place is not None:
        context = replace(context, lat=place[0], lon=place[1])
        remarks.append(f"The place was read from the photo: {place[0]:.3f}, {place[1]:.3f}.")
    if not remarks and notes:
        remarks.append("The photos contain no date or place beyond what was given.")
    return context, tuple(remarks)


CSV_COLUMNS = ("start_s", "end_s", "label", "species", "common_name", "score")


def as_csv(detections: Sequence[Detection]) -> str:
    """A table with a header: start_s, end_s, label, species, common_name, score."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for detection in detections:
        times = [f"{detection.start_s:g}", f"{detection.end_s:g}"]
        writer.writerow([*times, detection.label, detection.species, detection.common_name, f"{detection.score:.4g}"])
    return text.getvalue()


def as_audacity(detections: Sequence[Detection]) -> str:
    """A label track of Audacity: from, to and the name with its score, with tabs between."""
    return "".join(f"{one.start_s:.6f}\t{one.end_s:.6f}\t{one.shown} {one.score:.2f}\n" for one in detections)


def write_timeline(path: Path, file: Path, detections: Sequence[Detection], form: str) -> None:
    """Writes detections as `csv`, `raven` (a selection table) or `audacity` (a label track)."""
    if form == "raven":
        columns: Mapping[str, Callable[[Detection], object]] = {
            "file": lambda detection: file.name,
            "start_s": lambda detection: detection.start_s,
            "end_s": lambda detection: detection.end_s,
            "label": lambda detection: detection.label,
            "common_name": lambda detection: detection.common_name,
            "score": lambda detection: detection.score,
        }
        schema = {"start_s": pl.Float64, "end_s": pl.Float64, "score": pl.Float64}
        rows = {name: [value(detection) for detection in detections] for name, value in columns.items()}
        write_selections(path, pl.DataFrame(rows, schema_overrides=schema))
        return
    text = as_csv(detections) if form == "csv" else as_audacity(detections)
    with appearing_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
