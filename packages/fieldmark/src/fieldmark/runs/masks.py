"""Masks as predictions: run lengths by photo and part."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, Self

import pyarrow as pa
from PIL import Image

from fieldmark.errors import MisuseError
from fieldmark.masks.mask_tables import COLUMNS, MaskTable, mask_table, refuse_row
from fieldmark.masks.parts import WHOLE, Mask, masks_by_part
from fieldmark.masks.runlengths import MaskRow, box_of_runs
from fieldmark.runs.predictions import BLOCK_ITEMS, write_blocks
from fieldmark.storage.files import appearing_folder
from fieldmark.tables.media import PICTURE_SUFFIXES

INTEGERS = pa.list_(pa.int64())
# A further column of a truth, where the independent unit of a photo is not its own name.
UNIT = "unit"


@dataclass(frozen=True)
class Masks:
    """Masks of photos, held as run lengths and decoded one photo at a time.

    Args:
        items: The photos, each by the stem of its name.
        rows: For each photo its masks; none where nothing was found.
        name_of: How the file of a photo is called, where that is known (`0-12.JPG` for 0-12).
    """

    items: tuple[str, ...]
    rows: tuple[tuple[MaskRow, ...], ...]
    name_of: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts that occur."""
        return tuple(sorted({row.label for rows in self.rows for row in rows}))

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {item: row for row, item in enumerate(self.items)}

    def rows_of(self, item: str) -> tuple[MaskRow, ...]:
        """The masks of a photo as run lengths."""
        return self.rows[self._row_of[item]]

    def open(self, item: str) -> dict[str, Mask]:
        """The masks of a photo by part; several of one part become one."""
        return masks_by_part(self.rows_of(item))

    def select(self, items: Iterable[str]) -> Masks:
        """The masks of the given photos, in their order."""
        wanted = tuple(items)
        return Masks(wanted, tuple(self.rows_of(item) for item in wanted), self.name_of)

    def renamed(self, name_of: Callable[[str], str]) -> Masks:
        """The masks of photos by other names; of a name that has an ending the stem is the item.

        Raises:
            MisuseError: When two photos have one name.
        """
        names = [name_of(item) for item in self.items]
        items = tuple(stem(name) for name in names)
        if len(set(items)) < len(items):
            twice = next(item for item, number in Counter(items).items() if number > 1)
            raise MisuseError(f"Two photos are called {twice}: masks are found by the names of photos, rename one.")
        files = {item: PurePath(name).name for item, name in zip(items, names, strict=True)}
        return Masks(items, self.rows, {} if not self.name_of else files)

    def blocks(self, size: int = BLOCK_ITEMS) -> Iterator[Masks]:
        """The same masks, so many photos at a time."""
        for start in range(0, len(self.items), size):
            yield Masks(self.items[start : start + size], self.rows[start : start + size], self.name_of)

    @classmethod
    def concat(cls, parts: Sequence[Masks]) -> Masks:
        """The masks of different photos, one after the other."""
        items = tuple(item for part in parts for item in part.items)
        names = {item: name for part in parts for item, name in part.name_of.items()}
        return cls(items, tuple(rows for part in parts for rows in part.rows), names)

    def write(self, path: Path, units: Mapping[str, str] | None = None) -> None:
        """Writes the masks as Parquet in the layout of the release, with a box behind the run lengths.

        Args:
            path: The file to be.
            units: The independent unit of each photo, for a truth whose names do not tell it.
        """
        write_blocks(path, (_to_arrow(block, self.items, units) for block in self.blocks()))

    def write_pictures(self, folder: Path) -> None:
        """Writes a folder of PNG files: the whole of each photo, and every part in a folder of its own."""
        with appearing_folder(folder) as partial:
            for item in self.items:
                for part, mask in self.open(item).items():
                    place = partial if part == WHOLE else partial / part
                    place.mkdir(exist_ok=True)
                    Image.fromarray(mask).save(place / f"{item}.png")

    @classmethod
    def read(cls, table: pa.Table, header: dict[str, Any]) -> Self:
        """The masks of the table that `write` made; photos without any are named in its header."""
        items = tuple(header["items"])
        masks = mask_table(table, "masks")
        rows_of = rows_by_photo(masks, set(items))
        names = {stem(name): name for name in masks.file_names}
        return cls(items, tuple(rows_of.get(item, ()) for item in items), names)


def rows_by_photo(table: MaskTable, photos: Container[str], *, complete: bool = True) -> dict[str, tuple[MaskRow, ...]]:
    """The masks of each photo in the order of the table.

    Args:
        table: The table.
        photos: Those that are read, by the stems of their names.
        complete: Whether run lengths must fill the picture.

    Raises:
        InputError: When a row is no mask, or pieces of one part have several sizes.
    """
    rows_of: dict[str, list[MaskRow]] = {}
    size_of: dict[tuple[str, str], tuple[int, int]] = {}
    for number, name in enumerate(table.file_names):
        if (photo := stem(name)) not in photos:
            continue
        row = table.open(number, complete=complete)
        width, height = size_of.setdefault((photo, row.label), (row.width, row.height))
        if (width, height) != (row.width, row.height):
            others = f"{width} x {height}, as another row says of the {row.label} of {name}"
            refuse_row(table.where, number, f"a picture of {row.width} x {row.height}", others)
        rows_of.setdefault(photo, []).append(row)
    return {photo: tuple(rows) for photo, rows in rows_of.items()}


def _to_arrow(block: Masks, items: tuple[str, ...], units: Mapping[str, str] | None) -> pa.Table:
    rows = [(item, row) for item, rows in zip(block.items, block.rows, strict=True) for row in rows]
    columns = {
        "file_name": pa.array([block.name_of.get(item, item) for item, _ in rows], pa.string()),
        "label": pa.array([row.label for _, row in rows], pa.string()),
        "width": pa.array([row.width for _, row in rows], pa.int64()),
        "height": pa.array([row.height for _, row in rows], pa.int64()),
        "rle": pa.array([[*row.runs.tolist(), *box_of_runs(row.runs, row.width)] for _, row in rows], INTEGERS),
    }
    header = {"fieldmark": json.dumps({"kind": "masks", "items": items})}
    table = pa.table({name: columns[name] for name in COLUMNS})
    if units is not None:
        table = table.append_column(UNIT, pa.array([units[item] for item, _ in rows], pa.string()))
    return table.replace_schema_metadata(header)


def stem(name: str) -> str:
    """What a photo and the picture of its mask have in common.

    >>> stem("0-12.JPG"), stem("0-12.JPG.png"), stem("0-12.png")
    ('0-12', '0-12', '0-12')
    """
    while Path(name).suffix.lower() in PICTURE_SUFFIXES:
        name = Path(name).stem
    return name
