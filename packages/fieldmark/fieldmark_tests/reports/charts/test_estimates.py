"""Shares with intervals, and axes that hold them."""

from __future__ import annotations

import numpy as np

from fieldmark.reports.charts.estimates import Axis, share


def test_a_share_is_the_mean_and_its_interval_holds_it() -> None:
    estimate = share(np.array([True, True, False, True] * 10), np.arange(40) // 2)
    assert (estimate.value, estimate.items, estimate.units) == (0.75, 40, 20)
    assert estimate.low is not None and estimate.high is not None
    assert 0.5 < estimate.low < 0.75 < estimate.high < 1


def test_items_of_one_unit_count_as_one_for_the_interval() -> None:
    holds = np.repeat(np.array([True, False] * 15), 4)
    alone, together = share(holds, np.arange(120)), share(holds, np.arange(120) // 4)
    assert alone.high is not None and together.high is not None
    assert together.high - together.value > 1.8 * (alone.high - alone.value)


def test_an_axis_holds_what_it_shows() -> None:
    estimates = [share(np.array([True, False, True] * 9), np.arange(27)), share(np.array([True] * 9), np.arange(9))]
    axis = Axis.around(estimates)
    for estimate in estimates:
        assert estimate.low is not None and estimate.high is not None
        assert 0 <= axis.at(estimate.low) <= axis.at(estimate.value) <= axis.at(estimate.high) <= 100


def test_an_axis_of_one_value_has_a_length() -> None:
    assert Axis.around([share(np.array([True]), np.array([0]))]) == Axis(0.9, 1.0)
