"""Annotations in the format of COCO, as tables.

    {"info": {}, "licenses": [{id, name, url}], "images": [{id, file_name, ...}], "categories": [{id, name, ...}],
     "annotations": [{image_id, category_id}]}

Challenges leave out what they have nothing to say about: any list may be missing, and any key besides the ids and
`file_name`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import polars as pl

from fieldmark.errors import InputError
from fieldmark.storage.release import Release

_KINDS: dict[str, tuple[type, Any, str]] = {
    "whole": (int, pl.Int64, "a whole number"),
    "text": (str, pl.String, "text"),
}
# What is read of each list: the keys that must be there, and those that may be.
_IMAGES = {"id": "whole", "file_name": "text"}, {
    "license": "whole", "rights_holder": "text", "width": "whole", "height": "whole"
}  # fmt: skip
_CATEGORIES = {"id": "whole", "name": "text"}, {"supercategory": "text"}
_ANNOTATIONS = {"image_id": "whole", "category_id": "whole"}, {"id": "whole"}
_UNNAMED = {"image_id": "whole"}, {"category_id": "whole", "id": "whole"}
_LICENSES = {"id": "whole"}, {"name": "text", "url": "text"}


@dataclass(frozen=True)
class CocoFile:
    """One file of annotations.

    Args:
        path: Where it lies in the release.
        images: `id, file_name, license, rights_holder, width, height`.
        categories: `id, name, supercategory`.
        annotations: `image_id, category_id, id`, the last where the file has it.
        licenses: `id, name, url`.
        has_categories, has_annotations: Whether the file has those lists at all.
    """

    path: str
    images: pl.DataFrame
    categories: pl.DataFrame
    annotations: pl.DataFrame
    licenses: pl.DataFrame
    has_categories: bool
    has_annotations: bool


def read_coco(release: Release, path: str, *, named: bool = True) -> CocoFile:
    """Reads a file of annotations.

    Args:
        release: The root.
        path: The file.
        named: Whether every annotation must have a category; those of a test set may have none.

    Raises:
        InputError: When it is no JSON, or when an entry lacks an id or has something else in its place.
    """
    data = read_json(release, path)
    where = release.where(path)
    if "images" not in data:
        found = f"the keys {', '.join(data)}" if data else "an empty object"
        raise InputError(where, found=found, expected="a list 'images', as in COCO")
    return CocoFile(
        path=path,
        images=_table(data, "images", *_IMAGES, where),
        categories=_table(data, "categories", *_CATEGORIES, where),
        annotations=_table(data, "annotations", *(_ANNOTATIONS if named else _UNNAMED), where),
        licenses=_table(data, "licenses", *_LICENSES, where),
        has_categories="categories" in data,
        has_annotations="annotations" in data,
    )


def read_json(release: Release, path: str) -> dict[str, Any]:
    """The object in a JSON file of the release.

    Raises:
        InputError: Names the line where the file stops being JSON.
    """
    try:
        data = json.loads(release.read(path))
    except json.JSONDecodeError as error:
        hint = "Was the download cut off?" if error.pos >= len(error.doc.rstrip()) - 1 else None
        found = f"something unreadable ({error.msg})"
        raise InputError(release.where(path), line=error.lineno, found=found, expected="JSON", hint=hint) from error
    except UnicodeDecodeError as error:
        raise InputError(release.where(path), found="bytes that are not UTF-8", expected="JSON") from error
    if not isinstance(data, dict):
        raise InputError(release.where(path), found=f"a {type(data).__name__}", expected="an object of COCO's lists")
    return data


def _table(
    data: dict[str, Any], name: str, required: dict[str, str], optional: dict[str, str], where: str
) -> pl.DataFrame:
    """One list as a table; what may be missing, or is of another type than promised, is null."""
    entries = data.get(name, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(where, found=f"{name!r} that is no list of objects", expected="COCO's lists")
    columns: dict[str, pl.Series] = {}
    for key, kind in (required | optional).items():
        python, polars, _ = _KINDS[kind]
        values = [value if _is(value := entry.get(key), python) else None for entry in entries]
        columns[key] = pl.Series(key, values, dtype=polars)
    for key, kind in required.items():
        empty = columns[key].is_null().arg_true()
        if len(empty):
            place = int(empty[0])
            found = f"{entries[place].get(key)!r} as {key!r} of entry {place} of {name!r}"
            raise InputError(where, found=found, expected=_KINDS[kind][2])
    return pl.DataFrame(columns)


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
