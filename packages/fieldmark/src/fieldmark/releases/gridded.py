"""Layers of gridded data: rasters that are looked up by place, and patches that lie on disk by id.

```
rasters/<name>.tif                          one raster for each thing that is known of all places
patches/<CD>/<AB>/<XXXXABCD><suffix>        GeoLifeCLEF: the last two digits of the id, then the two before
```
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.registry import require
from fieldmark.releases.raster_values import OrderedPlaces, RasterGrid, Values, squares_at, values_at
from fieldmark.storage.release import Release
from fieldmark.tables.inputs import KeyedBy, Layer
from fieldmark.tables.numbers import parse_float
from fieldmark.work.blocks import map_blocks
from fieldmark.work.engines import cluster

Place = tuple[float, float]

RASTERS_FOLDER = "rasters"
GEO_METADATA = "GeoMetaData.csv"
# GeoTIFF, the grids of the R package raster (with a .gri beside each), and ESRI's text.
RASTER_ENDINGS = (".tif", ".tiff", ".grd", ".asc")
# What GDAL may keep in memory of the rasters it has read, in MiB: memory must not grow with their size.
CACHE_MIB = 64
# How many places a worker of a cluster is given at once, and how many cells of squares around them.
BLOCK_PLACES, BLOCK_CELLS = 200_000, 4_000_000


@dataclass(frozen=True, eq=False)
class PlaceTable:
    """Latitude and longitude of many observations, found by id; millions cost little.

    Args:
        ids: The observations, each once.
        lat, lon: Their places, NaN where one has none.
    """

    ids: pl.Series
    lat: NDArray[np.float64]
    lon: NDArray[np.float64]

    @classmethod
    def of(cls, table: pl.DataFrame) -> PlaceTable:
        """The places of a table with `observation_id`, `lat` and `lon`."""
        lat, lon = (table[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in ("lat", "lon"))
        return cls(table["observation_id"], lat, lon)

    @cached_property
    def _rows(self) -> pl.DataFrame:
        return pl.DataFrame({"id": self.ids}).with_row_index("row")

    def coordinates(self, ids: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Latitude and longitude of each id, NaN for those that are not there."""
        asked = pl.DataFrame({"id": pl.Series(ids, dtype=pl.String)})
        rows = asked.join(self._rows, on="id", how="left", maintain_order="left")["row"]
        there = rows.is_not_null().to_numpy()
        lat, lon = np.full(len(asked), np.nan), np.full(len(asked), np.nan)
        found = rows.drop_nulls().to_numpy()
        lat[there], lon[there] = self.lat[found], self.lon[found]
        return lat, lon

    def __getstate__(self) -> dict[str, Any]:
        return {"ids": self.ids, "lat": self.lat, "lon": self.lon}


@dataclass(frozen=True)
class Rasters(Layer):
    """What rasters say at the place of an observation, and around it.

    Many places are looked up at once, and every part of a raster is read once (`raster_sampling.py`). Where a raster
    has no value, and beyond its edges, there is NaN.

    Args:
        release: The root.
        paths: The rasters, in the order of the values.
        places: Latitude and longitude of each observation that has them.
        side_px: The side of the square around a place, in cells; 1 for the cell itself.
        nodata: By path, a value that stands for nothing, where the raster itself does not say so.
    """

    release: Release
    paths: tuple[str, ...]
    places: PlaceTable | Mapping[str, Place]
    side_px: int = 1
    nodata: Mapping[str, float] = field(default_factory=dict)
    input: ClassVar[str] = "environment"
    by: ClassVar[KeyedBy] = "observation_id"

    @classmethod
    def of(cls, release: Release, paths: Sequence[str], table: pl.DataFrame, **options: Any) -> Rasters:
        """The rasters at the places of a table with `observation_id`, `lat` and `lon`."""
        return cls(release, tuple(paths), PlaceTable.of(table), **options)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the numbers are called: the rasters, with the number of the band where one has several."""
        names: list[str] = []
        for path, bands in zip(self.paths, self._bands, strict=True):
            stem = PurePosixPath(path).stem
            names += [stem] if bands == 1 else [f"{stem}_{band}" for band in range(1, bands + 1)]
        return tuple(names)

    @cached_property
    def _bands(self) -> tuple[int, ...]:
        """How many bands each raster has."""
        counts = []
        for path in self.paths:
            with self._opened(path) as (raster, _):
                counts.append(int(raster.count))
        return tuple(counts)

    def read(self, ids: Sequence[str]) -> list[Values | None]:
        """The bands of all rasters x side x side around each place; None where no raster has a value."""
        values = self._values(ids, self.side_px)
        return [None if np.isnan(one).all() else one for one in values]

    def numbers(self, ids: Sequence[str]) -> NDArray[np.float64]:
        """The value of each band at each place."""
        return self._values(ids, 1)[:, :, 0, 0].astype(np.float64)

    def outside(self, ids: Sequence[str]) -> dict[str, int]:
        """For each raster, how many of some observations lie beyond its edges; those without a place count as well."""
        lat, lon = self.coordinates(ids)
        return {path: int(places.outside.sum()) for path, places in self.ordered(lat, lon)}

    def cut_at_edges(self, ids: Sequence[str]) -> dict[str, int]:
        """For each raster, of how many observations inside the square around them reaches beyond its edges."""
        lat, lon = self.coordinates(ids)
        return {path: int(places.cut(self.side_px).sum()) for path, places in self.ordered(lat, lon)}

    def coordinates(self, ids: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Latitude and longitude of each observation, NaN where it has none."""
        if isinstance(self.places, PlaceTable):
            return self.places.coordinates(ids)
        nowhere = (np.nan, np.nan)
        lat, lon = np.array([self.places.get(one, nowhere) for one in ids], dtype=np.float64).reshape(-1, 2).T
        return lat, lon

    def at(self, lat: NDArray[np.float64], lon: NDArray[np.float64], side_px: int = 1) -> Values:
        """Places x bands x side x side: what the rasters say at any places."""
        found = np.empty((len(lat), len(self.names), side_px, side_px), dtype=np.float32)
        executor = cluster()
        parts = [np.arange(len(lat))] if executor is None else _parts_by_latitude(lat, side_px)
        blocks = [(place, rows) for place in range(len(self.paths)) for rows in parts]
        # The places of a block lie beside each other, so that a worker reads its part of a raster and no other.
        asked = (RasterBlock(self.paths[place], lat[rows], lon[rows]) for place, rows in blocks)
        sampling = RasterSampling(replace(self, places={}), side_px)
        lasts = np.cumsum(self._bands)
        for (place, rows), values in zip(blocks, map_blocks(sampling, asked, executor), strict=True):
            found[rows, lasts[place] - self._bands[place] : lasts[place]] = values
        return found

    def sample(self, path: str, places: Callable[[RasterGrid], OrderedPlaces], side_px: int) -> Values:
        """Places x bands x side x side of one raster.

        Args:
            path: The raster.
            places: The places in the order of its grid.
            side_px: The side of the square around each.

        Raises:
            InputError: When the raster cannot be read.
        """
        with self._opened(path) as (raster, transform):
            ordered, nodata = places(RasterGrid.of(raster, transform)), self.nodata.get(path)
            try:
                if side_px == 1:
                    return values_at(raster, ordered, nodata)[:, :, None, None]
                return squares_at(raster, ordered, side_px, nodata)
            except raster_errors() as error:
                raise self._broken(path, error) from error

    def _values(self, ids: Sequence[str], side_px: int) -> Values:
        return self.at(*self.coordinates(ids), side_px)

    def ordered(self, lat: NDArray[np.float64], lon: NDArray[np.float64]) -> Iterator[tuple[str, OrderedPlaces]]:
        """Each raster, and the cells of some places in it."""
        for path in self.paths:
            with self._opened(path) as (raster, transform):
                grid = RasterGrid.of(raster, transform)
            yield path, OrderedPlaces.of(grid, lat, lon)

    @contextmanager
    def _opened(self, path: str) -> Iterator[tuple[Any, Any]]:
        """An opened raster, and where its cells lie if a table beside it says so."""
        rasterio: Any = require("rasterio", "Reading rasters")
        with self.release.local_copy(path) as local:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
                try:
                    with rasterio.Env(GDAL_CACHEMAX=CACHE_MIB):
                        raster = rasterio.open(local)
                except raster_errors() as error:
                    raise self._broken(path, error) from error
            with rasterio.Env(GDAL_CACHEMAX=CACHE_MIB), raster:
                yield raster, None if raster.crs is not None else stated_transform(self.release, path, raster)

    def _broken(self, path: str, error: Exception) -> InputError:
        return InputError(self.release.where(path), found=f"no readable raster ({error})", expected="a GeoTIFF")


class RasterBlock(NamedTuple):
    """One raster, and places to look up in it."""

    path: str
    lat: NDArray[np.float64]
    lon: NDArray[np.float64]


class RasterSampling:
    """What is done with a block of places, wherever it is done.

    Args:
        rasters: The rasters.
        side_px: The side of the square around each place.
    """

    def __init__(self, rasters: Rasters, side_px: int) -> None:
        self.rasters, self.side_px = rasters, side_px
        self._order: tuple[RasterGrid, RasterBlock, OrderedPlaces] | None = None

    def __call__(self, block: RasterBlock) -> Values:
        """Places x bands x side x side."""
        return self.rasters.sample(block.path, lambda grid: self._ordered(grid, block), self.side_px)

    def _ordered(self, grid: RasterGrid, block: RasterBlock) -> OrderedPlaces:
        """The places of a block in the order of a grid; rasters of one grid follow each other and share it."""
        if self._order is not None and self._order[0] == grid and _same_places(self._order[1], block):
            return self._order[2]
        self._order = (grid, block, OrderedPlaces.of(grid, block.lat, block.lon))
        return self._order[2]


def _same_places(one: RasterBlock, other: RasterBlock) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in ((one.lat, other.lat), (one.lon, other.lon)))


def _parts_by_latitude(lat: NDArray[np.float64], side_px: int) -> list[NDArray[np.int64]]:
    """Places in parts for the workers of a cluster, from north to south, those without a place last."""
    each = max(min(BLOCK_PLACES, BLOCK_CELLS // side_px**2), 1)
    order = np.argsort(-lat, kind="stable")
    return [order[start : start + each] for start in range(0, len(order), each)]


def stated_transform(release: Release, path: str, raster: Any) -> Any:
    """Where the cells of a raster without a coordinate system lie, by `GeoMetaData.csv` in its folder.

    A line holds a name; the west and south ends; rows and columns; and how wide and high a cell is. Of several lines,
    the one counts whose rows and columns are those of the raster. None where there is no such table.

    Raises:
        InputError: When no line of the table fits the raster.
    """
    beside = f"{PurePosixPath(path).parent}/{GEO_METADATA}".removeprefix("./")
    if not release.exists(beside):
        return None
    rasterio: Any = require("rasterio", "Reading rasters")
    for line in release.read(beside).decode("utf-8", "replace").splitlines()[1:]:
        fields = line.split(";")
        try:
            west, south, rows, columns, wide, high = (parse_float(one.strip()) for one in fields[1:7])
        except ValueError:
            continue
        if (rows, columns) == (raster.height, raster.width):
            return rasterio.Affine(wide, 0.0, west, 0.0, -abs(high), south + rows * abs(high))
    found = f"no line for a raster of {raster.height} x {raster.width} cells"
    expected = "a name, west, south, rows, columns, width and height of a cell, between semicolons"
    raise InputError(release.where(beside), found=found, expected=expected)


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


@dataclass(frozen=True)
class PatchFiles(Layer):
    """Patches that lie on disk, a file for each observation: `.npy`, GeoTIFF, or pictures.

    Args:
        release: The root.
        folder: Where the patches lie.
        suffix: What follows the id in their names: `.npy`, `_altitude.tif`, `_rgb.jpg`.
        input: The input they belong to.
        bands: Which bands of a `.npy` file count, all unless given.
        code_bands, codes: See `features.patches.PatchStatistics`.
    """

    release: Release
    folder: str
    suffix: str
    input: str  # type: ignore[misc]
    code_bands: tuple[int, ...] = ()
    codes: int = 0
    bands: tuple[int, ...] = ()
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
        there = [self.release.exists(path) for path in paths]
        read = self.release.read_many(path for path, exists in zip(paths, there, strict=True) if exists)
        found = [next(read) if exists else None for exists in there]
        return [_chosen_bands(data, self.bands) if data and self.bands else data for data in found]


def _chosen_bands(data: bytes, bands: tuple[int, ...]) -> bytes:
    """Some bands of a `.npy` file, whose last axis they are, as such a file; other bytes are left as they are."""
    try:
        values = np.load(io.BytesIO(data), allow_pickle=False)
    except ValueError:
        return data
    if values.ndim != 3 or values.shape[2] <= max(bands):
        return data
    kept = io.BytesIO()
    np.save(kept, np.ascontiguousarray(values[..., list(bands)]))
    return kept.getvalue()
