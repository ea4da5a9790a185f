"""Optimizers, schedules and averaged weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from timm.optim import create_optimizer_v2

from fieldmark.training.recipe import Training

Tensor = Any

# How much lower a loss must be, relative to the best, to count as lower; as in torch's ReduceLROnPlateau.
PLATEAU_THRESHOLD = 1e-4


def make_optimizer(network: Any, how: Training) -> Any:
    """SGD or AdamW; biases and norms are not decayed, and layers learn at their own pace with `layer_decay`."""
    if how.optimizer == "sgd":
        options: dict[str, Any] = {"opt": "momentum", "momentum": how.momentum}  # timm's "sgd" would be Nesterov's
    else:
        options = {"opt": "adamw"}
    decay = how.layer_decay if how.layer_decay != 1 else None
    return create_optimizer_v2(network, lr=how.lr, weight_decay=how.weight_decay, layer_decay=decay, **options)


@dataclass
class Schedule:
    """By which factor the learning rate of a recipe is multiplied, now.

    Args:
        how: The recipe.
        steps_per_epoch: How long an epoch is.
        reduction: What plateaus have come to so far.
        lowest, waited: The lowest loss on val, and for how many epochs none was lower.
    """

    how: Training
    steps_per_epoch: int
    reduction: float = 1.0
    lowest: float = math.inf
    waited: int = 0

    def factor(self, step: int) -> float:
        """The factor for a step, counted from 0 over all epochs."""
        warmup = self.how.warmup_epochs * self.steps_per_epoch
        rise = min(1.0, (step + 1) / warmup) if warmup else 1.0
        if self.how.schedule == "plateau":
            return self.reduction
        if self.how.schedule == "constant" or rise < 1:
            return rise
        total = self.how.epochs * self.steps_per_epoch
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1.0, total - warmup)))

    def set(self, optimizer: Any, step: int) -> float:
        """Gives every group of the optimizer its rate for a step; returns the rate of the last layer."""
        rate = self.how.lr * self.factor(step)
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("lr_scale", 1.0)
        return rate

    def after_epoch(self, val_loss: float) -> None:
        """Takes note of the loss on val, for plateaus."""
        if val_loss < self.lowest * (1 - PLATEAU_THRESHOLD):
            self.lowest, self.waited = val_loss, 0
        else:
            self.waited += 1
        if self.waited > self.how.plateau_patience:
            self.reduction, self.waited = self.reduction * self.how.plateau_factor, 0

    def state(self) -> dict[str, float]:
        return {"reduction": self.reduction, "lowest": self.lowest, "waited": self.waited}


class AveragedWeights:
    """An exponential moving average of a network's weights; what is not floating point is copied.

    The average starts fast and slows down to `decay`, so that the first steps do not stay in it for long.
    """

    def __init__(self, network: Any, decay: float) -> None:
        self.network, self.decay, self.updates = network, decay, 0
        self.average = {name: tensor.clone() for name, tensor in self._own().items()}

    def update(self) -> None:
        """Moves the average a little towards the weights of now."""
        self.updates += 1
        weight = 1 - min(self.decay, (1 + self.updates) / (10 + self.updates))
        floating: tuple[list[Tensor], list[Tensor]] = ([], [])
        for name, tensor in self._own().items():
            if tensor.is_floating_point():
                floating[0].append(self.average[name])
                floating[1].append(tensor)
            else:
                self.average[name].copy_(tensor)
        torch._foreach_lerp_(*floating, weight)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Gives the network the averaged weights for a while."""
        kept = {name: tensor.clone() for name, tensor in self._own().items()}
        self._put(self.average)
        try:
            yield
        finally:
            self._put(kept)

    def restart(self, updates: int) -> None:
        """Goes on from the weights that the network has now, as the average after so many updates."""
        self.updates = updates
        for name, tensor in self._own().items():
            self.average[name].copy_(tensor)

    def _own(self) -> dict[str, Tensor]:
        """The part of each tensor that this process has: all of it, unless the network is shared out."""
        return {name: local(tensor.detach()) for name, tensor in self.network.state_dict().items()}

    def _put(self, weights: Mapping[str, Tensor]) -> None:
        for name, tensor in self._own().items():
            tensor.copy_(weights[name])


def local(tensor: Tensor) -> Tensor:
    """The part of a tensor that this process has; all of one that is not shared out among processes."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor
