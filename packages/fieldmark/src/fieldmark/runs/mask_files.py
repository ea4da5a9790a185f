"""Masks as files, for runs and for truth.

```
MASKS/<photo>.png                 the fruiting body: white where it is (values above 127)
MASKS/<part>/<photo>.png          one folder per part, for semantic segmentation
masks.parquet                     file_name, label, width, height, rle; one row per part of a photo
masks.json                        COCO with run lengths (`runs.coco_masks`)
```

A picture may bear the photo's own name, its stem with another ending, or both (`0-1.JPG`, `0-1.png`, `0-1.JPG.png`),
but there is one per part of a photo. Run lengths alternate from background, row by row, and fill the picture; the four
numbers of a box may follow. Several rows of one part of a photo are pieces of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar

import numpy as np
from PIL import Image, UnidentifiedImageError

from fieldmark.errors import InputError
from fieldmark.masks.mask_tables import COLUMNS, MaskTable, read_mask_table, refuse_row
from fieldmark.masks.parts import NEVER_PARTS, WHOLE, Mask
from fieldmark.masks.runlengths import MaskRow
from fieldmark.runs.coco_masks import is_json, read_coco, write_coco
from fieldmark.runs.formats import RunFormat
from fieldmark.runs.masks import UNIT, Masks, rows_by_photo, stem
from fieldmark.runs.provenance import RUN_PARQUET
from fieldmark.storage.parquet import read_table
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import PICTURE_SUFFIXES
from fieldmark.work.progress import progress


@dataclass(frozen=True)
class MaskFiles(RunFormat):
    """The run format of segmentation: Parquet with run lengths, COCO JSON, or a folder of pictures."""

    file_name: ClassVar[str] = RUN_PARQUET
    file_types: ClassVar[tuple[str, ...]] = (".parquet", ".json")
    folders: ClassVar[bool] = True
    holds: ClassVar[str] = "masks"

    def write(self, path: Path, predictions: Masks) -> None:
        """Writes Parquet with run lengths, COCO JSON (`.json`), or a folder of pictures (a path without an ending)."""
        if path.suffix == ".json":
            write_coco(predictions, path)
        elif path.suffix:
            predictions.write(path)
        else:
            predictions.write_pictures(path)

    def read(self, path: Path, items: Sequence[str], labels: Labels, *, unknown: bool = False) -> Masks:
        """Reads masks; each photo must have some.

        Raises:
            InputError: When photos have no mask, or a part is spelled otherwise than in the truth.
        """
        masks = read_masks(path, items)
        refuse_other_spelling(set(masks.parts) - set(labels.names), set(labels.names))
        return masks

    def example(self, file: IO[bytes], lines: int) -> list[str]:
        """The first rows of a table as text."""
        table = read_mask_table(file.read(), "the sample")
        rows = [table.open(number) for number in range(min(lines - 1, len(table)))]
        shown = (
            f"{table.file_names[number]}, {row.label}, {row.width}, {row.height}, {row.runs.tolist()[:8]}..."
            for number, row in enumerate(rows)
        )
        return [", ".join(COLUMNS), *shown]

    def labels_in(self, path: Path) -> set[str]:
        """The parts that occur, without opening a picture."""
        if path.is_dir():
            return {part for pictures in _pictures_by_photo(path).values() for part in pictures}
        return set(read_coco(path).parts) if is_json(path) else set(_table(path).labels)


def refuse_other_spelling(only_in_run: set[str], true_parts: set[str]) -> None:
    """Refuses `Cap` beside `cap`: as another part it would count against the run, which nobody can have meant."""
    spelled = {_plain(name): name for name in (*true_parts, *NEVER_PARTS)}
    for name in sorted(only_in_run - set(NEVER_PARTS)):
        if _plain(name) in spelled:
            hint = "Names of parts are compared letter by letter: spell it as the truth does."
            raise InputError("the run", found=f"the part {name!r}", expected=repr(spelled[_plain(name)]), hint=hint)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def read_masks(path: Path, photos: Sequence[str] | None = None, *, complete: bool = True) -> Masks:
    """Reads a folder of pictures, a Parquet file of run lengths, or COCO JSON.

    Args:
        path: Where they lie.
        photos: Those that are read, by the stems of their names; None for all. No others are opened.
        complete: Whether run lengths must fill the picture; else what they leave out at the end is background.

    Raises:
        InputError: When it is neither, or a photo has no mask.
    """
    if path.is_dir():
        pictures = _pictures_by_photo(path)
        return _from_folder(pictures, _there(photos, pictures, path))
    if is_json(path):
        masks = read_coco(path)
        return masks.select(_there(photos, dict.fromkeys(masks.items), path))
    table = _table(path)
    names = {stem(name): name for name in table.file_names}
    wanted = _there(photos, names, path)
    rows_of = rows_by_photo(table, set(wanted), complete=complete)
    return Masks(wanted, tuple(rows_of[photo] for photo in wanted), names)


def is_table(path: Path) -> bool:
    """Whether masks lie in a table, whose rows have an order, and not in pictures or COCO JSON."""
    return path.is_file() and not is_json(path)


def read_units(path: Path) -> dict[str, str]:
    """The independent units that a table of true masks states, by photo; none where it has no such column."""
    table = read_table(path, path, columns=("file_name", UNIT)) if is_table(path) else None
    if table is None or UNIT not in table.column_names:
        return {}
    names, units = (table.column(name).to_pylist() for name in ("file_name", UNIT))
    of_photo: dict[str, str] = {}
    for row, (name, unit) in enumerate(zip(names, units, strict=True)):
        if not isinstance(unit, str) or not unit.strip():
            refuse_row(path, row, f"{unit!r} as unit", "a name")
        if of_photo.setdefault(stem(name), unit) != unit:
            refuse_row(path, row, f"the unit {unit!r}", f"{of_photo[stem(name)]!r}, as another row says of {name}")
    return of_photo


def _table(path: Path) -> MaskTable:
    if not path.is_file():
        raise InputError(
            path, found="no such file or directory", expected="a folder of masks, or a file of run lengths"
        )
    return read_mask_table(path, path)


def _there(photos: Sequence[str] | None, masks_of: Mapping[str, object], path: Path) -> tuple[str, ...]:
    """The photos that were asked for, or all that were found."""
    if photos is None:
        return tuple(masks_of)
    missing = [photo for photo in photos if photo not in masks_of]
    if missing:
        listed = f"no mask for {len(missing)} of {len(photos)} photos ({', '.join(missing[:3])}, ...)"
        raise InputError(path, found=listed, expected="a mask for each")
    return tuple(photos)


def _pictures_by_photo(folder: Path) -> dict[str, dict[str, Path]]:
    """For each photo the pictures of its masks by part."""
    files: dict[str, dict[str, Path]] = {}
    for place, part in _pictures(folder):
        pictures = files.setdefault(stem(place.name), {})
        if part in pictures:
            found = f"another picture of the {part} of {stem(place.name)} ({pictures[part].relative_to(folder)})"
            raise InputError(place, found=found, expected="one for each part of a photo", hint="Remove one of them.")
        pictures[part] = place
    if not files:
        raise InputError(folder, found="no pictures", expected="a mask for each photo")
    return files


def _from_folder(pictures: Mapping[str, Mapping[str, Path]], photos: tuple[str, ...]) -> Masks:
    rows = []
    with progress("reading masks", len(photos)) as tick:
        for photo in photos:
            rows.append(tuple(MaskRow.of(part, _picture(path)) for part, path in pictures[photo].items()))
            tick(1)
    return Masks(photos, tuple(rows))


def _pictures(folder: Path) -> Iterator[tuple[Path, str]]:
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            inside = (path for path in sorted(entry.iterdir()) if path.suffix.lower() in PICTURE_SUFFIXES)
            yield from ((path, entry.name) for path in inside)
        elif entry.suffix.lower() in PICTURE_SUFFIXES:
            yield entry, WHOLE


def _picture(path: Path) -> Mask:
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("L")) > 127
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(path, found="something unreadable", expected="a picture of a mask") from error
