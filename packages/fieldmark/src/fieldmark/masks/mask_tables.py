"""Tables of masks in Parquet, as FungiTastic is released and as runs are written.

```
file_name, label, width, height, rle     one row per part of a photo, or per piece of a part
```

`rle` holds run lengths that alternate from background, row by row; the four numbers of a box may follow. Older files
hold the list as text. Nothing is decoded before somebody opens a row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image

from fieldmark.errors import InputError
from fieldmark.masks.runlengths import MaskRow, Runs, without_box
from fieldmark.storage.parquet import read_table

COLUMNS = ("file_name", "label", "width", "height", "rle")
# More pixels than Pillow opens: no photo, but a number that was misread, or an attempt to fill the memory.
MOST_PIXELS = 2 * (Image.MAX_IMAGE_PIXELS or 89_478_485)
# Values of all columns that a file may hold for each of its bytes.
VALUES_PER_BYTE = 64


@dataclass(frozen=True)
class MaskTable:
    """The rows of a table of masks, each checked when it is opened.

    Args:
        where: What it is called in messages.
        file_names: The photo of each row.
        labels: What each row is a mask of.
        sizes: Width and height of each row, as they stand there.
        numbers: The run lengths of each row, as they stand there.
    """

    where: object
    file_names: list[str]
    labels: list[str]
    sizes: list[tuple[Any, Any]]
    numbers: Numbers

    def __len__(self) -> int:
        return len(self.labels)

    def open(self, row: int, *, complete: bool = True) -> MaskRow:
        """The mask of one row.

        Args:
            row: Which one, from 0.
            complete: Whether run lengths must fill the picture; else what they leave out at the end is background.

        Raises:
            InputError: When it is no mask.
        """
        width, height = self.sizes[row]
        pixels = self._pixels(width, height, row)
        numbers = self.numbers[row]
        if numbers is None:
            self._refuse(row, f"{_shown(self.numbers.raw(row))} as rle", "a list of whole numbers")
        runs = without_box(numbers, pixels)
        total = int(runs.sum())
        # A single length beyond the picture is refused by itself: sums of such numbers may wrap around.
        if total > pixels or (complete and total < pixels) or (runs < 0).any() or (runs > pixels).any():
            negative = bool((numbers < 0).any())
            found = f"runs of {int(numbers.sum())} pixels ({total} without a box)"
            wanted = f"runs that fill the {pixels} pixels of the picture"
            self._refuse(row, "a negative run length" if negative else found, wanted)
        return MaskRow(self.labels[row], height, width, runs)

    def _pixels(self, width: Any, height: Any, row: int) -> int:
        """How many pixels the picture of a row has."""
        for name, value in (("width", width), ("height", height)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                self._refuse(row, f"the {name} {value!r}", "a whole number of pixels from 1 on")
        if width * height > MOST_PIXELS:
            self._refuse(row, f"a picture of {width} x {height}", f"at most {MOST_PIXELS} pixels")
        return int(width * height)

    def _refuse(self, row: int, found: str, expected: str) -> NoReturn:
        refuse_row(self.where, row, found, expected)


def refuse_row(where: object, row: int, found: str, expected: str) -> NoReturn:
    """Says what is wrong with a row of a table of masks."""
    raise InputError(f"{where}, row {row}", found=found, expected=expected, hint="Rows are counted from 0.")


def read_mask_table(source: Path | bytes, where: object) -> MaskTable:
    """Reads a table of masks from Parquet.

    Raises:
        InputError: When it is something else, a column is missing, or a row names no photo or no part.
    """
    table = read_table(source, where, expected="a Parquet file of masks", values_per_byte=VALUES_PER_BYTE)
    return mask_table(table, where)


def mask_table(table: pa.Table, where: object) -> MaskTable:
    """The same from a table in memory."""
    for name in COLUMNS:
        if name not in table.column_names:
            found = f"the columns {', '.join(table.column_names)}"
            raise InputError(where, found=found, expected=f"a column {name!r}")
    columns = {name: table.column(name).to_pylist() for name in COLUMNS[:-1]}
    for name in COLUMNS[:2]:
        for row, value in enumerate(columns[name]):
            if not isinstance(value, str) or not value.strip():
                refuse_row(where, row, f"{value!r} as {name}", "a name")
    sizes = list(zip(columns["width"], columns["height"], strict=True))
    return MaskTable(where, columns["file_name"], columns["label"], sizes, Numbers(table.column("rle")))


class Numbers:
    """A column of lists of whole numbers, as lists or as text; lists are views of one array."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column
        self._lists: list[NDArray[Any] | None] | None = None
        kind = column.type
        if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_integer(kind.value_type):
            self._lists = [one for chunk in column.chunks for one in _views(chunk)]

    def __getitem__(self, row: int) -> Runs | None:
        """The numbers of a row; None where it holds no list of whole numbers."""
        if self._lists is not None:
            view = self._lists[row]
            return None if view is None else view.astype(np.int64, copy=False)
        raw = self.raw(row)
        try:
            listed = json.loads(raw) if isinstance(raw, str) else raw
        except ValueError:
            return None
        if not isinstance(listed, list) or not all(type(one) is int and abs(one) < 2**62 for one in listed):
            return None
        return np.array(listed, dtype=np.int64)

    def raw(self, row: int) -> Any:
        """What stands there."""
        return self._column[row].as_py()


def _views(chunk: Any) -> Iterator[NDArray[Any] | None]:
    """The lists of a chunk; None for one that is missing or has gaps."""
    offsets, valid = chunk.offsets.to_numpy(), chunk.is_valid().to_numpy(zero_copy_only=False)
    values, gaps = chunk.values, None
    if values.null_count:
        gaps, values = values.is_null().to_numpy(zero_copy_only=False), values.fill_null(0)
    numbers = values.to_numpy(zero_copy_only=False)
    for row in range(len(chunk)):
        start, stop = offsets[row], offsets[row + 1]
        broken = not valid[row] or (gaps is not None and gaps[start:stop].any())
        yield None if broken else numbers[start:stop]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
