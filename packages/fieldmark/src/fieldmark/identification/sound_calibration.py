"""Scores of a timeline as probabilities, by curves that `fieldmark detections --thresholds` has written.

A score says how sure a network is, not how often it is right at a site. The curve of a species (or that of all, where
it has none) turns the one into the other; it was fitted to annotations of the site and holds there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from fieldmark.errors import InputError
from fieldmark.identification.name_lists import NameFinder
from fieldmark.identification.results import Detection, Timeline
from fieldmark.scoring.sound_thresholds import Calibration, score_logits
from fieldmark.storage.files import open_input
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import parse_column

NOT_PROBABILITIES: Final = (
    "Scores are not probabilities: how often they are right differs between species and sites. To calibrate them on "
    "annotations: fieldmark detections ... --against ANNOTATIONS --thresholds FOLDER, then --calibration."
)
COLUMNS: Final = ("name", "slope", "offset")


def read_calibration(path: Path) -> dict[str, Calibration]:
    """The curves of a table `name,slope,offset`; without a name, the curve of all species.

    Raises:
        InputError: When a column is missing or no number, or there is no curve.
    """
    with open_input(path, "a table name,slope,offset") as file:
        table = read_csv(file, path, required=COLUMNS)
    for column, kind in (("slope", float), ("offset", float), ("answers", int), ("of_logits", bool)):
        table = parse_column(table, column, kind, path)
    curves = {}
    for line, row in enumerate(table.iter_rows(named=True), 2):
        if row["slope"] is None or row["offset"] is None or row["slope"] < 0:
            found = f"slope {row['slope']}, offset {row['offset']}"
            raise InputError(path, line=line, found=found, expected="two numbers, the slope 0 or more")
        name = row["name"] or ""
        curves[name] = Calibration(name, row["slope"], row["offset"], row["answers"] or 0, bool(row["of_logits"]))
    if not curves:
        raise InputError(path, found="no curve", expected="at least one: too few annotations were there to fit any")
    return curves


def with_probabilities(timeline: Timeline, curves: Mapping[str, Calibration], finder: NameFinder) -> Timeline:
    """The timeline with the probability of each voice, and a sentence about where it comes from."""
    curve_of: dict[str, Calibration] = {}
    for name, curve in curves.items():
        for code in finder.codes(name) if name else ():
            curve_of[finder.model.labels.names[code]] = curve
    pooled = curves.get("")

    def calibrated(voice: Detection) -> Detection:
        curve = curve_of.get(voice.label, pooled)
        if curve is None:
            return voice
        z = float(score_logits(np.array([voice.score]), of_logits=curve.of_logits)[0])
        return replace(voice, probability=round(float(1 / (1 + np.exp(-(curve.slope * z + curve.offset)))), 4))

    own = sum(one.label in curve_of for one in {voice.label: voice for voice in timeline.windows}.values())
    remark = f"Probabilities are calibrated on annotations of a site; {own} species heard here have their own curve."
    return replace(
        timeline,
        windows=tuple(map(calibrated, timeline.windows)),
        removed=tuple(map(calibrated, timeline.removed)),
        remarks=(*timeline.remarks, remark),
    )
