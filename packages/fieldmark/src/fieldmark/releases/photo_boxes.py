"""Boxes around organisms, as people have drawn them: a table beside the photos, or columns of `media`.

`boxes.csv` (in any form that `own_tables` reads) in the root of a folder has one line per photo:
`photo,x,y,width,height`. `photo` is its path below the root, or its name where that leaves no doubt; the rest are
pixels of the upright photo at its full size, counted from its upper left corner. A photo without a line has no box. In
`media` the same stands in the columns `box_x`, `box_y`, `box_width` and `box_height`; releases that state boxes as
shares of width and height have `box_left`, `box_top`, `box_right` and `box_bottom` instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import polars as pl

from fieldmark.errors import InputError
from fieldmark.releases.folder_tables import FILE_NAMES, with_photos
from fieldmark.releases.own_tables import LINE, Roles, find_table, read_table
from fieldmark.storage.release import Release
from fieldmark.tables.inputs import Input, KeyedBy, Layer
from fieldmark.tables.values import with_decimal_point

BOXES_TABLES = ("boxes",)
# What `x` and `y` are is the upper left corner; tables that name the middle or two corners are refused.
ROLES: Roles = {
    "file": ("photo", *FILE_NAMES),
    "x": ("x", "left", "xmin", "box_x", "bbox_x"),
    "y": ("y", "top", "ymin", "box_y", "bbox_y"),
    "width": ("width", "w", "box_width", "bbox_width"),
    "height": ("height", "h", "box_height", "bbox_height"),
}
SIDES = ("x", "y", "width", "height")
COLUMNS = tuple(f"box_{side}" for side in SIDES)
SHARE_COLUMNS = ("box_left", "box_top", "box_right", "box_bottom")
LINE_COLUMN = "box_line"
BOXES = Input("boxes")


class PixelBox(NamedTuple):
    """A box as people write it down: pixels of the upright photo, and the line it comes from."""

    x: float
    y: float
    width: float
    height: float
    written_in: str = ""


class ShareBox(NamedTuple):
    """A box by its edges, as shares of the width and height of the upright photo."""

    left: float
    top: float
    right: float
    bottom: float

    def on(self, width: int, height: int) -> PixelBox:
        """The box on a photo of some size.

        >>> ShareBox(0.25, 0.5, 0.75, 1.0).on(100, 80)
        PixelBox(x=25.0, y=40.0, width=50.0, height=40.0, written_in='')
        """
        size = (self.right - self.left) * width, (self.bottom - self.top) * height
        return PixelBox(self.left * width, self.top * height, *size)


@dataclass(frozen=True)
class ShareBoxes(Layer):
    """The boxes that stand in the columns of `media` as shares.

    Args:
        media: The table.
    """

    media: pl.DataFrame
    input: ClassVar[str] = "boxes"
    by: ClassVar[KeyedBy] = "media_id"

    @cached_property
    def _box_of(self) -> Mapping[str, ShareBox]:
        rows = self.media.drop_nulls(list(SHARE_COLUMNS)).select("media_id", *SHARE_COLUMNS)
        return {media_id: ShareBox(*edges) for media_id, *edges in rows.iter_rows()}

    def read(self, ids: Sequence[str]) -> list[ShareBox | None]:
        return [self._box_of.get(media_id) for media_id in ids]


@dataclass(frozen=True)
class MediaBoxes(Layer):
    """The boxes that stand in the columns of `media`.

    Args:
        media: The table.
        source: The file that the lines in its column `box_line` are lines of.
    """

    media: pl.DataFrame
    source: str = ""
    input: ClassVar[str] = "boxes"
    by: ClassVar[KeyedBy] = "media_id"

    @cached_property
    def _box_of(self) -> Mapping[str, PixelBox]:
        rows = self.media.drop_nulls(list(COLUMNS))
        lines = rows[LINE_COLUMN] if LINE_COLUMN in rows.columns else [None] * len(rows)
        return {
            media_id: PixelBox(x, y, width, height, "" if line is None else f"{self.source}, line {line}")
            for (media_id, x, y, width, height), line in zip(
                rows.select("media_id", *COLUMNS).iter_rows(), lines, strict=True
            )
        }

    def read(self, ids: Sequence[str]) -> list[PixelBox | None]:
        return [self._box_of.get(media_id) for media_id in ids]


def has_boxes(media: pl.DataFrame) -> bool:
    """Whether a table of media has columns for boxes."""
    return set(COLUMNS) <= set(media.columns)


def with_boxes(release: Release, media: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The media of a folder with the boxes of its `boxes.csv`, where there is one; and how that was read.

    Raises:
        InputError: For a line that is no box of a photo, or a second one of the same photo.
    """
    name = find_table(release, BOXES_TABLES)
    if name is None:
        return media, ()
    table = read_table(release, name).by_role(ROLES, required=tuple(ROLES))
    table = with_photos(table, media["path"].to_list())
    for side in SIDES:
        number = with_decimal_point(table.rows[side]).cast(pl.Float64, strict=False)
        for row, (written, value) in enumerate(zip(table.rows[side], number, strict=True)):
            if written is not None and value is None:
                raise table.error(row, f"{written!r} as {side}", "a number")
        table = replace(table, rows=table.rows.with_columns(number.alias(side)))
    for line, *numbers in table.rows.select(LINE, *SIDES).iter_rows():
        _check(numbers, table.where, line)
    columns = [pl.col(side).alias(f"box_{side}") for side in SIDES]
    rows = table.rows.select("file", pl.col(LINE).cast(pl.UInt32).alias(LINE_COLUMN), *columns)
    return media.join(rows, left_on="path", right_on="file", how="left", maintain_order="left"), table.remarks


def _check(numbers: Sequence[float | None], where: str, line: int) -> None:
    given = dict(zip(SIDES, numbers, strict=True))
    for side, number in given.items():
        least = "more than 0" if side in ("width", "height") else "at least 0"
        if number is None or not 0 <= number < float("inf") or (number == 0 and least == "more than 0"):
            found = f"no {side}" if number is None else f"{side} = {number:g}"
            raise InputError(where, line=line, found=found, expected=f"a number of pixels, {least}")
