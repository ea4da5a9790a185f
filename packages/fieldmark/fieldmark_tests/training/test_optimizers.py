import math

import pytest
import torch

from fieldmark.training.optimizers import AveragedWeights, Schedule, make_optimizer
from fieldmark.training.recipe import Training


def test_plateaus_are_those_of_torch():
    losses = [1.0, 0.9, 0.9, 0.90001, 0.89999, 0.95, 0.8, 0.81, 0.82, 0.83, 0.84, 0.85, 0.7999, 0.1]
    peer_optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.01)
    peer = torch.optim.lr_scheduler.ReduceLROnPlateau(peer_optimizer, factor=0.9, patience=1)
    schedule = Schedule(Training(schedule="plateau", lr=0.01, plateau_factor=0.9, plateau_patience=1), 10)
    for loss in losses:
        peer.step(loss)
        schedule.after_epoch(loss)
        assert schedule.factor(0) * 0.01 == pytest.approx(peer_optimizer.param_groups[0]["lr"])


def test_a_cosine_rises_falls_and_ends_near_zero():
    schedule = Schedule(Training(schedule="cosine", epochs=10, warmup_epochs=2.0), 10)
    factors = [schedule.factor(step) for step in range(100)]
    assert factors[:3] == pytest.approx([0.05, 0.1, 0.15])
    assert max(factors) == factors[20] == 1 and factors[60] == pytest.approx(0.5) and factors[-1] < 0.002
    assert math.isclose(Schedule(Training(schedule="constant"), 10).factor(99), 1)


def test_early_layers_learn_slower_with_layer_decay():
    import timm

    network = timm.create_model("resnet10t", num_classes=3)
    optimizer = make_optimizer(network, Training(lr=1.0, layer_decay=0.5, weight_decay=0.05))
    Schedule(Training(lr=1.0, schedule="constant"), 1).set(optimizer, 0)
    rate_of = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    rates = [rate_of[id(parameter)] for _, parameter in network.named_parameters()]
    assert rates[0] < 0.2 and rates[-1] == 1
    decayed = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert all(decayed[id(p)] == 0 for name, p in network.named_parameters() if p.ndim <= 1)


def test_sgd_is_plain_momentum():
    optimizer = make_optimizer(torch.nn.Linear(2, 2), Training(optimizer="sgd", momentum=0.9))
    assert isinstance(optimizer, torch.optim.SGD)
    assert optimizer.defaults["nesterov"] is False and optimizer.defaults["momentum"] == 0.9


def test_averaged_weights_follow_slowly_and_copy_counters():
    network = torch.nn.BatchNorm1d(2)
    average = AveragedWeights(network, decay=0.5)
    with torch.no_grad():
        network.weight.fill_(3.0)
        network.num_batches_tracked.fill_(7)
    average.update()  # at first the average follows faster than its decay: (1 + 1) / (10 + 1)
    torch.testing.assert_close(average.average["weight"], torch.full((2,), 3 - 2 * 2 / 11))
    assert average.average["num_batches_tracked"] == 7
    for _ in range(30):
        average.update()
    torch.testing.assert_close(average.average["weight"], torch.full((2,), 3.0))
