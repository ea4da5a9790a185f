from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from sklearn.metrics import log_loss as peer

from fieldmark.metrics import probabilistic
from fieldmark.metrics.probabilistic import log_loss, log_loss_without_each_unit
from fieldmark_tests.metrics.drawing import draw_units, generators, recomputed

RULES = ("never", "before clipping", "after clipping")


@given(rng=generators)
def test_log_loss_of_proper_probabilities_equals_scikit_learn(rng):
    probability, truth = rng.dirichlet(np.ones(5), 30), rng.integers(0, 5, 30)
    expected = peer(truth, probability, labels=np.arange(5))
    for rule in RULES:
        assert log_loss(truth, probability, eps=1e-15, renormalize=rule) == pytest.approx(expected, rel=1e-6)


def test_a_certain_mistake_costs_what_clipping_allows():
    truth, probability = np.array([1]), np.array([[1.0, 0.0]])
    assert log_loss(truth, probability, eps=1e-15, renormalize="never") == pytest.approx(15 * np.log(10))
    assert log_loss(truth, probability, eps=np.finfo(float).eps, renormalize="never") == pytest.approx(
        peer(truth, probability, labels=[0, 1])
    )
    assert log_loss(truth, probability, eps=0, renormalize="never") == np.inf


@given(rng=generators)
def test_renormalizing_follows_the_formula_row_by_row(rng):
    probability, truth = rng.random((12, 4)) * 3, rng.integers(0, 4, 12)
    eps = 0.05
    before, after = [], []
    for row, true in zip(probability, truth, strict=True):
        before.append(-np.log(min(max(row[true] / sum(row), eps), 1 - eps)))
        clipped = [min(max(p, eps), 1 - eps) for p in row]
        after.append(-np.log(clipped[true] / sum(clipped)))
    assert log_loss(truth, probability, eps=eps, renormalize="before clipping") == pytest.approx(np.mean(before))
    assert log_loss(truth, probability, eps=eps, renormalize="after clipping") == pytest.approx(np.mean(after))


@given(rng=generators)
def test_leaving_out_a_unit_and_the_size_of_blocks_change_only_what_they_should(rng):
    probability, truth, unit = rng.dirichlet(np.ones(3), 20), rng.integers(0, 3, 20), draw_units(rng, 20)
    options = {"eps": 1e-7, "renormalize": "after clipping"}
    fast = log_loss_without_each_unit(truth, probability, unit, **options)
    np.testing.assert_allclose(fast, recomputed(log_loss, (truth, probability), unit, **options))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probabilistic, "BLOCK_CELLS", 7)
        np.testing.assert_allclose(log_loss_without_each_unit(truth, probability, unit, **options), fast)


@pytest.mark.parametrize(
    ("probability", "truth", "options", "message"),
    [
        ([[np.nan, 1.0]], [0], {"eps": 0.1, "renormalize": "never"}, "NaN"),
        ([[-0.1, 1.1]], [0], {"eps": 0.1, "renormalize": "never"}, "negative"),
        ([[0.0, 0.0]], [0], {"eps": 0.1, "renormalize": "before clipping"}, "sums to 0"),
        ([[0.5, 0.5]], [-1], {"eps": 0.1, "renormalize": "never"}, "contain -1"),
        ([[0.5, 0.5]], [0], {"eps": 0.6, "renormalize": "never"}, "eps is 0.6"),
        ([[0.5, 0.5]], [0], {"eps": 0.1, "renormalize": "sometimes"}, "renormalize='sometimes'"),
    ],
)
def test_what_has_no_meaning_is_refused(probability, truth, options, message):
    with pytest.raises(ValueError, match=message):
        log_loss(np.array(truth), np.array(probability), **options)
