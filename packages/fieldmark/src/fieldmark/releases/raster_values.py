"""Values out of rasters at many places: cells and squares around them, in blocks, in constant memory.

Places are put in the order of the raster once for all rasters of one grid. The rows that hold places are then read in
strips of at most `STRIP_CELLS` cells, each once; where a strip holds places in a few of its blocks only, these blocks
are read by themselves. Beyond the edges, and where a raster has no value, there is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.registry import require

Values = NDArray[np.float32]
Cells = NDArray[np.int64]
Degrees = NDArray[np.float64]

# How many cells are held at a time, beside what was found.
STRIP_CELLS = 4_000_000
# Blocks are read one by one where fewer than this share of those in a strip hold places.
_SPARSE = 0.25
# How many cells of squares are gathered at a time.
_GATHERED = 4_000_000


@dataclass(frozen=True)
class RasterGrid:
    """The grid of a raster: where its cells lie, and how it is stored. Rasters with equal grids share their order.

    Args:
        from_map: The six numbers that take map coordinates to columns and rows.
        crs: Its coordinate system as text; empty for degrees.
        height, width: In cells.
        block_height, block_width: Of the blocks that it is stored in.
    """

    from_map: tuple[float, ...]
    crs: str
    height: int
    width: int
    block_height: int
    block_width: int

    @classmethod
    def of(cls, raster: Any, transform: Any = None) -> RasterGrid:
        """The grid of an opened raster.

        Args:
            raster: As rasterio opens it.
            transform: Where its cells lie, if the raster itself does not say.
        """
        crs = "" if raster.crs is None or raster.crs.to_epsg() == 4326 else raster.crs.to_wkt()
        inverse = ~(transform or raster.transform)
        return cls(tuple(inverse)[:6], crs, raster.height, raster.width, *raster.block_shapes[0])

    def cells(self, lat: Degrees, lon: Degrees) -> tuple[Cells, Cells]:
        """The row and column of each place; both -1 where it has none or lies beyond the edges."""
        there = np.isfinite(lat) & np.isfinite(lon)
        x, y = lon[there], lat[there]
        if self.crs:
            warp: Any = require("rasterio.warp", "Reading rasters")
            x, y = (np.asarray(values) for values in warp.transform("EPSG:4326", self.crs, x, y))
        a, b, c, d, e, f = self.from_map
        with np.errstate(invalid="ignore"):
            column, row = np.floor(a * x + b * y + c), np.floor(d * x + e * y + f)
            inside = (row >= 0) & (row < self.height) & (column >= 0) & (column < self.width)
        rows, columns = (np.full(len(lat), -1, dtype=np.int64) for _ in range(2))
        placed = np.flatnonzero(there)[inside]
        rows[placed], columns[placed] = row[inside].astype(np.int64), column[inside].astype(np.int64)
        return rows, columns


@dataclass(frozen=True)
class OrderedPlaces:
    """Places of one grid in the order in which it is read.

    Args:
        grid: The grid.
        rows, columns: The cell of each place, -1 beyond the edges.
        order: The places inside, from north to south.
        strips: For each strip the first and the last of `order`, and its first and last row.
    """

    grid: RasterGrid
    rows: Cells
    columns: Cells
    order: Cells
    strips: tuple[tuple[int, int, int, int], ...]

    @classmethod
    def of(cls, grid: RasterGrid, lat: Degrees, lon: Degrees) -> OrderedPlaces:
        """The places in the order of a grid."""
        rows, columns = grid.cells(lat, lon)
        inside = np.flatnonzero(rows >= 0)
        order = inside[np.argsort(rows[inside], kind="stable")]
        high = max(STRIP_CELLS // max(grid.width, 1) // grid.block_height, 1) * grid.block_height
        strip = rows[order] // high
        begins = np.flatnonzero(np.diff(strip, prepend=-1))
        ends = np.append(begins[1:], len(order))[: len(begins)]
        strips = [
            (int(begin), int(end), int(strip[begin]) * high, min((int(strip[begin]) + 1) * high, grid.height))
            for begin, end in zip(begins, ends, strict=True)
        ]
        return cls(grid, rows, columns, order, tuple(strips))

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which places lie beyond the edges, or nowhere."""
        return self.rows < 0

    def cut(self, side_px: int) -> NDArray[np.bool_]:
        """Of which places inside the square of a side reaches beyond the edges."""
        before, after = side_px // 2, side_px - side_px // 2 - 1
        near_row = (self.rows < before) | (self.rows + after >= self.grid.height)
        near_column = (self.columns < before) | (self.columns + after >= self.grid.width)
        return ~self.outside & (near_row | near_column)

    def windows(self) -> Iterator[tuple[NDArray[np.int64], int, int, int, int]]:
        """Windows that hold all places, each read once: its places, its top, left, height and width."""
        wide, width = self.grid.block_width, self.grid.width
        for begin, end, top, bottom in self.strips:
            places = self.order[begin:end]
            block = self.columns[places] // wide
            touched = np.unique(block)
            across = int(touched[-1] - touched[0]) + 1
            one_by_one = len(touched) < _SPARSE * across
            for first, last in ((one, one) for one in touched) if one_by_one else ((touched[0], touched[-1]),):
                own = places[(block >= first) & (block <= last)] if one_by_one else places
                rows = self.rows[own]
                high = self.grid.block_height  # blocks above the first and below the last place are left alone
                start = max(top, int(rows[0]) // high * high)
                stop = min(bottom, (int(rows[-1]) // high + 1) * high)
                left, right = int(first) * wide, min((int(last) + 1) * wide, width)
                yield own, start, left, stop - start, right - left


def values_at(raster: Any, places: OrderedPlaces, nodata: float | None = None) -> Values:
    """Places x bands: the value of the cell that holds each place."""
    found = np.full((len(places.rows), raster.count), np.nan, dtype=np.float32)
    for own, top, left, height, width in places.windows():
        values = read_window(raster, top, left, height, width, nodata)
        found[own] = values[:, places.rows[own] - top, places.columns[own] - left].T
    return found


def squares_at(raster: Any, places: OrderedPlaces, side_px: int, nodata: float | None = None) -> Values:
    """Places x bands x side x side: the square of cells around each place, padded by NaN beyond the edges."""
    found = np.full((len(places.rows), raster.count, side_px, side_px), np.nan, dtype=np.float32)
    before, after = side_px // 2, side_px - side_px // 2 - 1
    steps = np.arange(side_px)
    at_once = max(_GATHERED // (raster.count * side_px * side_px), 1)
    for own, top, left, height, width in places.windows():
        first, start = top - before, left - before
        last, end = top + height + after, left + width + after
        window = np.full((raster.count, last - first, end - start), np.nan, dtype=np.float32)
        upper, lower = max(first, 0), min(last, raster.height)
        west, east = max(start, 0), min(end, raster.width)
        values = read_window(raster, upper, west, lower - upper, east - west, nodata)
        window[:, upper - first : lower - first, west - start : east - start] = values
        for begin in range(0, len(own), at_once):
            some = own[begin : begin + at_once]
            rows = (places.rows[some] - top)[:, None, None] + steps[:, None]
            columns = (places.columns[some] - left)[:, None, None] + steps
            found[some] = window[:, rows, columns].transpose(1, 0, 2, 3)
    return found


def read_window(raster: Any, top: int, left: int, height: int, width: int, nodata: float | None = None) -> Values:
    """A window of a raster for each of its bands, NaN where it has no data.

    Args:
        raster: As rasterio opens it.
        top: The first row.
        left: The first column.
        height: How many rows.
        width: How many columns.
        nodata: A value that stands for nothing, besides what the raster itself says.
    """
    window = ((top, top + height), (left, left + width))
    if _has_masks(raster):
        masked = raster.read(window=window, masked=True)
        values = np.asarray(masked.astype(np.float32).filled(np.nan))
        empty = None if nodata is None else np.asarray(masked.data) == nodata
    else:
        raw = raster.read(window=window)
        values = raw.astype(np.float32)
        absent = [one for one in {raster.nodata, nodata} if one is not None and _can_hold(raw.dtype, one)]
        empty = None if not absent else np.isin(raw, np.array(absent).astype(raw.dtype))
    if empty is not None:
        values[empty] = np.nan
    return values


def _can_hold(dtype: np.dtype[Any], value: float) -> bool:
    """Whether a value can stand in cells of a type; NaN is nothing in any case."""
    if np.isnan(value):
        return False
    if dtype.kind not in "iu":
        return True
    bounds = np.iinfo(dtype)
    return bool(bounds.min <= value <= bounds.max)


def _has_masks(raster: Any) -> bool:
    """Whether a raster says in other ways than by a value of its own where it has no data."""
    return any(flag.name not in ("all_valid", "nodata") for flags in raster.mask_flag_enums for flag in flags)
