"""A million points through 27 rasters of the size of GeoLifeCLEF's, beside a loop over rasterio's `sample`.

The loop is measured on a part of the points, in the same run, and its time scaled to all of them; `points_of_the_loop`
says how many. Its values are compared with ours.
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

from fieldmark.datasets.geolifeclef.layers import LAYERS
from fieldmark.datasets.gridded import Rasters
from fieldmark.release import Release

POINTS, POINTS_OF_THE_LOOP, SQUARES, SIDE_PX = 1_000_000, 4_000, 20_000, 16
# The contiguous United States at 30 arc seconds.
WEST, NORTH, CELL, HEIGHT, WIDTH = -124.8, 49.4, 1 / 120, 2988, 6948
NODATA = -2_147_483_647
WANTED = 20.0


def run() -> dict[str, Any]:
    """Times and peak memory, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _write_rasters(root)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return dict(pool.apply(_measure, (root,)))


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
    rasters.at(lat[:1000], lon[:1000])
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
    start = time.perf_counter()
    plain = _loop(root, lat[:POINTS_OF_THE_LOOP], lon[:POINTS_OF_THE_LOOP])
    loop = (time.perf_counter() - start) * POINTS / POINTS_OF_THE_LOOP
    beyond = lat[:POINTS_OF_THE_LOOP] < NORTH - HEIGHT * CELL
    expected = np.where((plain == NODATA) | beyond[:, None], np.nan, plain).astype(np.float32)
    return {
        "points": POINTS,
        "rasters": len(LAYERS),
        "cells_of_a_raster": HEIGHT * WIDTH,
        "points_of_the_loop": POINTS_OF_THE_LOOP,
        "seconds": round(ours, 1),
        "seconds_of_the_loop": round(loop),
        "times_faster_than_the_loop": round(loop / ours),
        "wanted_times_faster": WANTED,
        "same_values": bool(np.array_equal(found[:POINTS_OF_THE_LOOP], expected, equal_nan=True)),
        "peak_memory_mib": round(after / 2**20),
        "peak_memory_before_mib": round(before / 2**20),
        "values_mib": round(found.nbytes / 2**20),
        "squares": f"{SQUARES:,} of {SIDE_PX} x {SIDE_PX} cells x {len(LAYERS)}",
        "seconds_of_squares": round(squares_s, 1),
    }


def _loop(root: Path, lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """The plain loop: every raster is asked for one point after the other."""
    columns = []
    for name in LAYERS:
        with rasterio.open(root / f"{name}.tif") as raster:
            columns.append([value[0] for value in raster.sample(zip(lon, lat, strict=True))])
    return np.array(columns, dtype=np.float64).T


def _peak_bytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
