"""EM over the photos asked about."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.methods.em import Transductive
from fieldmark.methods.prototypes import Prototypes
from fieldmark_tests.methods.few_photos import LABELS, answers, part, view_of


def test_em_without_rounds_or_weight_answers_as_prototypes(birds):
    shown, asked, _ = birds
    plain = answers(Prototypes(measure="distance", power=1), shown, asked)
    for method in (Transductive(iterations=0), Transductive(weight=0.0)):
        assert (answers(method, shown, asked) == plain).all()


def test_em_moves_means_towards_the_photos_asked_about():
    """Two clusters whose single training photos lie at their edges: only the photos asked about tell where they are."""
    rng = np.random.default_rng(7)
    truth = np.repeat([0, 1], 100)
    across = np.where(truth == 0, 0.0, 2.0) + rng.normal(0, 0.35, 200)
    asked = np.column_stack([across, 4 + rng.normal(0, 0.35, 200)])
    train, val = part([[-1.0, 4.0], [1.4, 4.0]], [0, 1]), part(asked[::10], truth[::10])
    shown, photos = view_of(train, val), part(asked, None)
    settings = {"shrinkage": 0.99, "borrow": 0.0}
    before = (answers(Prototypes(**settings, measure="distance", power=1), shown, photos) == truth).mean()
    moved = Transductive(**settings, weight=1.0, confidence=20.0)
    assert (answers(moved, shown, photos) == truth).mean() > before


def test_em_depends_on_what_is_asked_together_and_not_on_its_order(birds):
    shown, asked, _ = birds
    fitted = Transductive().fit(shown)
    scores = fitted.predict(asked, LABELS).scores
    order = np.random.default_rng(8).permutation(len(asked))
    assert fitted.predict(asked.take(order), LABELS).scores == pytest.approx(scores[order], rel=1e-3, abs=1e-3)
    assert not np.allclose(fitted.predict(asked.take([0]), LABELS).scores, scores[:1], rtol=1e-3)


def test_em_gives_a_photo_between_two_species_to_the_more_frequent_one_only_where_it_learns_frequencies():
    train = part([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    asked = part([*[[0.0, 1.0]] * 50, [0.7, 0.7]], None)
    settings = {"shrinkage": 0.99, "borrow": 0.0, "weight": 0.0, "confidence": 1.0}
    flat, learned = (
        Transductive(**settings, frequencies=how).fit(view_of(train)).predict(asked, LABELS).scores[-1, :2]
        for how in ("flat", "estimated")
    )
    assert learned[1] - learned[0] > flat[1] - flat[0] == pytest.approx(0, abs=1e-6)
