from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldmark.splits.grids import (
    RADIUS_M,
    authalic_latitude,
    equal_area_cells,
    equal_area_scale,
    square_blocks,
)

LATITUDES = st.floats(-89, 89)
LONGITUDES = st.floats(-180, 180)


def area_m2(south: float, north: float, degrees_east: float) -> float:
    """The area between two latitudes on the ellipsoid, by summing thin strips."""
    a, e2 = 6_378_137.0, 0.0066943799901413165
    edges = np.radians(np.linspace(south, north, 2001))
    middle = (edges[1:] + edges[:-1]) / 2
    meridian = a * (1 - e2) / (1 - e2 * np.sin(middle) ** 2) ** 1.5
    parallel = a * np.cos(middle) / (1 - e2 * np.sin(middle) ** 2) ** 0.5
    return float((meridian * parallel * np.diff(edges)).sum() * np.radians(degrees_east))


def test_the_equal_area_map_is_that_of_ease_grid_2():
    # The extents that EPSG:6933 and the 36 km EASE-Grid 2.0 are published with.
    assert np.pi * RADIUS_M * equal_area_scale() == pytest.approx(17_367_530.445, abs=0.01)
    latitude = np.array([85.0445664, 90.0])
    y = RADIUS_M * np.sin(authalic_latitude(latitude)) / equal_area_scale()
    assert y == pytest.approx([7_314_540.83, 7_342_230.137], abs=0.01)


@pytest.mark.parametrize("latitude", [0.0, 30.0, 48.0, 67.0, -35.0])
@pytest.mark.parametrize("cells", [square_blocks, equal_area_cells])
def test_cells_have_the_area_they_are_named_after_wherever_they_lie(cells, latitude):
    side, fine = 50_000.0, np.linspace(latitude - 2, latitude + 2, 400_001)
    rows = cells(fine, np.zeros_like(fine), side)[0]
    row = rows[len(rows) // 2]
    inside = fine[rows == row]
    east = np.linspace(0, 3, 400_001)
    columns = cells(np.full_like(east, inside.mean()), east, side)[1]
    whole = east[columns == columns[len(columns) // 2]]
    found = area_m2(inside[0], inside[-1], whole[-1] - whole[0])
    assert found == pytest.approx(side**2, rel=1e-3)


@pytest.mark.parametrize("latitude", [0.0, 45.0, 70.0])
def test_square_blocks_are_as_wide_as_they_are_high(latitude):
    side = 20_000.0
    fine = np.linspace(latitude, latitude + 1, 200_001)
    rows = square_blocks(fine, np.zeros_like(fine), side)[0]
    inside = fine[rows == rows[len(rows) // 2]]
    east = np.linspace(0, 2, 200_001)
    columns = square_blocks(np.full_like(east, inside.mean()), east, side)[1]
    whole = east[columns == columns[len(columns) // 2]]
    high = np.radians(inside[-1] - inside[0]) * 6_371_007
    wide = np.radians(whole[-1] - whole[0]) * 6_371_007 * np.cos(np.radians(inside.mean()))
    assert high == pytest.approx(side, rel=0.008) and wide == pytest.approx(side, rel=0.008)


@given(latitude=LATITUDES, longitude=LONGITUDES, side=st.floats(100, 1e6))
def test_places_of_one_block_are_never_farther_apart_than_its_diagonal(latitude, longitude, side):
    rng = np.random.default_rng(0)
    near = np.clip(latitude + rng.uniform(-2, 2, 200) * side / 111_000, -89.5, 89.5)
    lon = longitude + rng.uniform(-2, 2, 200) * side / 111_000 / max(np.cos(np.radians(latitude)), 0.01)
    lon = np.mod(lon + 180, 360) - 180
    rows, columns = square_blocks(near, lon, side)
    for one in np.unique(np.stack([rows, columns]), axis=1).T:
        mine = (rows == one[0]) & (columns == one[1])
        assert spread_m(near[mine], lon[mine]) <= 1.6 * side


def spread_m(lat: np.ndarray, lon: np.ndarray) -> float:
    """The largest distance on the sphere between the first place and any other."""
    a, b = np.radians(lat), np.radians(lon)
    half = np.sin((a - a[0]) / 2) ** 2 + np.cos(a) * np.cos(a[0]) * np.sin((b - b[0]) / 2) ** 2
    return float((2 * 6_371_007 * np.arcsin(np.sqrt(np.clip(half, 0, 1)))).max())


def test_the_date_line_is_one_meridian():
    for cells in (square_blocks, equal_area_cells):
        row, column = cells(np.array([10.0, 10.0]), np.array([180.0, -180.0]), 5000.0)
        assert row[0] == row[1] and column[0] == column[1]
