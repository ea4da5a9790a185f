"""Masks as predictions, as runs and as truth: a folder of pictures, or Parquet with run lengths.

```
MASKS/<photo>.png                 the fruiting body: white where it is (values above 127)
MASKS/<part>/<photo>.png          one folder per part, for semantic segmentation
masks.parquet                     file_name, label, width, height, rle; one row per part of a photo
```

A picture may bear the photo's own name, its stem with another ending, or both (`0-1.JPG`, `0-1.png`, `0-1.JPG.png`),
but there is one per part of a photo. Run lengths alternate from background, row by row, and fill the picture; the four
numbers of a box may follow. Several rows of one part of a photo are pieces of it.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from fieldmark.errors import InputError
from fieldmark.foundation.files import appearing_folder
from fieldmark.foundation.masks import WHOLE, Mask
from fieldmark.foundation.media_files import PICTURE_SUFFIXES
from fieldmark.foundation.progress import progress
from fieldmark.foundation.runlengths import decode_runs, encode_runs
from fieldmark.labels import Labels
from fieldmark.runs.formats import RunFormat
from fieldmark.runs.predictions import BLOCK_ITEMS, write_blocks
from fieldmark.runs.provenance import RUN_PARQUET

COLUMNS = ("file_name", "label", "width", "height", "rle")
BOX_NUMBERS = 4
# More pixels than Pillow opens: no photo, but a number that was misread, or an attempt to fill the memory.
MOST_PIXELS = 2 * (Image.MAX_IMAGE_PIXELS or 89_478_485)


class MaskRow(NamedTuple):
    """One mask of a photo: what it is of, the size of the picture, and its run lengths."""

    label: str
    height: int
    width: int
    runs: NDArray[np.int64]

    @classmethod
    def of(cls, label: str, mask: Mask) -> MaskRow:
        """The mask as a row."""
        return cls(label, mask.shape[0], mask.shape[1], encode_runs(mask))


@dataclass(frozen=True)
class Masks:
    """Masks of photos, held as run lengths and decoded one photo at a time.

    Args:
        items: The photos, each by the stem of its name.
        rows: For each photo its masks; none where nothing was found.
    """

    items: tuple[str, ...]
    rows: tuple[tuple[MaskRow, ...], ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts that occur."""
        return tuple(sorted({row.label for rows in self.rows for row in rows}))

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {item: row for row, item in enumerate(self.items)}

    def open(self, item: str) -> dict[str, Mask]:
        """The masks of a photo by part; several of one part become one."""
        parts: dict[str, Mask] = {}
        for label, height, width, runs in self.rows[self._row_of[item]]:
            mask = decode_runs(runs.tolist(), height, width)
            parts[label] = parts[label] | mask if label in parts else mask
        return parts

    def select(self, items: Iterable[str]) -> Masks:
        """The masks of the given photos, in their order."""
        wanted = tuple(items)
        return Masks(wanted, tuple(self.rows[self._row_of[item]] for item in wanted))

    def blocks(self, size: int = BLOCK_ITEMS) -> Iterator[Masks]:
        """The same masks, so many photos at a time."""
        for start in range(0, len(self.items), size):
            yield Masks(self.items[start : start + size], self.rows[start : start + size])

    @classmethod
    def concat(cls, parts: Sequence[Masks]) -> Masks:
        """The masks of different photos, one after the other."""
        items = tuple(item for part in parts for item in part.items)
        return cls(items, tuple(rows for part in parts for rows in part.rows))

    def write(self, path: Path) -> None:
        """Writes the masks as Parquet in the layout of the release."""
        write_blocks(path, (_to_arrow(block, self.items) for block in self.blocks()))

    def write_pictures(self, folder: Path) -> None:
        """Writes a folder of PNG files: the whole of each photo, and every part in a folder of its own."""
        with appearing_folder(folder) as partial:
            for item in self.items:
                for part, mask in self.open(item).items():
                    place = partial if part == WHOLE else partial / part
                    place.mkdir(exist_ok=True)
                    Image.fromarray(mask).save(place / f"{item}.png")

    @classmethod
    def read(cls, file: pq.ParquetFile, header: dict[str, Any]) -> Self:
        """The masks of a Parquet file that `write` made; photos without any are named in its header."""
        items = tuple(header["items"])
        rows_of = _by_photo(pl.from_arrow(file.read()), "masks", set(items))  # type: ignore[arg-type]
        return cls(items, tuple(rows_of.get(item, ()) for item in items))


def _to_arrow(block: Masks, items: tuple[str, ...]) -> pa.Table:
    rows = [(item, *row) for item, rows in zip(block.items, block.rows, strict=True) for row in rows]
    columns = {
        "file_name": pa.array([row[0] for row in rows], pa.string()),
        "label": pa.array([row[1] for row in rows], pa.string()),
        "width": pa.array([row[3] for row in rows], pa.int64()),
        "height": pa.array([row[2] for row in rows], pa.int64()),
        # Complete, so that the last four are not taken for a box when they are read again.
        "rle": pa.array([row[4].tolist() for row in rows], pa.list_(pa.int64())),
    }
    return pa.table(columns).replace_schema_metadata({"fieldmark": json.dumps({"kind": "masks", "items": items})})


@dataclass(frozen=True)
class MaskFiles(RunFormat):
    """The run format of segmentation: a folder of pictures, or Parquet with run lengths."""

    file_name: ClassVar[str] = RUN_PARQUET
    file_types: ClassVar[tuple[str, ...]] = (".parquet",)
    hosted: ClassVar[bool] = False  # a folder is not one file
    holds: ClassVar[str] = "masks"

    def write(self, path: Path, predictions: Masks) -> None:
        """Writes Parquet with run lengths, or, to a path without an ending, a folder of pictures."""
        if path.suffix:
            predictions.write(path)
        else:
            predictions.write_pictures(path)

    def read(self, path: Path, items: Sequence[str], labels: Labels, *, unknown: bool = False) -> Masks:
        """Reads masks; each photo must have some.

        Raises:
            InputError: When photos have no mask.
        """
        return read_masks(path, items)

    def labels_in(self, path: Path) -> set[str]:
        """The parts that occur, without opening a picture."""
        if path.is_dir():
            return {part for pictures in _pictures_by_photo(path).values() for part in pictures}
        return set(_table(path)["label"])


def read_masks(path: Path, photos: Sequence[str] | None = None) -> Masks:
    """Reads a folder of pictures or a Parquet file of run lengths.

    Args:
        path: Where they lie.
        photos: Those that are read, by the stems of their names; None for all. No others are opened.

    Raises:
        InputError: When it is neither, or a photo has no mask.
    """
    if path.is_dir():
        pictures = _pictures_by_photo(path)
        return _from_folder(pictures, _there(photos, pictures, path))
    rows = _table(path)
    names = dict.fromkeys(stem(name) for name in rows["file_name"])
    wanted = _there(photos, names, path)
    rows_of = _by_photo(rows, path, set(wanted))
    return Masks(wanted, tuple(rows_of[photo] for photo in wanted))


def _there(photos: Sequence[str] | None, masks_of: Mapping[str, object], path: Path) -> tuple[str, ...]:
    """The photos that were asked for, or all that were found."""
    if photos is None:
        return tuple(masks_of)
    missing = [photo for photo in photos if photo not in masks_of]
    if missing:
        listed = f"no mask for {len(missing)} of {len(photos)} photos ({', '.join(missing[:3])}, ...)"
        raise InputError(path, found=listed, expected="a mask for each")
    return tuple(photos)


def only_spores(rows: Sequence[MaskRow]) -> bool:
    """Whether the masks of a photo show nothing but spores under a microscope, or there are none."""
    return {row.label for row in rows} <= {"microscopic"}


def stem(name: str) -> str:
    """What a photo and the picture of its mask have in common.

    >>> stem("0-12.JPG"), stem("0-12.JPG.png"), stem("0-12.png")
    ('0-12', '0-12', '0-12')
    """
    while Path(name).suffix.lower() in PICTURE_SUFFIXES:
        name = Path(name).stem
    return name


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


def _table(path: Path) -> pl.DataFrame:
    if not path.is_file():
        raise InputError(path, found="nothing", expected="a folder of masks, or a Parquet file of run lengths")
    try:
        # Not by polars, which gives up on damaged files without an exception that could be caught.
        rows = pl.DataFrame(pl.from_arrow(pq.read_table(path)))
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise InputError(path, found="something else", expected="a Parquet file of masks") from error
    for name in COLUMNS:
        if name not in rows.columns:
            found = f"the columns {', '.join(rows.columns)}"
            raise InputError(path, found=found, expected=f"a column {name!r}")
    for name in ("file_name", "label"):
        for number, value in enumerate(rows[name]):
            if not isinstance(value, str) or not value.strip():
                _refuse(path, number, f"{value!r} as {name}", "a name")
    return rows


def _by_photo(rows: pl.DataFrame, where: object, photos: Container[str]) -> dict[str, tuple[MaskRow, ...]]:
    rows_of: dict[str, dict[str, list[MaskRow]]] = {}
    for number, (name, label, width, height, runs) in enumerate(rows.select(COLUMNS).iter_rows()):
        if (photo := stem(name)) not in photos:
            continue
        lengths = _runs(runs, _pixels(width, height, where, number), where, number)
        pieces = rows_of.setdefault(photo, {}).setdefault(label, [])
        if pieces and (pieces[0].height, pieces[0].width) != (height, width):
            others = f"{pieces[0].width} x {pieces[0].height}, as another row says of the {label} of {name}"
            _refuse(where, number, f"a picture of {width} x {height}", others)
        pieces.append(MaskRow(label, height, width, lengths))
    return {photo: tuple(row for pieces in parts.values() for row in pieces) for photo, parts in rows_of.items()}


def _pixels(width: Any, height: Any, where: object, row: int) -> int:
    """How many pixels the picture of a row has."""
    for name, value in (("width", width), ("height", height)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            _refuse(where, row, f"the {name} {value!r}", "a whole number of pixels from 1 on")
    if width * height > MOST_PIXELS:
        _refuse(where, row, f"a picture of {width} x {height}", f"at most {MOST_PIXELS} pixels")
    return int(width * height)


def _runs(runs: Any, size: int, where: object, row: int) -> NDArray[np.int64]:
    """Run lengths that fill a picture of `size` pixels, without the four numbers of a box that may follow."""
    if not isinstance(runs, list) or not all(isinstance(length, int) for length in runs):
        _refuse(where, row, f"{_shown(runs)} as rle", "a list of whole numbers")
    lengths = runs if sum(runs) == size else runs[:-BOX_NUMBERS]
    if sum(lengths) != size or min(lengths) < 0:
        negative = min(runs, default=0) < 0
        found = "a negative run length" if negative else f"runs of {sum(runs)} pixels ({sum(lengths)} without a box)"
        _refuse(where, row, found, f"runs that fill the {size} pixels of the picture")
    return np.array(lengths, dtype=np.int64)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _refuse(where: object, row: int, found: str, expected: str) -> NoReturn:
    raise InputError(f"{where}, row {row}", found=found, expected=expected, hint="Rows are counted from 0.")
