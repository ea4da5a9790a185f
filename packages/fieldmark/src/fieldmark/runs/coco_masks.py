"""Masks as COCO JSON with run lengths, as pycocotools and the tools around it read and write them.

```
{"images": [{"id": 1, "file_name": "0-1.JPG", "width": 300, "height": 200}],
 "categories": [{"id": 1, "name": "fruiting_body", "supercategory": "whole"}, {"id": 2, "name": "cap", ...}],
 "annotations": [{"image_id": 1, "category_id": 1, "segmentation": {"size": [200, 300], "counts": "..."}, ...}]}
```

Where a file has a single category and does not call it a part, it is the whole, whatever it is called. The `parts` that
`fieldmark export coco` writes beside the whole are read as well. Run lengths may be a list or a compressed text;
polygons are refused. An image without annotations has an empty mask. Several annotations of one category are pieces.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fieldmark.errors import InputError
from fieldmark.masks.coco_runlengths import coco_rle, row_of_coco
from fieldmark.masks.mask_tables import MOST_PIXELS
from fieldmark.masks.parts import WHOLE
from fieldmark.masks.runlengths import MaskRow, box_of_runs
from fieldmark.runs.masks import Masks, stem
from fieldmark.storage.files import appearing_file

PART = "part"
EXPECTED = "COCO JSON with images, categories and annotations"


def is_json(path: Path) -> bool:
    """Whether a file begins as JSON does, however it is called."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(64).lstrip().startswith(b"{")


def write_coco(masks: Masks, path: Path) -> None:
    """Writes masks as COCO JSON with compressed run lengths."""
    names = [WHOLE, *(part for part in masks.parts if part != WHOLE)]
    number_of = {name: number for number, name in enumerate(names, 1)}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for image, item in enumerate(masks.items, 1):
        size = {"width": row.width, "height": row.height} if (row := next(iter(masks.rows_of(item)), None)) else {}
        images.append({"id": image, "file_name": masks.name_of.get(item, item), **size})
        for row in masks.rows_of(item):
            drawn = {"segmentation": coco_rle(row.mask(), compressed=True), "area": row.area, "iscrowd": 0}
            place = {"id": len(annotations) + 1, "image_id": image, "category_id": number_of[row.label]}
            annotations.append(place | drawn | {"bbox": box_of_runs(row.runs, row.width)})
    categories = [
        {"id": number, "name": name, "supercategory": "whole" if name == WHOLE else PART}
        for name, number in number_of.items()
    ]
    with appearing_file(path) as partial:
        data = {"images": images, "categories": categories, "annotations": annotations}
        partial.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


def read_coco(path: Path) -> Masks:
    """Reads masks from COCO JSON.

    Raises:
        InputError: When it is something else, or an annotation is no mask.
    """
    try:
        data = json.loads(path.read_bytes())
        images = {image["id"]: image for image in data["images"]}
        label_of = _labels(data["categories"])
        annotations = list(enumerate(data["annotations"]))
        names = {stem(image["file_name"].rpartition("/")[2]): image["file_name"] for image in images.values()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(path, found="something else", expected=EXPECTED) from error
    if len(names) < len(images):
        raise InputError(path, found="two images of one name", expected="names that differ: masks are found by them")
    photo_of = {number: stem(image["file_name"].rpartition("/")[2]) for number, image in images.items()}
    rows: dict[str, list[MaskRow]] = {photo: [] for photo in photo_of.values()}
    for number, annotation in annotations:
        try:
            photo = photo_of[annotation["image_id"]]
            for label, rle in _drawn(annotation, label_of[annotation["category_id"]]):
                rows[photo].append(_row(path, number, label, rle))
        except (KeyError, TypeError) as error:
            found = f"annotation {number} without {error}"
            raise InputError(path, found=found, expected="image_id and category_id that the file lists") from error
    for number, photo in photo_of.items():
        rows[photo] = rows[photo] or [_nothing(path, images[number])]
    return Masks(tuple(rows), tuple(tuple(one) for one in rows.values()), names)


def _labels(categories: list[dict[str, Any]]) -> dict[Any, str]:
    """What the annotations of each category are masks of."""
    alone = len(categories) == 1 and categories[0].get("supercategory") != PART
    return {one["id"]: WHOLE if alone else str(one["name"]) for one in categories}


def _drawn(annotation: dict[str, Any], label: str) -> Iterator[tuple[str, Any]]:
    """The masks of an annotation with their labels; one with parts is the whole."""
    parts = annotation.get("parts") or []
    yield WHOLE if parts else label, annotation.get("segmentation")
    for part in parts:
        yield str(part["name"]), part.get("segmentation")


def _row(path: Path, number: int, label: str, rle: Any) -> MaskRow:
    where = f"{path}, annotation {number}"
    if isinstance(rle, list):
        hint = "pycocotools turns polygons into run lengths: `COCO.annToRLE`."
        raise InputError(where, found="polygons", expected="run lengths (size and counts)", hint=hint)
    size = rle.get("size") if isinstance(rle, dict) else None
    if isinstance(size, list) and all(type(one) is int for one in size) and math.prod(size) > MOST_PIXELS:
        raise InputError(where, found=f"a picture of {size}", expected=f"at most {MOST_PIXELS} pixels")
    try:
        return row_of_coco(label, rle)
    except ValueError as error:
        expected = "run lengths that fill the picture, as a list or as a text of COCO"
        raise InputError(where, found=str(error), expected=expected, hint="Annotations are counted from 0.") from error


def _nothing(path: Path, image: dict[str, Any]) -> MaskRow:
    """The empty mask of an image without annotations."""
    width, height = image.get("width"), image.get("height")
    if type(width) is not int or type(height) is not int or not 0 < width * height <= MOST_PIXELS:
        found = f"{image['file_name']} without annotations, width or height"
        raise InputError(path, found=found, expected="one or the other")
    return MaskRow(WHOLE, height, width, np.array([width * height], dtype=np.int64))
