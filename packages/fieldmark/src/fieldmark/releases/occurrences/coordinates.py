"""Coordinates of tables as degrees: from any coordinate system that PROJ knows, or from a grid in metres of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.registry import require
from fieldmark.splits.grids import RADIUS_M

Degrees = NDArray[np.float64]


def to_degrees(x: Degrees, y: Degrees, crs: str, where: object) -> tuple[Degrees, Degrees]:
    """Latitude and longitude of points of a coordinate system; NaN stays NaN.

    Args:
        x: Eastings.
        y: Northings.
        crs: What PROJ knows it by: `EPSG:21781`, or a definition that begins with `+proj=`.
        where: What to call the table in messages.

    Raises:
        InputError: When there is no such system, or when no point of the table can lie in it.
    """
    rasterio: Any = require("rasterio", "Reading coordinates that are not degrees")
    warp: Any = require("rasterio.warp", "Reading coordinates that are not degrees")
    there = np.isfinite(x) & np.isfinite(y)
    lat, lon = np.full(len(x), np.nan), np.full(len(x), np.nan)
    try:
        found_lon, found_lat = warp.transform(crs, "EPSG:4326", x[there], y[there])
    except (rasterio.errors.CRSError, rasterio.errors.RasterioError) as error:
        expected = "a coordinate system that is known, such as EPSG:32632"
        raise InputError(where, found=f"crs = {crs!r}", expected=expected) from error
    lat[there], lon[there] = found_lat, found_lon
    possible = (np.abs(lat) <= 90) & (np.abs(lon) <= 180)
    if there.any() and not possible.any():
        found = f"coordinates such as {x[there][0]:g}, {y[there][0]:g}"
        raise InputError(where, found=found, expected=f"points of {crs}")
    return np.where(possible, lat, np.nan), np.where(possible, lon, np.nan)


@dataclass(frozen=True)
class OwnGrid:
    """A grid in metres whose place on Earth is not known.

    Its middle is put at 0 degrees north and east, where a degree is as long in both directions: distances and blocks
    are right, places on Earth are not.

    Args:
        middle: Easting and northing of its middle.
    """

    middle: tuple[float, float]

    @classmethod
    def around(cls, x: Degrees, y: Degrees) -> OwnGrid:
        """The grid whose middle is that of some points."""
        return cls(((float(np.nanmin(x)) + float(np.nanmax(x))) / 2, (float(np.nanmin(y)) + float(np.nanmax(y))) / 2))

    def to_degrees(self, x: Degrees, y: Degrees) -> tuple[Degrees, Degrees]:
        """Latitude and longitude of points.

        >>> lat, lon = OwnGrid((600_000.0, 200_000.0)).to_degrees(np.array([600_000.0]), np.array([311_195.0]))
        >>> round(float(lat[0]), 2), float(lon[0])
        (1.0, 0.0)
        """
        return np.degrees((y - self.middle[1]) / RADIUS_M), np.degrees((x - self.middle[0]) / RADIUS_M)


def are_degrees(x: Degrees, y: Degrees) -> bool:
    """Whether coordinates can be longitudes and latitudes."""
    return bool((np.nan_to_num(np.abs(x)) <= 180).all() and (np.nan_to_num(np.abs(y)) <= 90).all())
