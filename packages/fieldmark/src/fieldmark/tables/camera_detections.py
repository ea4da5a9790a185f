"""MegaDetector's JSON: boxes of animals, people and vehicles in photos of camera traps.

```
{"images": [{"file": "a/1.jpg", "detections": [{"category": "1", "conf": 0.92, "bbox": [0.1, 0.2, 0.3, 0.4]}]}],
 "detection_categories": {"1": "animal", "2": "person", "3": "vehicle"},
 "info": {"format_version": "1.4", "detector": "..."}}
```

A box is its left and upper edge, its width and height, as shares of the photo. Photos that could not be read have
`failure` and no detections. Where a classifier has named boxes, `classifications` lists category and score, best first.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Final

import polars as pl

from fieldmark.errors import InputError
from fieldmark.storage.files import appearing_file

BOX: Final = ("left", "top", "width", "height")
COLUMNS: Final = {
    "file": pl.String,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "label": pl.String,
    "common_name": pl.String,
    "code": pl.String,
    "score": pl.Float64,
    "low_hz": pl.Float64,
    "high_hz": pl.Float64,
    **dict.fromkeys(BOX, pl.Float64),
}
CATEGORIES: Final = {"1": "animal", "2": "person", "3": "vehicle"}


def is_megadetector(data: bytes) -> bool:
    """Whether bytes look like a file of MegaDetector."""
    return data.lstrip()[:1] == b"{" and b'"detection_categories"' in data


def read_megadetector(data: bytes, where: Path) -> pl.DataFrame:
    """Reads the boxes, one row each, called by the category of the detector.

    Raises:
        InputError: When it is no such file, or a box or score is none.
    """
    expected = "MegaDetector's JSON with images and detection_categories"
    try:
        document = json.loads(data)
        images, categories = document["images"], document["detection_categories"]
        boxes = [(image["file"], box) for image in images for box in image.get("detections") or ()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(where, found="something else", expected=expected) from error
    rows = []
    for number, (file, box) in enumerate(boxes):
        place = f"{where}, detection {number}"
        score, edges = box.get("conf"), box.get("bbox")
        if not _is_share(score):
            raise InputError(place, found=f"conf {score!r}", expected="a number from 0 to 1")
        if not isinstance(edges, list) or len(edges) != 4 or not all(_is_number(edge) for edge in edges):
            raise InputError(place, found=f"bbox {edges!r}", expected="left, top, width and height")
        if str(box.get("category")) not in categories:
            raise InputError(place, found=f"category {box.get('category')!r}", expected="one of detection_categories")
        named = {"file": file, "label": categories[str(box["category"])], "score": float(score)}
        rows.append(named | dict(zip(BOX, map(float, edges), strict=True)))
    return pl.DataFrame(rows, schema=COLUMNS)


def write_megadetector(path: Path, boxes: pl.DataFrame, *, detector: str, files: tuple[str, ...] = ()) -> None:
    """Writes boxes as MegaDetector does.

    Args:
        path: The file to write.
        boxes: `file`, `label`, `score` and the columns of `BOX`.
        detector: What found them.
        files: All photos, those without a box among them.
    """
    labels = [*CATEGORIES.values(), *sorted(set(boxes["label"]) - set(CATEGORIES.values()))]
    number_of = {label: str(number) for number, label in enumerate(labels, 1)}
    by_file: dict[str, list[dict[str, Any]]] = {file: [] for file in files}
    for row in boxes.sort("score", descending=True, maintain_order=True).iter_rows(named=True):
        box = {"category": number_of[row["label"]], "conf": row["score"], "bbox": [row[name] for name in BOX]}
        by_file.setdefault(row["file"], []).append(box)
    document = {
        "images": [{"file": file, "detections": own} for file, own in by_file.items()],
        "detection_categories": {number: label for label, number in number_of.items()},
        "info": {"format_version": "1.4", "detector": detector},
    }
    with appearing_file(path) as partial:
        partial.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1
