"""A million points through 27 rasters of the size of GeoLifeCLEF's, beside a loop over rasterio's `sample`.

The loop is measured in the same run on a part of the points and of the rasters (`points_of_the_loop`,
`rasters_of_the_loop`), and its time scaled to all of them. As many points go through each raster before the clock
starts, so that GDAL has its blocks in memory: for all points the loop would not be faster. Its values are compared
with ours.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from rasterio.transform import from_origin

from fieldmark.releases.geolifeclef.layers import LAYERS
from fieldmark.releases.gridded import Rasters
from fieldmark.storage.release import Release

POINTS, POINTS_OF_THE_LOOP, RASTERS_OF_THE_LOOP = 1_000_000, 20_000, 4
SQUARES, SIDE_PX = 10_000, 16
# The contiguous United States at 30 arc seconds.
WEST, NORTH, CELL, HEIGHT, WIDTH = -124.8, 49.4, 1 / 120, 2988, 6948
NODATA = -2_147_483_647
WANTED = 20.0


def run() -> dict[str, Any]:
    """Times and peak memory, in a process of its own; another one writes, because peaks are handed down."""
    with tempfile.TemporaryDirectory() as folder:
        for job in (_write_rasters, _measure):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                result = pool.apply(job, (Path(folder),))
    return dict(result or {})


def _write_rasters(root: Path) -> None:
    """Smooth maps as climate and soil are, compressed in tiles; the west of each is without values."""
    rng = np.random.default_rng(0)
    up, across = np.linspace(0, 9, HEIGHT)[:, None], np.linspace(0, 21, WIDTH)
    smooth = (np.sin(up) * 90 + np.cos(across) * 60 + np.sin(up * across / 9) * 40).astype(np.int32)
    noise = rng.integers(0, 6, (HEIGHT, WIDTH), dtype=np.int32)
    for number, name in enumerate(LAYERS):
        values = smooth * (1 + number % 5) + np.roll(noise, number, axis=1)
        values[:, : WIDTH // 50] = NODATA
        facts = {"count": 1, "height": HEIGHT, "width": WIDTH, "dtype": "int32", "crs": "EPSG:4326"}
        how = {"tiled": True, "blockxsize": 256, "blockysize": 256, "compress": "deflate", "zlevel": 1}
        transform = from_origin(WEST, NORTH, CELL, CELL)
        with rasterio.open(root / f"{name}.tif", "w", driver="GTiff", transform=transform, **facts, **how) as raster:
            raster.write(values, 1)


def _measure(root: Path) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    lat = rng.uniform(NORTH - HEIGHT * CELL - 0.2, NORTH, POINTS)  # some lie south of the rasters
    lon = rng.uniform(WEST, WEST + WIDTH * CELL, POINTS)
    nodata = {f"{name}.tif": float(NODATA) for name in LAYERS}
    rasters = Rasters(Release(root), tuple(nodata), {}, nodata=nodata)
    before = _peak_bytes()
    ours = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        found = rasters.at(lat, lon)[:, :, 0, 0]
        ours = min(ours, time.perf_counter() - start)
    after = _peak_bytes()
    start = time.perf_counter()
    squares = rasters.at(lat[:SQUARES], lon[:SQUARES], SIDE_PX)
    squares_s = time.perf_counter() - start
    del squares
    seconds, plain = _loop(root, lat[: 2 * POINTS_OF_THE_LOOP], lon[: 2 * POINTS_OF_THE_LOOP])
    loop = seconds / (POINTS_OF_THE_LOOP * RASTERS_OF_THE_LOOP) * POINTS * len(LAYERS)
    timed = slice(POINTS_OF_THE_LOOP, 2 * POINTS_OF_THE_LOOP)
    beyond = lat[timed] < NORTH - HEIGHT * CELL
    expected = np.where((plain == NODATA) | beyond[:, None], np.nan, plain).astype(np.float32)
    same = np.array_equal(found[timed, :RASTERS_OF_THE_LOOP], expected, equal_nan=True)
    return {
        "points": POINTS,
        "rasters": len(LAYERS),
        "cells_of_a_raster": HEIGHT * WIDTH,
        "points_of_the_loop": POINTS_OF_THE_LOOP,
        "rasters_of_the_loop": RASTERS_OF_THE_LOOP,
        "seconds": round(ours, 1),
        "seconds_of_the_loop": round(loop),
        "times_faster_than_the_loop": round(loop / ours),
        "wanted_times_faster": WANTED,
        "same_values": bool(same),
        "peak_memory_mib": round(after / 2**20),
        "peak_memory_before_mib": round(before / 2**20),
        "values_mib": round(found.nbytes / 2**20),
        "squares": f"{SQUARES:,} of {SIDE_PX} x {SIDE_PX} cells x {len(LAYERS)}",
        "seconds_of_squares": round(squares_s, 1),
    }


def _loop(root: Path, lat: np.ndarray, lon: np.ndarray) -> tuple[float, np.ndarray]:
    """The plain loop over the second half of the points, one after the other; seconds, and points x rasters."""
    columns, seconds, half = [], 0.0, len(lat) // 2
    for name in LAYERS[:RASTERS_OF_THE_LOOP]:
        with rasterio.open(root / f"{name}.tif") as raster:
            for _ in raster.sample(zip(lon[:half], lat[:half], strict=True)):
                pass
            start = time.perf_counter()
            columns.append([value[0] for value in raster.sample(zip(lon[half:], lat[half:], strict=True))])
            seconds += time.perf_counter() - start
    return seconds, np.array(columns, dtype=np.float64).T


def _peak_bytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
