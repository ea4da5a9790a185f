from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fieldmark.metrics.classification import macro_f1, macro_f1_without_each_unit
from fieldmark.stats.comparison import compare, compare_replicates, holm
from fieldmark.stats.intervals import pseudo_values


def draw_hits(rng: np.random.Generator, shares: list[float], units: int, alike: float = 0.5) -> np.ndarray:
    """Hits of runs on the same units: what is hard for one tends to be hard for the others."""
    common = rng.random(units)
    luck = np.where(rng.random((len(shares), units)) < alike, common, rng.random((len(shares), units)))
    return (luck < np.array(shares)[:, None]).astype(float)


def test_two_runs_are_compared_by_the_textbook_paired_t_test():
    scores = np.random.default_rng(0).normal(size=(2, 40))
    found = compare(scores.mean(axis=1), scores).differences[0]
    expected = stats.ttest_rel(scores[0], scores[1])
    low, high = expected.confidence_interval(0.95)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))
    assert found.better == pytest.approx(stats.t.cdf(expected.statistic, 39))


def test_the_chance_of_being_better_is_that_of_the_one_sided_test_whichever_run_is_ahead():
    scores = np.random.default_rng(0).normal(size=(2, 40))
    for pair in (scores, scores[::-1]):
        found = compare(pair.mean(axis=1), pair).differences[0]
        assert found.better == pytest.approx(1 - stats.ttest_rel(*pair, alternative="greater").pvalue)


@given(p_values=st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values):
    adjusted = holm(np.array(p_values))
    for level in (0.01, 0.05, 0.5):
        rejected = set()
        for step, place in enumerate(np.argsort(p_values, kind="stable")):
            if p_values[place] * (len(p_values) - step) > level:
                break
            rejected.add(int(place))
        assert set(np.flatnonzero(adjusted <= level).tolist()) == rejected


def test_identical_runs_cannot_be_told_apart():
    hits = np.tile(draw_hits(np.random.default_rng(0), [0.5], 30), (2, 1))
    outcome = compare(hits.mean(axis=1), hits)
    found = outcome.differences[0]
    assert (found.p_value, found.better, found.interval.low) == (1.0, 0.5, None)
    assert "no unit" in found.interval.reason and outcome.best_group == (0, 1)


def test_runs_that_differ_on_few_units_are_not_told_apart_even_if_all_speak_for_one():
    hits = np.zeros((2, 1000))
    hits[0, :5] = 1
    found = compare(hits.mean(axis=1), hits).differences[0]
    assert found.p_value > 0.05 and found.interval.low < 0 < found.interval.high
    hits[0, 1:5] = 0
    found = compare(hits.mean(axis=1), hits).differences[0]
    assert found.p_value == 1.0 and "one unit only" in found.interval.reason


def test_a_difference_that_is_the_same_everywhere_gets_the_sign_test():
    found = compare(np.array([1.0, 0.0]), np.array([np.ones(8), np.zeros(8)])).differences[0]
    assert found.p_value == pytest.approx(stats.binomtest(8, 8).pvalue)
    assert found.interval.low is None


def test_which_way_is_up_turns_everything_around():
    hits = draw_hits(np.random.default_rng(3), [0.9, 0.6, 0.3], 300)
    up = compare(hits.mean(axis=1), hits)
    down = compare(1 - hits.mean(axis=1), 1 - hits, higher_is_better=False)
    assert [(s.place, s.rank_low, s.rank_high) for s in up.standings] == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]
    assert up.standings == down.standings
    assert [d.better for d in up.differences] == pytest.approx([d.better for d in down.differences])


def test_the_numbering_of_the_runs_does_not_matter():
    hits = draw_hits(np.random.default_rng(4), [0.6, 0.5, 0.55, 0.8], 100)
    order = np.array([2, 0, 3, 1])
    before, after = compare(hits.mean(axis=1), hits), compare(hits[order].mean(axis=1), hits[order])
    for place, run in enumerate(order):
        old, new = before.standings[run], after.standings[place]
        assert (old.place, old.rank_low, old.rank_high) == (new.place, new.rank_low, new.rank_high)


def test_an_undefined_score_is_never_a_finding():
    pseudo = np.array([[1.0, np.nan, 0.5], [0.0, 0.0, 0.1]])
    found = compare(np.array([0.5, 0.1]), pseudo).differences[0]
    assert found.p_value == 1.0 and "undefined" in found.interval.reason


def test_one_run_alone_is_refused():
    with pytest.raises(ValueError, match="at least two"):
        compare(np.array([0.5]), np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("units", "share", "alike", "least"),
    # With 60 units and such runs, about four units tell them apart: too few for any test to speak often.
    [(15, 0.5, 0.5, 0.005), (60, 0.9, 0.8, 0.0), (400, 0.7, 0.95, 0.02), (400, 0.7, 0.0, 0.035)],
)
def test_equal_runs_are_told_apart_in_about_5_percent_of_cases_or_fewer(units, share, alike, least):
    rng = np.random.default_rng(11)
    draws = (draw_hits(rng, [share, share], units, alike) for _ in range(1500))
    found = np.mean([compare(hits.mean(axis=1), hits).differences[0].p_value < 0.05 for hits in draws])
    assert least <= found < 0.065


def test_equal_runs_are_told_apart_by_macro_f1_in_about_5_percent_of_cases():
    rng = np.random.default_rng(12)
    abundance = np.arange(1, 31.0) ** -1
    found = 0
    for _ in range(400):
        truth = rng.choice(30, 400, p=abundance / abundance.sum())
        values, pseudo = [], []
        for _ in range(2):
            predicted = np.where(rng.random(400) < 0.6, truth, rng.integers(0, 30, 400))
            options = {"n_classes": 30, "over": "all"}
            values.append(macro_f1(truth, predicted, **options))
            left_out = macro_f1_without_each_unit(truth, predicted, np.arange(400), **options)
            pseudo.append(pseudo_values(values[-1], left_out))
        found += compare(np.array(values), np.array(pseudo)).differences[0].p_value < 0.05
    assert 0.005 < found / 400 < 0.075


def test_rank_intervals_hold_for_all_runs_at_once():
    rng = np.random.default_rng(13)
    shares = [0.80, 0.76, 0.60, 0.60, 0.40]
    possible = [(1, 1), (2, 2), (3, 4), (3, 4), (5, 5)]  # runs that are equal may stand in either order
    covered, decided = 0, 0
    for _ in range(600):
        hits = draw_hits(rng, shares, 250)
        outcome = compare(hits.mean(axis=1), hits)
        covered += all(
            standing.rank_low <= low and high <= standing.rank_high
            for standing, (low, high) in zip(outcome.standings, possible, strict=True)
        )
        decided += outcome.best_group == (0,)
        assert all(s.rank_low <= s.place <= s.rank_high for s in outcome.standings)
    assert covered / 600 >= 0.94
    assert 0.1 < decided / 600 < 0.9


def test_replicates_of_means_give_nearly_the_same_comparison_as_pseudo_values():
    rng = np.random.default_rng(5)
    hits = draw_hits(rng, [0.7, 0.6], 200)
    times = rng.multinomial(200, np.full(200, 1 / 200), 2000)
    by_units = compare(hits.mean(axis=1), hits).differences[0]
    by_draws = compare_replicates(hits.mean(axis=1), hits @ times.T / 200, n_units=200).differences[0]
    assert by_draws.interval.low == pytest.approx(by_units.interval.low, abs=0.01)
    assert by_draws.p_value == pytest.approx(by_units.p_value, abs=0.01)


def test_one_unit_or_one_sample_is_never_a_finding():
    values, samples = np.array([0.7, 0.3]), np.array([[0.8, 0.6, 0.7], [0.3, 0.2, 0.4]])
    one_unit = compare_replicates(values, samples, n_units=1)
    one_sample = compare_replicates(values, np.where([[True, False, False]], samples, np.nan), n_units=9)
    for found in (one_unit.differences[0], one_sample.differences[0]):
        assert found.p_value == 1.0 and "too few" in found.interval.reason
