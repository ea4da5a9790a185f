"""A small region with maps: three plants along two gradients, records of presence and surveyed sites."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import rasterio
from rasterio.transform import from_origin

SPECIES = ("Abies alba", "Betula pendula", "Carex flava")
SOUTH, WEST, SIDE, CELLS = 46.0, 7.0, 2.0, 40


def warmth_and_wetness(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """What the two maps say."""
    return np.column_stack([20 - 6 * (lat - SOUTH), 1000 + 300 * np.sin(3 * (lon - WEST))])


def chances(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """Where each of the three lives."""
    warmth, wetness = warmth_and_wetness(lat, lon).T
    return np.column_stack(
        [
            np.exp(-((warmth - 10) ** 2) / 8),
            np.exp(-((warmth - 18) ** 2) / 8),
            np.exp(-((wetness - 1250) ** 2) / 2e4),
        ]
    )


def write_region(folder: Path) -> Path:
    """Records, sites and rasters as `occurrences` opens them."""
    rng = np.random.default_rng(0)
    (folder / "rasters").mkdir(parents=True)
    step = SIDE / CELLS
    lon, lat = np.meshgrid(WEST + (np.arange(CELLS) + 0.5) * step, SOUTH + SIDE - (np.arange(CELLS) + 0.5) * step)
    values = warmth_and_wetness(lat.ravel(), lon.ravel()).reshape(CELLS, CELLS, 2).astype(np.float32)
    for number, name in enumerate(("warmth", "wetness")):
        settings = {"driver": "GTiff", "height": CELLS, "width": CELLS, "count": 1, "dtype": "float32"}
        place = {"crs": "EPSG:4326", "transform": from_origin(WEST, SOUTH + SIDE, step, step)}
        with rasterio.open(folder / "rasters" / f"{name}.tif", "w", **settings, **place) as raster:
            raster.write(values[..., number], 1)
    y, x = SOUTH + SIDE * rng.random(900), WEST + SIDE * rng.random(900)
    row, code = np.nonzero(rng.random((900, 3)) < 0.4 * chances(y, x))
    records = {"species": [SPECIES[one] for one in code], "lat": y[row], "lon": x[row]}
    pl.DataFrame({"id": [f"r{i}" for i in range(len(row))], **records}).write_csv(folder / "occurrences.csv")
    y, x = SOUTH + SIDE * rng.random(120), WEST + SIDE * rng.random(120)
    found = (rng.random((120, 3)) < chances(y, x)).astype(int)
    sites = {name: found[:, one] for one, name in enumerate(SPECIES)}
    pl.DataFrame({"site_id": [f"s{i}" for i in range(120)], "lat": y, "lon": x, **sites}).write_csv(
        folder / "sites.csv"
    )
    return folder
