"""Quadrats as the organizers of GeoLifeCLEF cut and draw them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from fieldmark.splits.grids import meridian_arc_m, organizers_quadrats, quadrat_names
from fieldmark.splits.quadrats import apart, distances_m, organizers_draw, organizers_parts

A, F = 6_378_137.0, 1 / 298.257223563


def arc(latitude: float) -> float:
    """The length of a meridian from the equator, by integration."""
    squared = F * (2 - F)
    return quad(lambda phi: A * (1 - squared) / (1 - squared * np.sin(phi) ** 2) ** 1.5, 0, np.radians(latitude))[0]


def test_the_meridian_is_as_long_as_its_integral():
    for latitude in (0.0, 12.5, 45.0, 71.3, 90.0):
        assert meridian_arc_m(np.array(latitude)) == pytest.approx(arc(latitude), abs=1e-3)


@pytest.mark.parametrize(
    ("lat", "lon"), [(45.7051, 1.4246), (33.19766, -116.18068), (28.13, -82.66), (-12.0, 20.0), (10.0, 170.0)]
)
def test_quadrats_are_counted_from_the_equator_and_thirty_west(lat, lon):
    """One place at a time, as the rule is written down: what lies behind the origin is counted around the globe."""
    east = lon + 30
    along = np.radians(min(abs(east), 360 - abs(east))) * A / 1000
    behind = east < 0 or east > 180
    easting = 40_075.017 - along if behind else along
    northing = arc(abs(lat)) / 1000
    northing = 40_007.863 - northing if lat < 0 else northing
    row, column = organizers_quadrats(np.array([lat]), np.array([lon]), 5000.0)
    assert quadrat_names(row, column)[0] == f"e{int(easting // 5):04d}n{int(northing // 5):04d}"


def test_the_draw_is_the_permutation_of_the_organizers():
    quadrat = np.array([f"e{number:04d}n0001" for number in np.random.default_rng(0).integers(0, 200, 1000)])
    names = sorted(set(quadrat))
    rng = np.random.RandomState(1949)
    order = rng.permutation(len(names))
    kept = {names[place] for place in order[: int(np.floor(0.975 * len(names)))]}
    assert organizers_draw(quadrat, 0.025).tolist() == [name not in kept for name in quadrat]
    shuffled = np.random.default_rng(1).permutation(len(quadrat))
    assert (organizers_draw(quadrat[shuffled], 0.025) == organizers_draw(quadrat, 0.025)[shuffled]).all()


def test_val_is_held_out_of_what_test_leaves():
    quadrat = np.array([f"e{number:04d}n0001" for number in range(400)])
    part = organizers_parts(quadrat, {"test": 0.1, "val": 0.1})
    assert [(part == name).sum() for name in ("test", "val", "train")] == [40, 40, 320]
    assert (organizers_parts(quadrat, {"test": 0.1}) == "test").tolist() == (part == "test").tolist()


def test_distances_reach_across_the_date_line_and_leave_out_what_is_nowhere():
    found = distances_m(np.array([0.0, np.nan, 0.0]), np.array([179.9, 0.0, 0.0]), np.array([0.0]), np.array([-179.9]))
    assert found[0] == pytest.approx(22_239, rel=1e-3) and np.isnan(found[1]) and found[2] > 1e7
    lat, lon = np.array([0.0, 0.0, 0.01, 0.02]), np.zeros(4)
    told = apart(lat, lon, np.array(["train", "test", "test", "val"]))
    assert (told["test"].nearest_m, told["test"].same_place, told["test"].places) == (0.0, 1, 2)
    assert told["val"].median_m == pytest.approx(2224, rel=1e-3)
    assert apart(lat, lon, np.array(["train"] * 4)) == {}
