from __future__ import annotations

import numpy as np
import pytest

from fieldmark.errors import MisuseError
from fieldmark.stats.comparison import compare
from fieldmark_challenge.boards.planner import (
    UnitSpread,
    assumed_spread,
    chance_of_swap,
    measured_spread,
    plan,
    tells,
    units_for,
)
from fieldmark_challenge.boards.svg_charts import curve
from fieldmark_challenge.challenges.metrics import board_metric
from fieldmark_challenge_tests.hosting import entrants

METRIC = board_metric("folder", "top_1")


def paired_hits(rng, units, score, difference, correlation):
    """Two runs of hits and misses with the given scores and about the given correlation between them."""
    shared = rng.random(units)
    lucky = rng.random(units) < correlation
    first = np.where(lucky, shared, rng.random(units)) < score + difference
    second = np.where(lucky, shared, rng.random(units)) < score
    return np.stack([first, second]).astype(float)


def share_found(units, score, difference, correlation, repeats=1500):
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(repeats):
        hits = paired_hits(rng, units, score, difference, correlation)
        outcome = compare(hits.mean(axis=1), hits).differences[0]
        found += outcome.p_value < 0.05 and outcome.value > 0
    return found / repeats


@pytest.mark.parametrize(("units", "score", "together"), [(300, 0.4, 0.0), (300, 0.4, 0.6), (800, 0.7, 0.4)])
def test_a_difference_of_the_planned_size_is_found_as_often_as_planned(units, score, together):
    """Simulated challenges: the planned power is the share of them in which the paired test finds the difference."""
    sample = paired_hits(np.random.default_rng(1), 200_000, score, 0.0, together)
    spread = UnitSpread(float(sample[0].std()), float(np.corrcoef(sample)[0, 1]), "simulated", largest=1.0)
    planned = plan(units, spread, entries=2, power=0.8)
    # Three standard errors of 1500 repeats, and that the better run's own spread differs a little.
    assert share_found(units, score, planned.pair, together) == pytest.approx(0.8, abs=0.04)
    assert share_found(units, score, planned.pair / 2, together) < 0.4


def test_more_units_more_likeness_and_fewer_entries_separate_more():
    spread = assumed_spread(0.3)
    assert plan(1000, spread).pair < plan(250, spread).pair == pytest.approx(2 * plan(1000, spread).pair, rel=0.06)
    assert plan(250, assumed_spread(0.3, correlation=0.9)).pair < plan(250, spread).pair
    assert plan(250, spread, entries=50).among_all > plan(250, spread, entries=3).among_all > plan(250, spread).pair
    assert plan(250, spread, entries=2).among_all == plan(250, spread, entries=2).pair


def test_the_units_asked_for_are_the_fewest_that_do():
    spread = assumed_spread(0.18)
    needed = units_for(0.03, spread, entries=5)
    assert plan(needed, spread, entries=5).among_all <= 0.03 < plan(needed - 1, spread, entries=5).among_all


def test_two_baselines_measure_how_alike_runs_are(tmp_path):
    first, second, _ = (one.card for one in entrants(tmp_path, {"a": 0.6, "b": 0.6, "c": 0.6}))
    alone, both = measured_spread(first, METRIC), measured_spread(first, METRIC, second)
    assert alone.deviation == pytest.approx(first.pseudo["top_1"].std(ddof=1)) and "assumed" in alone.source
    apart = first.pseudo["top_1"] - second.pseudo["top_1"]
    assert both.of_difference() == pytest.approx(apart.std(ddof=1)) and "two baselines on 24 units" in both.source


def test_a_baseline_that_hardly_varies_tells_nothing_of_how_alike_runs_are(tmp_path):
    good, constant = (one.card for one in entrants(tmp_path, {"good": 0.6, "constant": 0.01}))
    assert measured_spread(good, METRIC, constant) == measured_spread(good, METRIC)


def test_places_change_half_the_time_without_and_hardly_ever_with_a_large_difference():
    spread = assumed_spread(0.5)
    chances = [chance_of_swap(apart, spread, public=200, private=600) for apart in (0.0, 0.02, 0.2)]
    assert chances[0] == pytest.approx(0.5) and chances[0] > chances[1] > chances[2] and chances[2] < 0.01


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: assumed_spread(1.2),
        lambda: assumed_spread(0.5, correlation=1),
        lambda: plan(2, assumed_spread(0.5)),
        lambda: plan(100, assumed_spread(0.5), entries=1),
        lambda: plan(100, assumed_spread(0.5), power=1.0),
        lambda: units_for(0, assumed_spread(0.5)),
    ],
)
def test_a_plan_that_makes_no_sense_is_misuse(wrong):
    with pytest.raises(MisuseError):
        wrong()


def test_a_baseline_that_is_nearly_always_wrong_tells_nothing_about_good_runs(tmp_path):
    good, poor = entrants(tmp_path, {"good": 0.6, "poor": 0.0})
    assert tells(good.card, METRIC) and not tells(poor.card, METRIC)
    assert measured_spread(good.card, METRIC).deviation > 0.3


def test_no_difference_is_promised_that_two_scores_cannot_have(tmp_path):
    spread = assumed_spread(0.5)
    assert plan(4, spread, entries=10).pair is None and plan(4, spread, entries=10).among_all is None
    few = plan(20, spread, entries=500)
    assert few.pair is not None and few.pair < 1 and few.half_width < 1
    for units in range(3, 200):
        found = plan(units, spread, entries=500)
        assert found.half_width <= 1 and all(one is None or one <= 1 for one in (found.pair, found.among_all))
    first, second = (one.card for one in entrants(tmp_path, {"a": 0.6, "b": 0.5}))
    assert plan(3, measured_spread(first, METRIC, second), entries=10).among_all is None
    with pytest.raises(MisuseError, match="No two scores differ by more than 1"):
        units_for(1.5, spread)
    assert plan(units_for(1.0, spread), spread, entries=2).among_all is not None


def test_the_chart_of_a_test_set_that_separates_nothing_says_so():
    drawn = curve("curve", "Smallest separable difference", assumed_spread(0.5), METRIC, units=4, entries=500)
    assert "With 4 units: nothing is separable" in drawn and "<path" in drawn
