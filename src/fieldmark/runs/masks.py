"""Masks as runs and as truth: a folder of pictures, or Parquet with run lengths.

```
MASKS/<photo>.png                 the fruiting body: white where it is (values above 127)
MASKS/<part>/<photo>.png          one folder per part, for semantic segmentation
masks.parquet                     file_name, label, width, height, rle; one row per part of a photo
```

A picture may bear the photo's own name, its stem with another ending, or both (`0-1.JPG`, `0-1.png`, `0-1.JPG.png`).
Run lengths alternate from background, row by row; a list that is four longer than it needs ends with a box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from fieldmark.errors import InputError, MisuseError
from fieldmark.labels import Labels
from fieldmark.runlengths import decode_runs
from fieldmark.runs.predictions import Predictions

Mask = NDArray[np.bool_]

WHOLE = "fruiting_body"
NEVER_PARTS = (WHOLE, "microscopic", "background")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")


@dataclass(frozen=True)
class MaskSet:
    """Masks by photo and part, opened one photo at a time.

    Args:
        where: Where they lie, for messages.
        photos: The photos that have masks.
        parts: The names of the parts that occur.
        open: Returns the masks of a photo by part.
    """

    where: Path
    photos: tuple[str, ...]
    parts: tuple[str, ...]
    open: Callable[[str], dict[str, Mask]]


@dataclass(frozen=True)
class MaskFiles:
    """The run format of segmentation: masks are compared file by file, not read into predictions."""

    def write(self, path: Path, predictions: Predictions) -> None:
        raise MisuseError("Masks are not written from scores.")

    def read(self, path: Path, items: Sequence[str], labels: Labels) -> Predictions:
        raise MisuseError("Masks are scored against masks: fieldmark score NAME MASKS --truth MASKS.")

    def labels_in(self, path: Path) -> set[str]:
        return set(read_masks(path).parts)


def read_masks(path: Path) -> MaskSet:
    """Opens a folder of pictures or a Parquet file of run lengths.

    Raises:
        InputError: When it is neither.
    """
    if path.is_dir():
        return _from_folder(path)
    if path.is_file():
        return _from_parquet(path)
    raise InputError(path, found="nothing", expected="a folder of masks, or a Parquet file of run lengths")


def whole(parts: Mapping[str, Mask]) -> Mask:
    """The mask of the fruiting body: the merged one where there is one, else everything that is a part of it."""
    if WHOLE in parts:
        return parts[WHOLE]
    return np.asarray(np.logical_or.reduce([mask for name, mask in parts.items() if name not in NEVER_PARTS]))


def resized(mask: Mask, shape: tuple[int, ...]) -> Mask:
    """A mask at another size, each pixel from the nearest one."""
    if mask.shape == shape:
        return mask
    size = (shape[1], shape[0])
    return np.asarray(Image.fromarray(mask).resize(size, Image.Resampling.NEAREST), dtype=np.bool_)


def stem(name: str) -> str:
    """What a photo and the picture of its mask have in common.

    >>> stem("0-12.JPG"), stem("0-12.JPG.png"), stem("0-12.png")
    ('0-12', '0-12', '0-12')
    """
    while Path(name).suffix.lower() in PICTURES:
        name = Path(name).stem
    return name


def _from_folder(folder: Path) -> MaskSet:
    files: dict[str, dict[str, Path]] = {}
    for place, part in _pictures(folder):
        files.setdefault(stem(place.name), {})[part] = place
    if not files:
        raise InputError(folder, found="no pictures", expected="a mask for each photo")

    def opened(photo: str) -> dict[str, Mask]:
        return {part: _picture(path) for part, path in files[photo].items()}

    return MaskSet(folder, tuple(files), tuple(sorted({part for found in files.values() for part in found})), opened)


def _pictures(folder: Path) -> Iterator[tuple[Path, str]]:
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            inside = (path for path in sorted(entry.iterdir()) if path.suffix.lower() in PICTURES)
            yield from ((path, entry.name) for path in inside)
        elif entry.suffix.lower() in PICTURES:
            yield entry, WHOLE


def _picture(path: Path) -> Mask:
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("L")) > 127
    except (UnidentifiedImageError, OSError) as error:
        raise InputError(path, found="something unreadable", expected="a picture of a mask") from error


def _from_parquet(path: Path) -> MaskSet:
    try:
        rows = pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise InputError(path, found="something else", expected="a Parquet file of masks") from error
    for name in ("file_name", "label", "width", "height", "rle"):
        if name not in rows.columns:
            found = f"the columns {', '.join(rows.columns)}"
            raise InputError(path, found=found, expected=f"a column {name!r}")
    by_photo: dict[str, list[int]] = {}
    for row, name in enumerate(rows["file_name"]):
        by_photo.setdefault(stem(name), []).append(row)

    def opened(photo: str) -> dict[str, Mask]:
        parts: dict[str, Mask] = {}
        for row in by_photo[photo]:
            fields = rows.row(row, named=True)
            mask = _unrolled(list(fields["rle"]), fields["height"], fields["width"], path, row)
            parts[fields["label"]] = parts[fields["label"]] | mask if fields["label"] in parts else mask
        return parts

    return MaskSet(path, tuple(by_photo), tuple(rows["label"].unique().sort()), opened)


def _unrolled(runs: list[int], height: int, width: int, path: Path, row: int) -> Mask:
    """Run lengths as a mask, with or without the four numbers of a box behind them."""
    size = height * width
    lengths = runs if sum(runs) == size else runs[:-4]
    try:
        return decode_runs(lengths, height, width)
    except ValueError as error:
        expected = f"at most {size} for {height} x {width}"
        raise InputError(path, found=f"runs of {sum(lengths)} pixels in row {row}", expected=expected) from error
