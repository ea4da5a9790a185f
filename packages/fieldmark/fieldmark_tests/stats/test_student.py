from __future__ import annotations

import math

import pytest
from scipy.special import stdtr, stdtrit

from fieldmark.stats.student import t_quantile, t_share

FREEDOMS = [(0.3, 1e-12), (1, 1e-12), (2.7, 1e-12), (59, 1e-12), (401, 1e-12), (50_084.5, 1e-10), (1e6, 1e-10)]


@pytest.mark.parametrize("freedom,near", FREEDOMS)
def test_shares_and_quantiles_are_those_of_scipy(freedom, near):
    for t in (-40, -3, -1.96, -0.1, 0, 0.5, 2, 8):
        assert t_share(freedom, t) == pytest.approx(float(stdtr(freedom, t)), rel=near, abs=1e-300)
    for share in (0.001, 0.025, 0.4, 0.6, 0.975, 0.9999):
        assert t_quantile(freedom, share) == pytest.approx(float(stdtrit(freedom, share)), rel=near)


def test_without_freedom_there_is_no_quantile():
    assert math.isnan(t_quantile(0, 0.975)) and math.isnan(t_quantile(math.nan, 0.975))
    assert t_quantile(5, 0.5) == 0
