"""What a stratified draw tells: without bias, also of recall, and with intervals that cover."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.special import betaincinv

from fieldmark.stats.stratified import hypergeometric, kept_share, share_estimate


@pytest.mark.parametrize("drawn", [30, 75])
@pytest.mark.parametrize("true", [0, 20, 100, 282, 900, 4000])
def test_the_mean_share_over_all_draws_is_the_true_one(drawn, true):
    size, others = 18_800, 810.0
    chances = hypergeometric(size, drawn, np.array([true]))[0]
    assert chances.sum() == pytest.approx(1)
    table = np.array([kept_share(size, drawn, seen, others) for seen in range(drawn + 1) if chances[seen] > 1e-5])
    assert np.all(np.diff(table) <= 1e-12)
    assert table @ chances[chances > 1e-5] == pytest.approx(others / (others + true), abs=0.012)


def test_the_plain_ratio_is_too_high_where_the_table_is_not():
    chances = hypergeometric(18_800, 30, np.array([282]))[0]
    plain = chances @ (810 / (810 + 18_800 * np.arange(31) / 30))
    assert plain > 810 / (810 + 282) + 0.07


def test_chances_of_a_draw_are_counted():
    made = hypergeometric(60, 12, np.array([0, 7, 60]))
    naive = [[comb(true, k) * comb(60 - true, 12 - k) / comb(60, 12) for k in range(13)] for true in (0, 7, 60)]
    np.testing.assert_allclose(made, naive, atol=1e-12)


def test_a_single_stratum_has_the_interval_of_clopper_and_pearson():
    made = share_estimate(np.array([10**7]), np.array([20]), np.array([18]), np.array([True]), of="precision")
    assert made.value == 0.9
    assert made.low == pytest.approx(betaincinv(18, 3, 0.025), abs=0.01)
    assert made.high == pytest.approx(betaincinv(19, 2, 0.975), abs=0.01)


def test_intervals_of_precision_cover_in_94_of_100_draws():
    """By every outcome of a draw of six from each of three strata, weighted with its chance."""
    sizes, hold, drawn = np.full(3, 240), np.array([170, 200, 220]), np.full(3, 6)
    chances = np.array([hypergeometric(240, 6, np.array([one]))[0] for one in hold])
    covered = 0.0
    for seen in product(range(7), repeat=3):
        chance = chances[[0, 1, 2], seen].prod()
        if chance > 1e-4:
            made = share_estimate(sizes, drawn, np.array(seen), np.ones(3, dtype=bool), of="precision")
            covered += chance * (made.low <= hold.sum() / sizes.sum() <= made.high)
    assert covered >= 0.94


def test_recall_is_nothing_where_nothing_counted_holds_and_undefined_where_nothing_does():
    sizes, drawn = np.array([100, 10]), np.array([10, 5])
    above = np.array([False, True])
    assert share_estimate(sizes, drawn, np.array([2, 0]), above, of="recall").value == 0
    assert np.isnan(share_estimate(sizes, drawn, np.array([0, 0]), above, of="recall").value)
