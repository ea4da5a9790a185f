"""What is guessed of unlabeled examples: thresholds that adapt, alignment, filters, stated taxa; and their memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fieldmark.errors import MisuseError
from fieldmark.training.consistency import Consistency
from fieldmark.training.guesses import Guesses
from fieldmark.training.losses import cross_entropy
from fieldmark.training.objectives import Prepared, StrongView
from fieldmark.training.recipe import Training
from fieldmark_tests.training.examples import CLASSES, HOW, plain, train_partly_labeled

SHARES = torch.tensor([[0.7, 0.2, 0.1], [0.4, 0.35, 0.25], [0.1, 0.1, 0.8], [0.34, 0.33, 0.33]])
ALLOWED = torch.tensor([[True, True, True], [False, True, True], [False, False, False]])


def guesses(label_shares=(0.6, 0.3, 0.1), **settings):
    usual = {"threshold": 0.5, "thresholds": "fixed", "align": False, "keep": 1.0, "within": False, "memory": 0.0}
    return Guesses(cross_entropy, torch.tensor(label_shares), ALLOWED, **usual | settings)


def test_without_memory_each_batch_is_judged_by_itself():
    sure = SHARES.max(dim=1).values
    _, fixed = guesses().guessed(SHARES.log(), None)
    assert fixed.tolist() == [1, 0, 1, 0]
    _, soft = guesses(thresholds="softmatch").guessed(SHARES.log(), None)
    below = (sure - sure.mean()).clamp(max=0)
    torch.testing.assert_close(soft, torch.exp(-(below**2) / (2 * sure.var(unbiased=False))))
    assert soft[0] == soft[2] == 1 and soft[3] < soft[1] < 1
    _, free = guesses(thresholds="freematch").guessed(SHARES.log(), None)
    often = SHARES.mean(dim=0)
    limits = sure.mean() * (often / often.max())[SHARES.argmax(dim=1)]
    assert free.tolist() == (sure >= limits).float().tolist()


def test_aligned_guesses_are_as_frequent_as_the_labels():
    shares, _ = guesses(align=True).guessed(SHARES.log(), None)
    expected = SHARES * torch.tensor([0.6, 0.3, 0.1]) / SHARES.mean(dim=0)
    torch.testing.assert_close(shares, expected / expected.sum(dim=1, keepdim=True))


def test_stated_taxa_rule_labels_out_and_those_without_labels_teach_nothing():
    groups = torch.tensor([0, 1, 2, 1])
    shares, weights = guesses(within=True).guessed(SHARES.log(), groups)
    assert weights.tolist() == [1, 1, 0, 1]  # 0.35 of 0.6, nothing left, one half
    assert shares[1].argmax() == 1 and shares[1, 0] == 0 and not shares[2].any()
    losses = guesses().coarse_losses(SHARES.log(), groups)
    torch.testing.assert_close(losses, -torch.tensor([1.0, 0.6, 1.0, 0.66]).log())
    weak = SHARES.log().requires_grad_()
    guesses().coarse_losses(weak, groups).sum().backward()
    assert torch.isfinite(weak.grad).all() and not weak.grad[2].any() and weak.grad[1].any()


def test_the_examples_least_like_any_class_are_left_out():
    logits = torch.tensor([[5.0, 0, 0], [1.0, 0, 0], [9.0, 0, 0], [3.0, 0, 0]])
    _, weights = guesses(threshold=0.0, keep=0.5).guessed(logits, None)
    assert weights.tolist() == [1, 0, 1, 0]


def test_averages_move_slowly_once_they_have_begun():
    own = guesses(thresholds="freematch", memory=0.9)
    for _ in range(200):
        own.guessed(SHARES.log(), None)
    settled = own.confidence.clone()
    own.guessed(torch.tensor([[30.0, 0, 0]]), None)
    assert settled < own.confidence < settled + 0.11 * (1 - settled)


def test_all_of_it_together_is_one_loss_by_hand():
    objective = Consistency(3, 0.5, 2.0, 1, within=True, coarse=0.25, allowed=ALLOWED.numpy())
    weak = torch.cat([torch.tensor([[2.0, 0, 0]]), SHARES.log()[1:2], torch.tensor([[0, 1.0, 0]]), SHARES.log()[2:3]])
    targets = torch.tensor([[0, 0], [-1, 1], [1, 0], [-1, 2]])
    strong = torch.tensor([[0.3, 0.1, 0.2], [1.0, 2.0, 3.0]])
    batch = Prepared(weak, targets, None, StrongView(strong, torch.tensor([1, 3])))
    loss = objective.make_loss(targets.numpy(), Training(best_by="top_1"), "cpu")
    found = objective.batch_loss(lambda inputs: inputs, batch, loss, Training(best_by="top_1"))
    labeled = cross_entropy(weak[[0, 2]], torch.tensor([0, 1])).mean()
    guessed = cross_entropy(strong[:1], torch.tensor([1]))[0] / 2  # the other has no label left
    stated = -np.log(0.6) / 2
    assert float(found) == pytest.approx(float(labeled + 2.0 * guessed) + 0.25 * stated)
    assert objective.counts(targets.numpy()).tolist() == [1, 1, 0]


@pytest.mark.parametrize("settings", [{"thresholds": "flexmatch"}, {"keep": 0.0}, {"memory": 1.0}, {"coarse": -1.0}])
def test_settings_that_cannot_be_are_refused(settings):
    with pytest.raises(MisuseError):
        Consistency(3, **settings)


def test_a_training_that_was_interrupted_remembers_its_averages(tmp_path):
    objective = Consistency(CLASSES, thresholds="freematch", align=True, keep=0.8, unlabeled_each=3)
    calls = 0

    def interrupted(raw, draws):
        nonlocal calls
        calls += draws is not None
        if calls == 14:
            raise KeyboardInterrupt
        return plain(raw, draws)

    often = replace(HOW, checkpoint_minutes=0.0)
    straight = train_partly_labeled(tmp_path / "straight", often, objective=objective)
    with pytest.raises(KeyboardInterrupt):
        train_partly_labeled(tmp_path / "cut", often, objective=objective, transform=interrupted)
    saved = torch.load(tmp_path / "cut/last.pt", weights_only=True)
    assert saved["loss"]["steps"] > 0 and saved["loss"]["confidence"] != pytest.approx(1 / CLASSES)
    resumed = train_partly_labeled(tmp_path / "cut", often, objective=objective)
    for name, tensor in straight.weights.items():
        torch.testing.assert_close(resumed.weights[name], tensor, rtol=0, atol=0)
