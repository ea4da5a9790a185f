"""Layers of gridded data: rasters that are looked up by place, and patches that lie on disk by id.

```
rasters/<name>.tif                          one raster for each thing that is known of all places
patches/<CD>/<AB>/<XXXXABCD><suffix>        GeoLifeCLEF: the last two digits of the id, then the two before
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.datasets.inputs import KeyedBy, Layer
from fieldmark.errors import InputError
from fieldmark.foundation.registry import require
from fieldmark.release import Release

Values = NDArray[np.float32]
Cells = NDArray[np.int64]
Place = tuple[float, float]

RASTERS_FOLDER = "rasters"
# GeoTIFF, the grids of the R package raster (with a .gri beside each), and ESRI's text.
RASTER_ENDINGS = (".tif", ".tiff", ".grd", ".asc")
# What GDAL may keep in memory of the rasters it has read, in MiB: memory must not grow with their size.
CACHE_MIB = 64


@dataclass(frozen=True)
class Rasters(Layer):
    """What rasters say at the place of an observation, and around it.

    Many places are looked up at once, and every block of a raster is read once. Where a raster has no value, and beyond
    its edges, there is NaN.

    Args:
        release: The root.
        paths: The rasters, in the order of the values.
        places: Latitude and longitude of each observation that has them.
        side_px: The side of the square around a place, in cells; 1 for the cell itself.
    """

    release: Release
    paths: tuple[str, ...]
    places: Mapping[str, Place]
    side_px: int = 1
    input: ClassVar[str] = "environment"
    by: ClassVar[KeyedBy] = "observation_id"

    @classmethod
    def of(cls, release: Release, paths: Sequence[str], table: pl.DataFrame, *, side_px: int = 1) -> Rasters:
        """The rasters at the places of a table with `observation_id`, `lat` and `lon`."""
        placed = table.drop_nulls(["lat", "lon"]).select("observation_id", "lat", "lon")
        return cls(release, tuple(paths), {one: (lat, lon) for one, lat, lon in placed.iter_rows()}, side_px)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the numbers are called: the rasters, with the number of the band where one has several."""
        names: list[str] = []
        for path in self.paths:
            stem = PurePosixPath(path).stem
            with self._opened(path) as raster:
                bands = raster.count
            names += [stem] if bands == 1 else [f"{stem}_{band}" for band in range(1, bands + 1)]
        return tuple(names)

    def read(self, ids: Sequence[str]) -> list[Values | None]:
        """The bands of all rasters x side x side around each place; None where no raster has a value."""
        values = self._values(ids, self.side_px)
        return [None if np.isnan(one).all() else one for one in values]

    def numbers(self, ids: Sequence[str]) -> NDArray[np.float64]:
        """The value of each band at each place."""
        return self._values(ids, 1)[:, :, 0, 0].astype(np.float64)

    def outside(self, ids: Sequence[str]) -> dict[str, int]:
        """For each raster, how many of some observations lie beyond its edges; those without a place count as well."""
        lat, lon = self._coordinates(ids)
        counts = {}
        for path in self.paths:
            with self._opened(path) as raster:
                counts[path] = int((~_inside(raster, *_cells(raster, lat, lon))).sum())
        return counts

    def _values(self, ids: Sequence[str], side_px: int) -> Values:
        lat, lon = self._coordinates(ids)
        found = []
        for path in self.paths:
            with self._opened(path) as raster:
                rows, columns = _cells(raster, lat, lon)
                try:
                    if side_px == 1:
                        found.append(_at_cells(raster, rows, columns))
                    else:
                        found.append(_around_cells(raster, rows, columns, side_px))
                except raster_errors() as error:
                    raise self._broken(path, error) from error
        return np.concatenate(found, axis=1)

    def _coordinates(self, ids: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        nowhere = (np.nan, np.nan)
        lat, lon = np.array([self.places.get(one, nowhere) for one in ids], dtype=np.float64).reshape(-1, 2).T
        return lat, lon

    @contextmanager
    def _opened(self, path: str) -> Iterator[Any]:
        rasterio: Any = require("rasterio", "Reading rasters")
        local = Path(self.release.where(path))
        try:
            with rasterio.Env(GDAL_CACHEMAX=CACHE_MIB):
                raster = rasterio.open(local if local.is_file() else self.release.open(path))
        except raster_errors() as error:
            raise self._broken(path, error) from error
        with rasterio.Env(GDAL_CACHEMAX=CACHE_MIB), raster:
            yield raster

    def _broken(self, path: str, error: Exception) -> InputError:
        return InputError(self.release.where(path), found=f"no readable raster ({error})", expected="a GeoTIFF")


def raster_paths(release: Release, folder: str = "") -> tuple[str, ...]:
    """The rasters of a folder: those in its own folder `rasters`, or else those beside its tables."""
    for place in (f"{folder}/{RASTERS_FOLDER}".lstrip("/"), folder):
        found = [name for name in release.files(place) if name.lower().endswith(RASTER_ENDINGS)]
        if found:
            return tuple(f"{place}/{name}".lstrip("/") for name in found)
    return ()


def raster_errors() -> type[Exception]:
    """What is raised for a raster that cannot be read."""
    rasterio: Any = require("rasterio", "Reading rasters")
    return rasterio.errors.RasterioIOError  # type: ignore[no-any-return]


def _cells(raster: Any, lat: NDArray[np.float64], lon: NDArray[np.float64]) -> tuple[Cells, Cells]:
    """The row and column of each place; -1 where it has none."""
    there = np.isfinite(lat) & np.isfinite(lon)
    x, y = lon[there], lat[there]
    if raster.crs is not None and raster.crs.to_epsg() != 4326:
        warp: Any = require("rasterio.warp", "Reading rasters")
        x, y = (np.asarray(values) for values in warp.transform("EPSG:4326", raster.crs, x, y))
    from_map = ~raster.transform
    columns = from_map.a * x + from_map.b * y + from_map.c
    rows = from_map.d * x + from_map.e * y + from_map.f
    found = []
    for cells in (rows, columns):
        whole = np.full(len(lat), -1, dtype=np.int64)
        inside = np.isfinite(cells) & (np.abs(cells) < 2.0**40)
        whole[np.flatnonzero(there)[inside]] = np.floor(cells[inside]).astype(np.int64)
        found.append(whole)
    return found[0], found[1]


def _inside(raster: Any, rows: Cells, columns: Cells) -> NDArray[np.bool_]:
    return np.asarray((rows >= 0) & (rows < raster.height) & (columns >= 0) & (columns < raster.width))


def _at_cells(raster: Any, rows: Cells, columns: Cells) -> Values:
    """The bands at single cells, as places x bands x 1 x 1; each block of the raster is read once."""
    found = np.full((len(rows), raster.count), np.nan, dtype=np.float32)
    high, wide = raster.block_shapes[0]
    inside = np.flatnonzero(_inside(raster, rows, columns))
    blocks = rows[inside] // high * (raster.width // wide + 1) + columns[inside] // wide
    order = np.argsort(blocks, kind="stable")
    for places in np.split(inside[order], np.flatnonzero(np.diff(blocks[order])) + 1):
        if not len(places):
            continue
        top, left = int(rows[places[0]] // high * high), int(columns[places[0]] // wide * wide)
        values = read_window(raster, top, left, min(high, raster.height - top), min(wide, raster.width - left))
        found[places] = values[:, rows[places] - top, columns[places] - left].T
    return found[:, :, None, None]


def _around_cells(raster: Any, rows: Cells, columns: Cells, side: int) -> Values:
    """The bands in a square around each cell, as places x bands x side x side; beyond the edge there is NaN."""
    found = np.full((len(rows), raster.count, side, side), np.nan, dtype=np.float32)
    inside = np.flatnonzero(_inside(raster, rows, columns))
    for place in inside[np.lexsort((columns[inside], rows[inside]))]:  # neighbors share blocks that are in the cache
        top, left = int(rows[place]) - side // 2, int(columns[place]) - side // 2
        first, last = max(top, 0), min(top + side, raster.height)
        start, end = max(left, 0), min(left + side, raster.width)
        values = read_window(raster, first, start, last - first, end - start)
        found[place, :, first - top : last - top, start - left : end - left] = values
    return found


def read_window(raster: Any, top: int, left: int, height: int, width: int) -> Values:
    """A window of a raster for each of its bands, NaN where it has no data."""
    rows, columns = (top, top + height), (left, left + width)
    return np.asarray(raster.read(window=(rows, columns), masked=True).astype(np.float32).filled(np.nan))


@dataclass(frozen=True)
class PatchFiles(Layer):
    """Patches that lie on disk, a file for each observation: `.npy`, GeoTIFF, or pictures.

    Args:
        release: The root.
        folder: Where the patches lie.
        suffix: What follows the id in their names: `.npy`, `_altitude.tif`, `_rgb.jpg`.
        input: The input they belong to.
        code_bands, codes: See `features.patches.PatchStatistics`.
    """

    release: Release
    folder: str
    suffix: str
    input: str  # type: ignore[misc]
    code_bands: tuple[int, ...] = ()
    codes: int = 0
    by: ClassVar[KeyedBy] = "observation_id"

    def path(self, observation_id: str) -> str:
        """Where the patch of an observation lies."""
        return f"{self.folder}/{observation_id[-2:]}/{observation_id[-4:-2]}/{observation_id}{self.suffix}"

    def read(self, ids: Sequence[str]) -> list[bytes | None]:
        return self.files(ids)

    def there(self, ids: Sequence[str]) -> list[bool]:
        return [self.release.exists(self.path(one)) for one in ids]

    def files(self, ids: Sequence[str]) -> list[bytes | None]:
        paths = [self.path(one) for one in ids]
        return [self.release.read(path) if self.release.exists(path) else None for path in paths]
