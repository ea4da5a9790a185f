"""Intervals that count the units on which a score rests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from fieldmark.stats.comparison import compare
from fieldmark.stats.pair_table import PairTable
from fieldmark.stats.support import Support, freedom_seen, supporting_interval


def alike(units: int) -> Support:
    return Support(np.ones(units), most_items=units)


def share(hits: int, units: int):
    pseudo = (np.arange(units) < hits).astype(float)
    return supporting_interval(hits / units, pseudo, alike(units), proportion=True)


def test_shares_are_covered_as_often_as_is_said_and_not_much_more():
    for units in (20, 60):
        found = [share(hits, units) for hits in range(units + 1)]
        rates = np.linspace(0.02, 0.98, 49)
        held = [
            sum(
                binom.pmf(hits, units, rate) for hits in range(units + 1) if found[hits].low <= rate <= found[hits].high
            )
            for rate in rates
        ]
        assert 0.94 < np.mean(held) < 0.97 and min(held) > 0.91


def test_a_perfect_share_gets_the_rule_of_three():
    found = share(50, 50)
    assert found.high == 1.0 and found.low == pytest.approx(0.05 ** (1 / 50), abs=1e-9)


def test_rounding_alone_is_no_variance():
    pseudo = 5 / 6 + np.array([1e-16, -1e-16, 0.0, 1e-16] * 19)
    found = supporting_interval(5 / 6, pseudo, alike(76))
    assert found.low is None and found.reason == "every unit gives the same value"
    assert supporting_interval(1.0, np.ones(76) - 1e-16, alike(76)).low == pytest.approx(0.05 ** (1 / 76), abs=1e-6)


def test_heavy_units_that_agree_borrow_the_spread_of_the_others():
    weight = np.append(np.full(8, 0.08), np.full(100, 0.0036))
    pseudo = np.ones(108)
    pseudo[100:104] -= 108 * 0.0036  # four of the light ones are wrong
    value = float(pseudo.mean())
    plain, lent = (
        supporting_interval(value, pseudo, Support(weight, 108, borrowing), bounds=(0.0, 1.0))
        for borrowing in (False, True)
    )
    assert lent.low < plain.low < value < plain.high <= lent.high


def test_few_supporting_units_widen_the_interval():
    rng = np.random.default_rng(0)
    pseudo = rng.beta(5, 5, 200)
    value = float(pseudo.mean())
    all_alike = supporting_interval(value, pseudo, alike(200))
    few = supporting_interval(value, pseudo, Support(np.where(np.arange(200) < 6, 1.0, 0.01), 200))
    assert few.high - few.low > 1.2 * (all_alike.high - all_alike.low)


def test_equal_photos_of_a_unit_count_for_less_than_as_many_units():
    unit = np.repeat([0, 1, 2], [1, 16, 16]).astype(np.int32)
    support = Support.of_items(np.ones(33), unit)
    assert support.weight.tolist() == pytest.approx([1, 8, 8]) and support.most_items == 33
    assert 2 < support.units < 2.1


def test_no_mistake_at_all_leaves_room_for_some():
    found = supporting_interval(0.0, np.zeros(100), alike(100), bounds=(0.0, np.inf), largest=10.0)
    assert found.low == 0.0 and found.high == pytest.approx(-np.log(0.05) / 10, rel=1e-3)


def test_a_score_bounded_on_one_side_stays_on_it():
    rng = np.random.default_rng(1)
    pseudo = 1 - rng.exponential(0.2, 30)
    found = supporting_interval(float(pseudo.mean()), pseudo, alike(30), bounds=(-np.inf, 1.0))
    assert found.method == "log-t" and found.high < 1.0
    assert pseudo.mean() - found.low > found.high - pseudo.mean()


def test_the_degrees_of_freedom_seen_are_those_of_the_units_that_vary():
    rng = np.random.default_rng(2)
    assert 150 < freedom_seen(rng.normal(size=400)) < 600
    assert freedom_seen(np.append(np.full(3, 1.0), np.zeros(397))) < 8


def test_one_unit_or_none_gives_no_interval():
    for support in (Support(np.ones(1), 1), Support(np.append(1.0, np.zeros(9)), 1)):
        found = supporting_interval(0.5, np.linspace(0, 1, len(support.weight)), support)
        assert found.low is None and "one unit" in found.reason


def unequal_recordings(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Scores and pseudo-values of two equally good runs on eight recordings of very different lengths."""
    length = np.maximum(rng.lognormal(2.2, 0.9, 8), 2).astype(int)
    unit = np.repeat(np.arange(8), length).astype(np.int32)
    items = rng.normal(size=(2, 8))[:, unit] + rng.normal(size=(2, len(unit)))
    totals = np.stack([np.bincount(unit, weights=one) for one in items])
    values = items.mean(axis=1)
    left_out = (totals.sum(axis=1, keepdims=True) - totals) / (len(unit) - length)
    return values, 8 * values[:, None] - 7 * left_out, Support.of_items(np.ones(len(unit)), unit).units


def test_equal_runs_on_eight_unequal_recordings_seldom_seem_to_differ():
    rng = np.random.default_rng(3)
    counted, all_units = [], []
    for _ in range(1500):
        values, pseudo, rests_on = unequal_recordings(rng)
        counted.append(compare(values, pseudo, rests_on=rests_on).differences[0].p_value < 0.05)
        all_units.append(compare(values, pseudo).differences[0].p_value < 0.05)
    assert np.mean(all_units) > 0.07 and np.mean(counted) < 0.06


def test_a_board_counts_the_units_on_which_a_metric_rests():
    values, pseudo, _ = unequal_recordings(np.random.default_rng(4))
    ranked = PairTable(rests_on=3.5).rank(["a", "b"], {"a": (values[0], pseudo[0]), "b": (values[1], pseudo[1])})
    expected = compare(values, pseudo, rests_on=3.5).differences[0]
    assert ranked.behind[0].interval == expected.interval and ranked.behind[0].p_value == expected.p_value
    assert expected.p_value > compare(values, pseudo).differences[0].p_value


def test_an_end_beyond_all_measure_is_not_given():
    found = supporting_interval(17.5, np.array([0.5, 34.5]), alike(2), bounds=(0.0, np.inf))
    assert found.low is None and "differ too much" in found.reason
