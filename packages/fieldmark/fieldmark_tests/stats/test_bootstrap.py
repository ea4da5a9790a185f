from __future__ import annotations

import numpy as np
import pytest

from fieldmark.metrics.openset import tnr_at_tpr, tnr_at_tpr_resampled
from fieldmark.stats import bootstrap
from fieldmark.stats.bootstrap import bootstrap_interval, draws, replicated


def test_every_draw_takes_as_many_units_as_there_are():
    blocks = list(draws(7, rng=np.random.default_rng(0), replicates=50))
    assert sum(len(block) for block in blocks) == 50
    assert all((block.sum(axis=1) == 7).all() for block in blocks)


def test_the_size_of_the_blocks_changes_nothing(monkeypatch):
    whole = np.concatenate(list(draws(9, rng=np.random.default_rng(1), replicates=30)))
    monkeypatch.setattr(bootstrap, "BLOCK_CELLS", 40)
    parts = list(draws(9, rng=np.random.default_rng(1), replicates=30))
    assert len(parts) > 1 and (np.concatenate(parts) == whole).all()


def test_the_error_of_a_mean_is_the_textbook_error():
    values = np.random.default_rng(2).random(80)
    means = replicated(lambda times: times @ values / 80, 80, rng=np.random.default_rng(3), replicates=4000)
    assert means.std(ddof=1) == pytest.approx(values.std() / 80**0.5, rel=0.05)


def test_the_same_seed_gives_the_same_interval():
    values = np.random.default_rng(4).random(20)
    first, second = (
        replicated(lambda times: times @ values / 20, 20, rng=np.random.default_rng(5), replicates=100) for _ in "ab"
    )
    assert (first == second).all()


def test_no_interval_where_the_draws_cannot_tell():
    assert "one unit" in bootstrap_interval(0.5, np.array([0.4, 0.6]), n_units=1).reason
    assert "undefined" in bootstrap_interval(0.5, np.array([0.4, np.nan, 0.6]), n_units=9).reason
    assert "same value" in bootstrap_interval(0.5, np.full(9, 0.5), n_units=9).reason
    assert "undefined" in bootstrap_interval(float("nan"), np.array([0.4, 0.6]), n_units=9).reason


@pytest.mark.parametrize("rule", ["first", "nearest"])
def test_intervals_of_tnr_at_95_percent_tpr_cover(rule):
    rng = np.random.default_rng(6)
    unit = np.repeat(np.arange(120), 2)
    is_known = unit < 80

    def draw() -> np.ndarray:
        return np.where(is_known, 0.0, 1.5) + 0.7 * rng.normal(size=120)[unit] + 0.7 * rng.normal(size=240)

    target = np.mean([tnr_at_tpr(draw(), is_known, threshold=rule) for _ in range(3000)])
    covered = 0
    for _ in range(200):
        score = draw()
        again = replicated(
            lambda times, score=score: tnr_at_tpr_resampled(score, is_known, unit, times, threshold=rule),
            120,
            rng=rng,
            replicates=150,
        )
        found = bootstrap_interval(tnr_at_tpr(score, is_known, threshold=rule), again, n_units=40)
        covered += found.low <= target <= found.high
    assert covered / 200 >= 0.91


def test_two_samples_with_a_value_are_the_least_that_vary():
    assert bootstrap.bootstrap_variance(np.array([0.2, 0.4])) == pytest.approx(0.02)
    assert np.isnan(bootstrap.bootstrap_variance(np.array([0.2])))
