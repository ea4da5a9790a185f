"""Tango's interval: a published one, the score at its ends, symmetry, and coverage where few units differ."""

import numpy as np
import pytest
from scipy.special import xlogy

from fieldmark.stats.paired_shares import paired_share_interval


def pair(both: int, more: int, fewer: int, neither: int):
    one = np.repeat([True, True, False, False], [both, more, fewer, neither])
    return one, np.repeat([True, False, True, False], [both, more, fewer, neither])


def naive_score(difference: float, units: int, more: int, fewer: int) -> float:
    """The score at a difference, its likeliest nuisance parameter found on a fine grid."""
    share = np.linspace(max(0.0, -difference), (1 - difference) / 2, 400_001)[1:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = (
            xlogy(more, share + difference)
            + xlogy(fewer, share)
            + xlogy(units - more - fewer, 1 - 2 * share - difference)
        )
    best = share[np.nanargmax(chance)]
    return (more - fewer - units * difference) / np.sqrt(units * (2 * best + difference * (1 - difference)))


def test_a_published_interval_is_met():
    """Airway hyperresponsiveness before and after a transplant (Bentur et al. 2009, in Fagerland et al. 2014)."""
    value, low, high = paired_share_interval(*pair(1, 1, 7, 12))
    assert (value, low, high) == pytest.approx((-0.286, -0.517, -0.026), abs=1e-3)


@pytest.mark.parametrize("counts", [(43, 0, 1, 0), (60, 2, 2, 16), (150, 4, 9, 37), (10, 7, 1, 2)])
def test_the_score_at_both_ends_is_the_quantile(counts):
    _, low, high = paired_share_interval(*pair(*counts))
    units, more, fewer = sum(counts), counts[1], counts[2]
    assert naive_score(low, units, more, fewer) == pytest.approx(1.96, abs=2e-3)
    assert naive_score(high, units, more, fewer) == pytest.approx(-1.96, abs=2e-3)


def test_exchanging_the_two_changes_the_sign():
    one, other = pair(50, 4, 9, 20)
    value, low, high = paired_share_interval(one, other)
    assert paired_share_interval(other, one) == pytest.approx((-value, -high, -low), abs=1e-9)


def test_it_covers_where_few_units_differ():
    rng, held = np.random.default_rng(0), 0
    for _ in range(1000):
        counts = rng.multinomial(80, [0.9, 0.01, 0.03, 0.06])
        _, low, high = paired_share_interval(*pair(*counts))
        held += low <= -0.02 <= high
    assert held >= 940
