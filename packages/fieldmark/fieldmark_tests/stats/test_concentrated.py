from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fieldmark.metrics.segmentation import pooled_miou, pooled_miou_without_each_unit
from fieldmark.stats.concentrated import concentrated_interval, contributing_units, cost_interval
from fieldmark.stats.intervals import interval, pseudo_values


def test_units_that_deviate_alike_are_counted():
    assert contributing_units(np.append(np.ones(7), np.zeros(10**6))) == pytest.approx(7, rel=1e-4)
    assert contributing_units(np.random.default_rng(0).normal(size=30_000)) == pytest.approx(10_000, rel=0.1)
    assert contributing_units(np.ones(5)) == 0


def test_many_normal_units_give_nearly_the_plain_jackknife_interval():
    pseudo = np.random.default_rng(1).normal(0.5, 0.1, 2000)
    plain, careful = interval(0.5, pseudo), concentrated_interval(0.5, pseudo)
    assert careful.low == pytest.approx(plain.low, abs=1e-5) and careful.high == pytest.approx(plain.high, abs=1e-5)


def test_no_interval_where_the_units_cannot_tell():
    assert "too few" in concentrated_interval(0.5, np.array([0.4, 0.6])).reason
    assert "same value" in concentrated_interval(0.5, np.full(9, 0.5)).reason
    assert "undefined" in concentrated_interval(0.5, np.array([0.4, np.nan, 0.6])).reason
    assert "one unit" in cost_interval(0.5, np.array([0.4]), largest=1).reason
    assert "undefined" in cost_interval(0.5, np.array([0.4, np.nan]), largest=1).reason


def test_equal_costs_give_the_exact_poisson_interval():
    costs = np.append(np.ones(6), np.zeros(100_000 - 6))
    found = cost_interval(6e-5, costs, largest=1.0)
    exact = stats.chi2.ppf([0.025, 0.975], [12, 14]) / 2e5
    assert (found.low, found.high) == pytest.approx(tuple(exact), rel=1e-3)


def test_no_mistake_so_far_does_not_promise_that_there_is_none():
    assert cost_interval(0.0, np.zeros(1000), largest=100.0).high == pytest.approx(100 * -np.log(0.025) / 1000)


@pytest.mark.parametrize(("units", "dear", "cheap"), [(500, 0.002, 0.05), (2000, 0.002, 0.05), (5000, 0.01, 0.05)])
def test_intervals_of_rare_costs_of_100_cover(units, dear, cheap):
    rng = np.random.default_rng(2)
    luck = rng.random((400, units))
    costs = np.where(luck < dear, 100.0, np.where(luck < dear + cheap, 1.0, 0.0))
    found = [cost_interval(row.mean(), row, largest=100.0) for row in costs]
    target = 100 * dear + cheap
    assert np.mean([bounds.low <= target <= bounds.high for bounds in found]) >= 0.93
    width = np.mean([bounds.high - bounds.low for bounds in found])
    assert width <= 1.5 * 2 * 1.96 * costs.mean(axis=1).std()


def test_intervals_of_pooled_miou_with_a_rare_part_cover():
    rng = np.random.default_rng(3)
    options = {"parts": ("cap", "stem", "ring"), "background": False}
    cases = []
    for _ in range(500):
        present = rng.random((100, 3)) < [1.0, 0.8, 0.08]
        size = np.exp(rng.normal(8, 1, (100, 3))) * present
        both, either = (size * rng.beta(4, 2, size.shape)).astype(int), (size * 1.1).astype(int)
        value = pooled_miou(both, either, **options)
        left_out = pooled_miou_without_each_unit(both, either, np.arange(100), **options)
        cases.append((value, pseudo_values(value, left_out)))
    target = np.mean([value for value, _ in cases])
    found = [concentrated_interval(*case) for case in cases]
    assert np.mean([bounds.low <= target <= bounds.high for bounds in found]) >= 0.93


def test_the_degrees_of_freedom_follow_from_the_contributing_units():
    pseudo = np.append(np.random.default_rng(2).normal(0.5, 0.1, 8), np.full(12, 0.5))
    freedom = 1 / (1 / contributing_units(pseudo) - 1 / 20)
    assert 2 < freedom < 19  # neither bound decides
    half_width = stats.t.ppf(0.975, freedom) * pseudo.std(ddof=1) / 20**0.5
    careful = concentrated_interval(0.5, pseudo)
    assert (careful.low, careful.high) == pytest.approx((0.5 - half_width, 0.5 + half_width), abs=1e-12)
