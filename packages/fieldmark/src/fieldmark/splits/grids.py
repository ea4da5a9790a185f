"""Places as cells of a grid in metres, all of the same true area.

Latitudes are taken to the authalic sphere first: the sphere with the surface of the WGS84 ellipsoid, on which a strip
between two latitudes has the area that it has on the ellipsoid (Snyder, "Map projections: a working manual", 1987,
equations 3-11 to 3-13):

    q(phi) = (1 - e^2) (sin phi / (1 - e^2 sin^2 phi) + artanh(e sin phi) / e)
    sin beta = q(phi) / q(90 degrees),  R = a sqrt(q(90 degrees) / 2) = 6,371,007 m
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Degrees = NDArray[np.float64]
Cells = tuple[NDArray[np.int64], NDArray[np.int64]]

# WGS84.
SEMI_MAJOR_M, FLATTENING = 6_378_137.0, 1 / 298.257223563
ECCENTRICITY = (FLATTENING * (2 - FLATTENING)) ** 0.5
# Where the organizers of GeoLifeCLEF count from, and how long they take the equator and a meridian to be.
ORIGIN_LONGITUDE = -30.0
EQUATOR_M, MERIDIAN_M = 40_075_017.0, 40_007_863.0
# Cells of the equal-area grid are square at this latitude, as in EASE-Grid 2.0 (EPSG:6933).
STANDARD_PARALLEL = 30.0


def _strip(latitude: Degrees) -> Degrees:
    sine = np.sin(np.radians(latitude))
    e = ECCENTRICITY
    return np.asarray((1 - e**2) * (sine / (1 - (e * sine) ** 2) + np.arctanh(e * sine) / e))


_WHOLE = float(_strip(np.array(90.0)))
RADIUS_M = SEMI_MAJOR_M * (_WHOLE / 2) ** 0.5


def authalic_latitude(latitude: Degrees) -> Degrees:
    """The latitude on the sphere of equal area, in radians.

    >>> np.degrees(authalic_latitude(np.array([0.0, 45.0, 90.0]))).round(4).tolist()
    [0.0, 44.8717, 90.0]
    """
    return np.arcsin(np.clip(_strip(latitude) / _WHOLE, -1, 1))


def square_blocks(latitude: Degrees, longitude: Degrees, side_m: float) -> Cells:
    """Rows and columns of blocks that are square in metres wherever they lie.

    Row r holds the latitudes with r side <= R beta < (r + 1) side. Within a row, columns are counted eastwards from 180
    degrees west in steps of `side_m` along the latitude in its middle, so that a block is as wide as it is high there.
    Blocks of neighboring rows do not lie above each other. All have the same area,
    R^2 (side / (R cos m)) 2 cos m sin(side / 2R) with m the middle of the row, except for the last, narrower one of
    each row.
    """
    row = np.floor(authalic_latitude(latitude) * RADIUS_M / side_m)
    middle = (row + 0.5) * side_m / RADIUS_M
    # The row at a pole may reach beyond it; a block there goes once around.
    width = np.maximum(np.cos(middle), 0)
    column = np.floor(_eastwards(longitude) * RADIUS_M * width / side_m)
    return row.astype(np.int64), column.astype(np.int64)


def equal_area_cells(latitude: Degrees, longitude: Degrees, side_m: float) -> Cells:
    """Rows and columns of the cylindrical equal-area grid: x = R lambda cos 30, y = R sin beta / cos 30.

    Cells are squares of side `side_m` on that map and have the same true area everywhere, in aligned columns; on the
    ground they are square at 30 degrees, and at 60 degrees 0.58 sides wide and 1.73 high.
    """
    scale = equal_area_scale()
    x = _eastwards(longitude) * RADIUS_M * scale
    y = RADIUS_M * np.sin(authalic_latitude(latitude)) / scale
    return np.floor(y / side_m).astype(np.int64), np.floor(x / side_m).astype(np.int64)


def organizers_quadrats(latitude: Degrees, longitude: Degrees, side_m: float) -> Cells:
    """Rows and columns of the quadrats of GeoLifeCLEF, as its organizers cut them.

    Northing is the distance along a meridian from the equator, easting the distance along the equator from 30 degrees
    west, both on the WGS84 ellipsoid; what lies south or west of that origin is counted from the other side of the
    globe (circumferences of 40,007.863 and 40,075.017 km). Quadrats are `side_m` wide at the equator only: at 45
    degrees, 5 km are 3.54 km.

    >>> row, column = organizers_quadrats(np.array([45.705116]), np.array([1.424622]), 5000.0)
    >>> quadrat_names(row, column).tolist()
    ['e0699n1012']
    """
    offset = np.mod(longitude - ORIGIN_LONGITUDE + 180.0, 360.0) - 180.0
    easting = np.radians(np.abs(offset)) * SEMI_MAJOR_M
    easting = np.where(offset < 0, EQUATOR_M - easting, easting)
    northing = meridian_arc_m(np.abs(latitude))
    northing = np.where(latitude < 0, MERIDIAN_M - northing, northing)
    return np.floor(northing / side_m).astype(np.int64), np.floor(easting / side_m).astype(np.int64)


def quadrat_names(row: NDArray[np.int64], column: NDArray[np.int64]) -> NDArray[np.str_]:
    """What the organizers call quadrats: `e0699n1012`."""
    digits = [np.char.zfill(values.astype(np.str_), 4) for values in (column, row)]
    return np.char.add(np.char.add("e", digits[0]), np.char.add("n", digits[1]))


def meridian_arc_m(latitude: Degrees) -> Degrees:
    """How far a latitude lies from the equator along the ellipsoid (Helmert's series, to a millimeter).

    >>> round(float(meridian_arc_m(np.array(90.0))), 2)
    10001965.73
    """
    n = FLATTENING / (2 - FLATTENING)
    phi = np.radians(latitude)
    terms = (
        (1 + n**2 / 4 + n**4 / 64) * phi
        - 1.5 * (n - n**3 / 8) * np.sin(2 * phi)
        + 15 / 16 * (n**2 - n**4 / 4) * np.sin(4 * phi)
        - 35 / 48 * n**3 * np.sin(6 * phi)
        + 315 / 512 * n**4 * np.sin(8 * phi)
    )
    return np.asarray(SEMI_MAJOR_M / (1 + n) * terms)


def equal_area_scale() -> float:
    """The factor of the standard parallel on the ellipsoid: cos phi / sqrt(1 - e^2 sin^2 phi) times a / R."""
    sine, cosine = np.sin(np.radians(STANDARD_PARALLEL)), np.cos(np.radians(STANDARD_PARALLEL))
    return float(cosine / (1 - (ECCENTRICITY * sine) ** 2) ** 0.5 * SEMI_MAJOR_M / RADIUS_M)


def _eastwards(longitude: Degrees) -> Degrees:
    """Radians east of 180 degrees west; 180 degrees east is the same meridian."""
    return np.asarray(np.radians(np.mod(longitude + 180.0, 360.0)))
