"""Ratios of counts: shrunk toward wider contexts, continuous, and sane where little was seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldmark.steps.priors.smoothing import hierarchical_ratios, shrunk_ratios

SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed: int, leaves: int = 6, labels: int = 5) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Counts of labels in leaves of two levels: three wide contexts with two narrow ones each."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.5, 6, (leaves, labels))).astype(float)
    return counts, counts.sum(axis=1), [np.arange(leaves) // 2, np.arange(leaves)]


def test_by_hand():
    # Two labels, 8 observations; label 0 has 3 of the 4 in context 0. With strength 2: m = 2 (4.5/8 + 1/2) = 2.125.
    counts = np.array([[3.0, 1.0], [1.0, 3.0]])
    found = shrunk_ratios(counts, counts.sum(axis=1), np.ones((2, 2)), 2.0)
    assert found == pytest.approx(np.array([[5.125, 3.125], [3.125, 5.125]]) / 4.125)


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_with_hardly_any_observation_in_it_a_context_says_what_the_wider_one_says(seed):
    counts, seen, levels = drawn(seed)
    for share, most in ((1e-7, 1e-3), (0.0, 1e-12)):
        rare, rare_seen = counts.copy(), seen.copy()
        rare[0], rare_seen[0] = counts[0] * share, seen[0] * share
        wide, narrow = hierarchical_ratios(rare, rare_seen, levels, 3.0)
        assert narrow[0] == pytest.approx(wide[0], abs=most, rel=most)


@given(SEEDS, st.floats(0.05, 30))
@settings(max_examples=40, deadline=None)
def test_back_off_is_continuous_in_the_counts(seed, size):
    counts, seen, levels = drawn(seed)
    pattern = np.random.default_rng(seed).dirichlet(np.ones(counts.shape[1]))

    def narrow(n: float) -> np.ndarray:
        changed, changed_seen = counts.copy(), seen.copy()
        changed[0], changed_seen[0] = n * pattern, n
        return hierarchical_ratios(changed, changed_seen, levels, 3.0)[1][0]

    step = 1e-6 * size
    assert np.abs(narrow(size + step) - narrow(size)).max() < 1e-3


@given(SEEDS, st.floats(0.1, 100))
@settings(max_examples=40, deadline=None)
def test_no_label_is_held_for_more_certain_than_certain(seed, strength):
    """The ratio times the share of a label stays at or below 1, so that it is a probability without being cut."""
    counts, seen, levels = drawn(seed)
    if not seen.sum():
        return
    share = counts.sum(axis=0) / seen.sum()
    for ratios in hierarchical_ratios(counts, seen, levels, strength):
        assert (ratios * share <= 1 + 1e-9).all() and (ratios > 0).all()


def test_a_rare_label_is_not_punished_where_it_happens_to_be_missing():
    counts = np.array([[1.0, 500.0], [0.0, 499.0]])
    ratios = shrunk_ratios(counts, counts.sum(axis=1), np.ones((2, 2)), 5.0)
    assert ratios[1, 0] > 0.8  # one photo, in the other context, tells next to nothing
    counts = np.array([[100.0, 500.0], [0.0, 499.0]])
    assert shrunk_ratios(counts, counts.sum(axis=1), np.ones((2, 2)), 5.0)[1, 0] < 0.2


def test_labels_with_few_observations_borrow_from_their_taxon():
    # Labels 0 and 1 are one genus that lives in context 0; label 2 is of another, and label 3 of none that is known.
    counts = np.array([[50.0, 0.0, 25.0, 0.0], [0.0, 0.0, 25.0, 0.0]])
    level, taxa = [np.array([0, 1])], np.array([0, 0, 1, -1], dtype=np.int32)
    alone = hierarchical_ratios(counts, counts.sum(axis=1), level, 5.0)[0]
    borrowed = hierarchical_ratios(counts, counts.sum(axis=1), level, 5.0, taxa)[0]
    assert alone[:, 1] == pytest.approx(1.0)
    assert borrowed[0, 1] > 1.2 and borrowed[1, 1] < 0.3
    assert borrowed[:, 3] == pytest.approx(alone[:, 3])


def test_a_context_without_a_wider_one_backs_off_to_the_widest():
    counts, seen, levels = drawn(4)
    levels[0][0] = -1
    counts[0], seen[0] = 0.0, 0.0
    assert hierarchical_ratios(counts, seen, levels, 3.0)[1][0] == pytest.approx(1.0)
