"""Frequencies of labels among items without labels: recovered where that is possible, and sound where it is not."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.stats.prior_shift import (
    confusion_weights,
    em_prior,
    mean_posterior,
    prior_standard_errors,
    reweighted,
)

MEANS = np.array([[0.0, 0.0], [1.6, 0.0], [0.0, 1.6], [1.5, 1.5]])
SOURCE, PRIOR = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])


def calibrated(rng: np.random.Generator, number: int, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exact posteriors under `SOURCE` of points of four bells that occur as `prior` says, and their bells."""
    truth = rng.choice(4, size=number, p=prior)
    points = MEANS[truth] + rng.normal(size=(number, 2))
    logits = np.log(SOURCE) + points @ MEANS.T - 0.5 * (MEANS**2).sum(axis=1)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True), truth


def test_em_recovers_a_known_prior_within_two_standard_errors_in_at_least_93_percent_of_200_draws():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(200):
        posteriors, _ = calibrated(rng, 500, PRIOR)
        found = em_prior(posteriors, SOURCE).shares
        inside.append(np.abs(found - PRIOR) <= 2 * prior_standard_errors(posteriors, SOURCE, found))
    assert (np.mean(inside, axis=0) >= 0.93).all()


def test_em_finds_the_maximum_that_a_plain_loop_finds():
    posteriors, _ = calibrated(np.random.default_rng(1), 300, PRIOR)
    shares = SOURCE
    for _ in range(20_000):
        joint = posteriors / SOURCE * shares
        shares = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(em_prior(posteriors, SOURCE).shares, shares, atol=2e-3)


def test_counting_the_answers_is_further_off_than_em():
    rng = np.random.default_rng(2)
    posteriors, _ = calibrated(rng, 5000, PRIOR)
    counted = np.bincount(posteriors.argmax(axis=1), minlength=4) / 5000
    assert np.abs(em_prior(posteriors, SOURCE).shares - PRIOR).sum() < 0.5 * np.abs(counted - PRIOR).sum()


def test_a_sample_to_begin_with_leads_to_the_same_place():
    posteriors, _ = calibrated(np.random.default_rng(3), 40_000, PRIOR)
    found = em_prior(posteriors, SOURCE).shares
    errors = prior_standard_errors(posteriors, SOURCE, found)
    assert (np.abs(found - PRIOR) < 3 * errors).all()
    single = em_prior(posteriors.astype(np.float32), SOURCE).shares
    np.testing.assert_allclose(single, found, atol=1e-3)


def test_pseudo_counts_keep_rare_labels_possible_and_lead_back_to_the_source():
    posteriors = np.tile([0.6, 0.4 - 1e-9, 1e-9], (500, 1))
    source = np.array([0.5, 0.4, 0.1])
    assert em_prior(posteriors, source).shares[2] < 1e-4
    lent = 2 * 3 * source
    assert em_prior(posteriors, source, pseudo=lent).shares[2] > 0.3 * lent[2] / 506
    heavy = em_prior(posteriors, source, pseudo=1e9 * source).shares
    np.testing.assert_allclose(heavy, source, atol=1e-4)


def test_confusions_recover_a_known_prior():
    rng = np.random.default_rng(4)
    val, truth = calibrated(rng, 20_000, SOURCE)
    joint = np.zeros((4, 4))
    np.add.at(joint, (val.argmax(axis=1), truth), 1 / len(truth))
    test, _ = calibrated(rng, 20_000, PRIOR)
    now = np.bincount(test.argmax(axis=1), minlength=4) / len(test)
    for regularize in (True, False):
        found = confusion_weights(joint, now, items=len(truth), regularize=regularize) * SOURCE
        np.testing.assert_allclose(found, PRIOR, atol=0.03)


def test_the_penalty_minimizes_what_it_says():
    rng = np.random.default_rng(5)
    joint = np.array([[0.4, 0.05, 0.02], [0.08, 0.2, 0.03], [0.02, 0.05, 0.15]])
    now = np.array([0.4, 0.3, 0.3])
    items, rest = 200, now - joint.sum(axis=1)
    scale = np.log(2 * 3 / 0.05) / items
    penalty = 0.03 * (2 * scale / 3 + np.sqrt(2 * scale))

    def cost(theta: np.ndarray) -> float:
        return float(np.linalg.norm(joint @ theta - rest) + penalty * np.linalg.norm(theta))

    weights = confusion_weights(joint, now, items=items)
    assert (weights > 0).all()  # else they were cut off, and nothing is the smallest any more
    # Weights were scaled afterwards: the smallest lies on their ray.
    theta = min((scaled * weights - 1 for scaled in np.linspace(0.2, 3, 20_001)), key=cost)
    nearby = [theta + 0.05 * rng.normal(size=3) for _ in range(300)]
    assert cost(theta) <= min(map(cost, nearby)) + 1e-6


HOSTILE = {
    "one item": np.array([[0.2, 0.8, 0.0]]),
    "no item": np.zeros((0, 3)),
    "a label never answered": np.tile([0.7, 0.3, 0.0], (50, 1)),
    "all of one label": np.tile([0.0, 0.0, 1.0], (50, 1)),
    "rows that rule everything out": np.zeros((50, 3)),
    "nothing told": np.full((50, 3), 1 / 3),
}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", HOSTILE)
def test_frequencies_are_frequencies_whatever_comes(name, kind):
    posteriors = HOSTILE[name].astype(kind)
    for source in (np.array([0.5, 0.5, 0.0]), np.array([1.0, 0.0, 0.0]), np.array([1 - 2e-30, 1e-30, 1e-30])):
        for pseudo in (None, np.array([1.0, 1.0, 0.0])):
            shares = em_prior(posteriors, source, pseudo=pseudo).shares
            assert np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() == pytest.approx(1)
    assert mean_posterior(posteriors).min() > 0


@pytest.mark.parametrize("regularize", [True, False])
def test_weights_are_weights_whatever_comes(regularize):
    empty = np.zeros((3, 3))
    only_first = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for joint in (empty, only_first):
        for now in (np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])):
            weights = confusion_weights(joint, now, items=1, regularize=regularize)
            assert np.isfinite(weights).all() and (weights >= 0).all()


def test_a_row_that_nothing_is_left_of_stays_as_it_was():
    with np.errstate(divide="ignore"):
        logs = np.log(np.array([[1.0, 0.0], [0.5, 0.5]]))
        moved = np.exp(reweighted(logs, np.log(np.array([0.0, 2.0]))))
    np.testing.assert_allclose(moved, [[1, 0], [0, 1]])
