"""Timelines in the formats of other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

from fieldmark.datasets.raven import write_selections
from fieldmark.foundation.files import appearing_file
from fieldmark.identification.results import Detection

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
