"""Momentum contrast: the loss by hand, the queue, the slow network, and going on after an interruption."""

from __future__ import annotations

from dataclasses import replace

import pytest
import timm
import torch
from torch.nn import functional

from fieldmark.errors import MisuseError
from fieldmark.training.loop import train
from fieldmark.training.momentum import MomentumContrast, MomentumPair
from fieldmark_tests.training.examples import HOW, Stripes

HOW = replace(HOW, best_by="last", mixup=0.0, ema=0.0, layer_decay=1.0)
LITTLE = {"momentum": 0.9, "temperature": 0.5, "dimensions": 4, "seed": 0}


def pair(queue=6):
    torch.manual_seed(0)
    network = timm.create_model("test_resnet", in_chans=1, num_classes=3)
    return MomentumPair(network, queue=queue, **LITTLE)


def embedded(network, project, inputs):
    return functional.normalize(project(network.forward_head(network.forward_features(inputs), pre_logits=True)))


def without_batch_statistics(made):
    """The same in any composition of a batch, so that it can be done again by hand."""
    made.train()
    for module in made.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.eval()
    return made


def test_a_row_is_the_likeness_to_the_own_key_then_to_the_queue():
    made = without_batch_statistics(pair())
    inputs = torch.randn(8, 1, 32, 32)
    before = made.queue.clone()
    answer = made(inputs)
    queries = embedded(made.network, made.project, inputs[:4])
    keys = embedded(*made.slow, inputs[4:])  # it has followed weights that were the same
    expected = torch.cat([(queries * keys).sum(dim=1, keepdim=True), queries @ before.T], dim=1) / 0.5
    torch.testing.assert_close(answer, expected)
    torch.testing.assert_close(made.queue[:4], keys)  # the oldest make room
    torch.testing.assert_close(made.queue[4:], before[4:])
    made(inputs)
    assert int(made.place) == 2  # four further ones, round the end
    loss = MomentumContrast(3).batch_loss(lambda _: expected, _Batch(inputs), None, HOW)
    by_hand = -torch.log(expected[:, 0].exp() / expected.exp().sum(dim=1)).mean()
    torch.testing.assert_close(loss, by_hand)


class _Batch:
    def __init__(self, inputs):
        self.inputs, self.strong = inputs[:4], self
        self.places = None


def test_the_slow_network_follows_and_is_not_learned():
    made = pair()
    made(torch.randn(8, 1, 32, 32)).sum().backward()
    assert all(weight.grad is None for weight in made.slow.parameters())
    assert made.project[0].weight.grad.any()
    start = made.slow[1][0].weight.clone()
    with torch.no_grad():
        made.project[0].weight += 1
    made(torch.randn(8, 1, 32, 32))
    torch.testing.assert_close(made.slow[1][0].weight, start + 0.1)


def test_outside_training_it_is_the_network_itself():
    made, inputs = pair().eval(), torch.randn(2, 1, 32, 32)
    torch.testing.assert_close(made(inputs), made.network(inputs))
    names = set(MomentumPair.network_weights(made.state_dict()))
    assert names == set(made.network.state_dict())


def test_an_interrupted_training_goes_on_to_the_same_weights_and_the_same_queue(tmp_path):
    how = replace(HOW, schedule="cosine", epochs=2, checkpoint_minutes=0.0, lr=0.01)
    calls = 0

    def shaken(raw, draws):
        return raw[0] + 0.1 * torch.from_numpy(draws.uniform("shift")).float().view(-1, 1, 1, 1)

    def interrupted(raw, draws):
        nonlocal calls
        calls += 1
        if calls == 11:
            raise KeyboardInterrupt
        return shaken(raw, draws)

    def trained(folder, transform=shaken):
        objective = MomentumContrast(3)
        return train(pair(24), Stripes(64), None, transform, how, objective=objective, scratch=folder)

    straight = trained(tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "cut", interrupted)
    resumed = trained(tmp_path / "cut")
    assert "queue" in straight.weights and "slow.0.fc.weight" in straight.weights
    for name, tensor in straight.weights.items():
        torch.testing.assert_close(resumed.weights[name], tensor, rtol=0, atol=0)


def test_what_does_not_go_with_it_is_refused():
    for change in ({"best_by": "top_1"}, {"ema": 0.9}, {"layer_decay": 0.5}, {"mixup": 0.1}):
        with pytest.raises(MisuseError, match="best_by=last"):
            MomentumContrast(3).check(replace(HOW, **change), 8)
