"""A shrunk covariance."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.methods.covariance import Covariance


@pytest.mark.parametrize("n", [6, 40], ids=["fewer rows than columns", "more"])
def test_whitening_makes_the_shrunk_covariance_a_ball(n):
    rng = np.random.default_rng(6)
    deviations = rng.normal(size=(n, 10)) * np.arange(1, 11)
    found = Covariance.of(lambda block: deviations[block], deviations.shape, n)
    plain = deviations.T @ deviations / n
    shrunk = 0.7 * plain + 0.3 * np.trace(plain) / 10 * np.eye(10)
    root = found.whitened(np.eye(10), 0.3)
    assert root @ shrunk @ root.T == pytest.approx(np.eye(10), abs=1e-8)
    weights, bias = found.discriminants(np.eye(10), 0.3)
    assert weights == pytest.approx(np.linalg.inv(shrunk), rel=1e-3, abs=1e-6)
    assert bias == pytest.approx(-0.5 * np.linalg.inv(shrunk).diagonal(), rel=1e-3)
