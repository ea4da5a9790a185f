"""Promises of precision: what looks share, what they need, and that they hold on average."""

import numpy as np
import pytest
from scipy.stats import binom

from fieldmark.stats.promises import (
    effective_answers,
    fewest_units,
    look_level,
    look_sizes,
    promise_p_value,
    promised_threshold,
    units_needed,
)


def test_independent_answers_are_tested_by_the_exact_binomial_tail():
    right = np.arange(50) >= 2
    units = np.arange(50)
    assert effective_answers(right, units) == pytest.approx(50, abs=1e-9)
    assert promise_p_value(right, units, share=0.8) == pytest.approx(binom.sf(47, 50, 0.8), rel=1e-9)


def test_answers_of_one_recording_that_agree_count_as_one():
    unit = np.repeat(np.arange(20), 5)
    alike = np.repeat(np.arange(20) >= 6, 5)
    assert effective_answers(alike, unit) == pytest.approx(20, rel=0.1)
    assert effective_answers(np.ones(100, dtype=bool), unit) == 20


def test_all_looks_together_have_the_risk_that_was_stated():
    rng, sizes = np.random.default_rng(0), look_sizes(150, share=0.9, risk=0.05)
    level = look_level(sizes, share=0.9, risk=0.05)
    right = (rng.random((4000, 150)) < 0.9).cumsum(axis=1)
    passed = np.zeros(4000, dtype=bool)
    for size in sizes:
        passed |= binom.sf(right[:, size - 1] - 1, size, 0.9) <= level
    assert 0.03 < passed.mean() < 0.06


def test_nothing_is_promised_of_fewer_recordings_than_a_promise_needs():
    assert fewest_units(0.9, 0.05) == 29
    for many, given in ((28, False), (29, True)):
        promise = promised_threshold(np.linspace(0, 1, many), np.ones(many, dtype=bool), np.arange(many))
        assert (promise.threshold is not None) == given


def test_a_detector_that_is_right_too_rarely_gets_no_threshold_in_nineteen_of_twenty_surveys():
    rng = np.random.default_rng(1)
    given = 0
    for _ in range(300):
        unit = np.repeat(np.arange(80), 3)
        right = rng.random(240) < np.repeat(rng.beta(0.89 * 6, 0.11 * 6, 80), 3)
        given += promised_threshold(rng.random(240), right, unit).threshold is not None
    assert given / 300 <= 0.07


def test_the_number_of_recordings_that_would_show_it_does():
    many = units_needed(0.97)
    rng = np.random.default_rng(2)
    shown = [promise_p_value(rng.random(many) < 0.97, np.arange(many), share=0.9) <= 0.05 for _ in range(500)]
    assert np.mean(shown) > 0.75  # 0.8 and more, less three standard errors of 500 draws
    assert units_needed(0.89) is None
