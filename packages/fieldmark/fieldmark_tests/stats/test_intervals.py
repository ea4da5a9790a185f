from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fieldmark.metrics.classification import mean_without_each_unit
from fieldmark.stats.intervals import interval, pseudo_values


def mean_interval(values: np.ndarray, unit: np.ndarray, *, proportion: bool = True):
    value = float(values.mean())
    pseudo = pseudo_values(value, mean_without_each_unit(values, unit))
    return interval(value, pseudo, proportion=proportion)


def test_the_interval_of_a_mean_of_independent_items_is_the_textbook_t_interval():
    values = np.random.default_rng(0).random(40)
    found = mean_interval(values, np.arange(40), proportion=False)
    low, high = stats.t.interval(0.95, 39, loc=values.mean(), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.method == "jackknife-t"


def test_photos_of_one_observation_do_not_count_as_independent():
    hits = np.repeat(np.random.default_rng(1).random(50) < 0.5, 4).astype(float)
    by_photo = mean_interval(hits, np.arange(200))
    by_observation = mean_interval(hits, np.repeat(np.arange(50), 4))
    assert by_observation.high - by_observation.low > 1.8 * (by_photo.high - by_photo.low)


@pytest.mark.parametrize("hit", [0.0, 1.0])
def test_a_perfect_or_hopeless_share_gets_the_exact_binomial_interval(hit):
    found = mean_interval(np.full(30, hit), np.arange(30))
    exact = stats.binomtest(int(30 * hit), 30).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
    assert found.method == "korn-graubard"


def test_one_unit_gives_no_interval_but_the_reason():
    found = mean_interval(np.array([1.0, 0.0]), np.array([0, 0]))
    assert found.low is None and "one unit" in found.reason


def test_units_that_all_say_the_same_give_no_interval_for_a_macro_average():
    found = interval(0.5, np.full(10, 0.5))
    assert found.low is None and "same value" in found.reason


def test_the_interval_stays_within_the_bounds_of_the_score():
    for value in (0.001, 0.02, 0.5, 0.98, 0.999):
        for spread in (0.01, 0.5, 5.0):
            found = interval(value, np.random.default_rng(0).normal(value, spread, 10))
            assert 0.0 <= found.low <= value <= found.high <= 1.0


def test_a_macro_average_that_rests_on_few_errors_gets_an_asymmetric_interval():
    pseudo = np.append(np.ones(98), [0.0, 0.0])
    found = interval(0.98, pseudo)
    assert found.method == "jeffreys" and 0.98 - found.low > 2 * (found.high - 0.98)


@pytest.mark.parametrize(("share", "units", "photos"), [(0.9, 40, 3), (0.5, 15, 1), (0.99, 100, 2)])
def test_nominal_95_percent_intervals_of_shares_cover_at_least_93_percent(share, units, photos):
    rng = np.random.default_rng(7)
    unit = np.repeat(np.arange(units), photos)
    covered = 0
    for _ in range(600):
        # Photos of an observation share most of their luck.
        chance = rng.beta(4 * share, 4 * (1 - share), units)
        values = (rng.random(units * photos) < np.repeat(chance, photos)).astype(float)
        found = mean_interval(values, unit)
        covered += found.low <= share <= found.high
    assert covered / 600 >= 0.93
