"""Objectives for few labels: partners of the contrast, and the share of a teacher."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fieldmark.errors import MisuseError
from fieldmark.training.objective_names import make_objective
from fieldmark.training.objectives import Prepared, StrongView
from fieldmark.training.recipe import Training
from fieldmark.training.semi_objectives import (
    ClassAwareContrast,
    Contrast,
    Distillation,
    class_aware_contrast,
    taught_labels,
)


def by_hand(views: np.ndarray, chances: np.ndarray, sure: float, temperature: float) -> float:
    """The same, pair by pair."""
    unit = views / np.linalg.norm(views, axis=1, keepdims=True)
    number, losses = len(chances), []
    for one in range(2 * number):
        others = [other for other in range(2 * number) if other != one]
        total = sum(np.exp(unit[one] @ unit[other] / temperature) for other in others)
        weights = {}
        for other in others:
            a, b = one % number, other % number
            both = chances[a].max() >= sure and chances[b].max() >= sure and chances[a].argmax() == chances[b].argmax()
            weights[other] = 1.0 if a == b else (chances[a].max() * chances[b].max() if both else 0.0)
        logs = {other: unit[one] @ unit[other] / temperature - np.log(total) for other in others}
        losses.append(-sum(weights[o] * logs[o] for o in others) / sum(weights.values()))
    return float(np.mean(losses))


@pytest.mark.parametrize("sure", [0.0, 0.7, 1.0])
def test_the_contrast_is_that_of_all_pairs_by_hand(sure):
    rng = np.random.default_rng(0)
    views, chances = rng.normal(size=(8, 5)), rng.dirichlet(np.ones(3) * 0.4, size=4)
    own = class_aware_contrast(torch.tensor(views), torch.tensor(chances), sure, 0.5)
    assert float(own) == pytest.approx(by_hand(views, chances, sure, 0.5))


def test_the_teacher_counts_by_alpha():
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    targets = torch.tensor(taught_labels(np.array([0, -1], dtype=np.int32), np.array([[0.25, 0.75]], np.float32)))
    batch = Prepared(torch.zeros(2, 1), targets, None)
    loss = Distillation(2, alpha=0.7).batch_loss(lambda inputs: logits, batch, None, Training())
    logs = logits.log_softmax(dim=1)
    expected = -0.3 * logs[0, 0] - 0.7 * (0.25 * logs[1, 0] + 0.75 * logs[1, 1])
    assert float(loss) == pytest.approx(float(expected))


def test_without_contrast_it_is_fixmatch():
    from fieldmark.training.consistency import Consistency
    from fieldmark.training.losses import cross_entropy

    rng = torch.Generator().manual_seed(1)
    inputs, strong = torch.randn(4, 6, generator=rng), torch.randn(2, 6, generator=rng) * 3
    batch = Prepared(inputs, torch.tensor([0, -1, 2, -1]), None, StrongView(strong, torch.tensor([1, 3])))
    own = ClassAwareContrast(3, contrast=0.0, threshold=0.3, unlabeled_each=1)
    plain = Consistency(3, threshold=0.3, unlabeled_each=1)
    answers = own.batch_loss(lambda shown: torch.cat([shown[:, :3], shown], dim=1), batch, cross_entropy, Training())
    expected = plain.batch_loss(lambda shown: shown[:, :3], batch, cross_entropy, Training())
    assert float(answers) == pytest.approx(float(expected))


def test_recipes_that_do_not_go_with_them_are_refused():
    with pytest.raises(MisuseError, match="best_by=last"):
        Contrast(3).check(Training(best_by="top_1"), 8)
    with pytest.raises(MisuseError, match="cannot hold 3 unlabeled"):
        Distillation(3).check(Training(best_by="top_1"), 6)
    with pytest.raises(MisuseError, match=r"temperature=.*: expected a number above 0"):
        make_objective("class-aware-contrast:temperature=0", classes=3)
