"""What the tests of golden files share: where the files lie, and when two results are the same."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fieldmark.runs.label_scores import LabelScores
from fieldmark.scoring import Scorecard
from fieldmark_tests.places import GOLDEN

VERSION_1 = GOLDEN / "version-1"
# Sums may be added up in another order on another machine.
TOLERANCE = 1e-12
# Where scorecards by version 1 say something else in words now.
OTHER_WORDS = {"fungitastic-mini/segmentation": r"\.conventions\.(iou|miou)"}


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def differences(found: Any, expected: Any, tolerance: float = TOLERANCE, where: str = "") -> list[str]:
    """Where two results differ, in words; numbers may differ by as much as the tolerance.

    >>> differences({"a": [1.0, "x"]}, {"a": [1.0 + 1e-15, "y"]})
    [".a[1]: found 'x', expected 'y'"]
    """
    if isinstance(found, dict) and isinstance(expected, dict) and list(found) == list(expected):
        pairs = [(found[key], expected[key], f"{where}.{key}") for key in expected]
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = [(found[place], expected[place], f"{where}[{place}]") for place in range(len(expected))]
    elif isinstance(found, float) and isinstance(expected, float):
        same = math.isclose(found, expected, rel_tol=tolerance, abs_tol=tolerance)
        return [] if same or found == expected else [f"{where}: found {found!r}, expected {expected!r}"]
    else:
        same = found == expected and type(found) is type(expected)
        return [] if same else [f"{where}: found {found!r}, expected {expected!r}"]
    return [sentence for one, other, place in pairs for sentence in differences(one, other, tolerance, place)]


def card_differences(found: dict[str, Any], stored: dict[str, Any], tolerance: float = TOLERANCE) -> list[str]:
    """Where a scorecard by version 1 of its benchmark differs from a stored one, besides words and keys added since."""
    words = OTHER_WORDS.get(stored["benchmark"], "nothing")
    found = {key: value for key, value in found.items() if key in stored}
    return [line for line in differences(found, stored, tolerance) if not re.match(words, line)]


def pseudo_values(card: Scorecard) -> dict[str, list[float | None]]:
    """The pseudo-values of a scorecard by metric, as JSON holds them."""
    return {
        metric: [None if math.isnan(value) else float(value) for value in values]
        for metric, values in card.pseudo.items()
    }


def truth_files(folder: Path) -> dict[str, Path]:
    """The tables of a truth by the names under which `fieldmark.score` takes them."""
    tables = {name: folder / f"{name}.csv" for name in ("truth", "classes", "media")}
    return {name: path for name, path in tables.items() if path.exists()}


def differing_answers(read: LabelScores, table: pl.DataFrame, tolerance: float = 0.0) -> list[str]:
    """What predictions say otherwise than a table of version 1, in which "-1" was one more label, and the last one."""
    scores = table["scores"].to_numpy()
    known = len(read.labels)
    expected: dict[str, Any] = {"scores": scores[:, :known], "unknown_label": None, "decisions": None}
    if scores.shape[1] > known and np.isfinite(scores[:, -1]).any():
        expected["unknown_label"] = scores[:, -1]
    if "answer" in table.columns:
        answer = table["answer"].to_numpy()
        expected["decisions"] = np.where(answer < known, answer, -1)
    expected["unknown"] = table["unknown"].to_numpy() if "unknown" in table.columns else None
    found = {name: getattr(read, name) for name in expected}
    found["decisions"] = None if read.decisions is None else read.decisions.codes
    return [
        name
        for name, values in expected.items()
        if (values is None) != (found[name] is None)
        or (values is not None and not np.allclose(found[name], values, rtol=tolerance, atol=tolerance))
    ]


def as_told_then(found: Any, stored: Any) -> Any:
    """The part of a result that an earlier version told as well: keys that were added since are left out.

    >>> as_told_then({"a": [{"b": 1, "new": 2}]}, {"a": [{"b": 0}]})
    {'a': [{'b': 1}]}
    """
    if isinstance(found, dict) and isinstance(stored, dict):
        return {key: as_told_then(value, stored[key]) for key, value in found.items() if key in stored}
    if isinstance(found, list) and isinstance(stored, list) and len(found) == len(stored):
        return [as_told_then(one, other) for one, other in zip(found, stored, strict=True)]
    return found
