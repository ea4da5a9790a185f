"""Doubted labels: those that a sure model contradicts, and no others."""

from __future__ import annotations

import numpy as np

from fieldmark.stats.label_doubts import label_doubts


def drawn(rng: np.random.Generator, items: int, classes: int, strength: float) -> tuple[np.ndarray, np.ndarray]:
    truth = rng.integers(0, classes, items).astype(np.int32)
    logits = rng.normal(0, 1, (items, classes))
    logits[np.arange(items), truth] += strength
    p = np.exp(logits)
    return p / p.sum(axis=1, keepdims=True), truth


def test_planted_errors_are_found_where_the_model_is_good():
    rng = np.random.default_rng(0)
    p, truth = drawn(rng, 2000, 10, 8.0)
    labels = truth.copy()
    planted = rng.permutation(2000)[:200]
    labels[planted] = (truth[planted] + rng.integers(1, 10, 200)) % 10
    doubts = label_doubts(p, labels)
    assert doubts.doubted[planted].mean() > 0.98
    assert np.isin(np.flatnonzero(doubts.doubted), planted).mean() > 0.98
    assert (doubts.suggested[planted] == truth[planted]).mean() > 0.98
    first = np.argsort(doubts.margin)[:200]
    assert np.isin(first, planted).mean() > 0.98


def test_a_class_that_the_model_is_less_sure_of_is_not_doubted_for_that():
    """The threshold of a class is the model's mean confidence in it: 0.5 beside 0.45 is enough where 0.5 is usual."""
    p = np.array([[0.97, 0.03]] * 20 + [[0.55, 0.45]] * 5 + [[0.45, 0.55]] * 20)
    labels = np.array([0] * 20 + [1] * 25, dtype=np.int32)
    doubts = label_doubts(p, labels)
    assert not doubts.doubted.any()
    assert (p[20:25].argmax(axis=1) != labels[20:25]).all()  # by the likeliest class alone they would be


def test_a_class_without_items_is_suggested_for_none():
    p = np.array([[0.1, 0.1, 0.8], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1]])
    doubts = label_doubts(p, np.array([0, 1, 0], dtype=np.int32))
    assert not doubts.doubted[1:].any() and not (doubts.doubted & (doubts.suggested == 2)).any()
