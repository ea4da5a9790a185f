from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats
from scipy.stats import binomtest

from fieldmark.benchmarks.measures import roc_auc, tnr_at_tpr
from fieldmark.scoring import measure
from fieldmark.stats.intervals import Interval
from fieldmark.stats.two_groups import two_group_interval


class Drawn:
    """A comparison of `known` and `unknown` observations, each its own unit."""

    def __init__(self, rng: np.random.Generator, known: int, unknown: int, apart: float) -> None:
        self.is_known = np.arange(known + unknown) < known
        self.unknown_score = rng.normal(size=known + unknown) + apart * ~self.is_known
        self.truth = type("Truth", (), {"units": [f"{unit:05d}" for unit in range(known + unknown)]})()


def width(interval: Interval) -> float:
    assert interval.low is not None and interval.high is not None
    return interval.high - interval.low


@pytest.mark.parametrize(("known", "unknown"), [(143, 7), (7, 143), (60, 60)])
def test_intervals_of_the_area_under_the_curve_cover_however_scarce_a_group_is(known, unknown):
    rng = np.random.default_rng(0)
    drawn = [Drawn(rng, known, unknown, 1.5) for _ in range(400)]
    scores = [measure((roc_auc(),), one)[1]["roc_auc"] for one in drawn]  # type: ignore[arg-type]
    target = np.mean([score.value for score in scores])
    assert np.mean([score.low <= target <= score.high for score in scores]) >= 0.93


def test_the_threshold_of_tnr_needs_more_than_a_few_known_units():
    few, enough = (Drawn(np.random.default_rng(1), known, 100, 1.5) for known in (24, 25))
    name = "tnr_at_95_tpr"
    score = measure((tnr_at_tpr(),), few)[1][name]  # type: ignore[arg-type]
    assert score.low is None and score.reason == "units that are known: 24; an interval needs 25"
    assert measure((tnr_at_tpr(),), enough)[1][name].low is not None  # type: ignore[arg-type]


def test_fewer_units_in_the_scarcer_group_widen_the_interval():
    widths = [width(two_group_interval(0.8, 0.01, scarce=scarce, n_units=500)) for scarce in (2, 5, 20, 49)]
    assert widths == sorted(widths, reverse=True)
    widths = [width(two_group_interval(0.8, 0.0001, scarce=scarce, n_units=500)) for scarce in (2, 5, 20, 49, 250)]
    assert widths == sorted(widths, reverse=True)


def test_a_score_of_0_or_1_has_the_exact_interval_of_the_scarcer_group():
    for value in (0.0, 1.0):
        exact = binomtest(round(7 * value), 7).proportion_ci(method="exact")
        found = two_group_interval(value, 0.0, scarce=7, n_units=150)
        assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_no_interval_where_the_groups_cannot_tell():
    assert "undefined" in (two_group_interval(float("nan"), 0.1, scarce=0, n_units=9).reason or "")
    assert "one unit only" in (two_group_interval(0.5, 0.1, scarce=1, n_units=9).reason or "")
    assert "left out" in (two_group_interval(0.5, float("nan"), scarce=3, n_units=9).reason or "")
    assert "same value" in (two_group_interval(0.5, 0.0, scarce=3, n_units=9).reason or "")


@pytest.mark.parametrize(("value", "level"), [(0.3, 0.8), (0.8, 0.95)])
def test_many_effective_items_give_a_t_interval_on_the_scale_of_log_odds(value, level):
    found = two_group_interval(value, 0.0016, scarce=12, n_units=500, level=level)
    error = 0.04 / (value * (1 - value))
    bounds = special.expit(special.logit(value) + error * stats.t.ppf([0.5 - level / 2, 0.5 + level / 2], 11))
    assert (found.low, found.high) == pytest.approx(tuple(bounds))


@pytest.mark.parametrize("value", [0.03, 0.97])
@pytest.mark.parametrize(("scarce", "more"), [(12, 1.0), (49, 1.0), (50, 0.5)])
def test_few_effective_successes_or_failures_give_a_binomial_interval_of_shrunken_size(value, scarce, more):
    found = two_group_interval(value, 0.0004, scarce=scarce, n_units=500)
    items = value * (1 - value) / 0.0004 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, scarce - 1)) ** 2
    hits, misses = value * items, (1 - value) * items
    low, high = stats.beta.ppf([0.025, 0.975], [hits + 1 - more, hits + more], [misses + more, misses + 1 - more])
    assert (found.low, found.high) == pytest.approx((low, high))


def test_there_are_no_more_effective_items_than_units():
    narrow = two_group_interval(0.97, 1e-4, scarce=60, n_units=100)
    assert narrow == two_group_interval(0.97, 0.97 * 0.03 / 100, scarce=60, n_units=100)
