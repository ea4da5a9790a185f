"""Momentum contrast: a photo is told from all that were seen before, without a label (MoCo).

He et al., "Momentum contrast for unsupervised visual representation learning" (2020), with the projection head of
Chen et al., "Improved baselines with momentum contrastive learning" (2020). What must outlast a step (the slow network
and the queue) is part of the network that is trained, so that a checkpoint holds it and a training that was killed goes
on exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from fieldmark.errors import MisuseError
from fieldmark.training.losses import Loss, cross_entropy
from fieldmark.training.objectives import Prepared
from fieldmark.training.recipe import Training
from fieldmark.training.semi_objectives import WithoutLabels

Tensor = Any

# The network in front of all names of its weights.
PREFIX = "network."


class MomentumPair(torch.nn.Module):  # type: ignore[misc]
    """A network with a slow copy of itself and a queue of what that copy has seen.

    In training, a batch holds the first views of all photos, then the second ones. The network sees the first, its slow
    copy the second; the answer has a row for each photo: how near its two views are, then how near its first view is to
    each entry of the queue, all divided by the temperature. The right answer is always the first column. Otherwise it
    answers as the network does.

    The slow copy sees the photos in another order and in two halves, so that statistics of batch normalization do not
    give away which two views belong together (the paper shuffles between devices).

    Args:
        network: A network of timm; its classifier learns nothing here.
        queue: How many photos the queue holds.
        momentum: How slowly the copy follows: its share of itself from one step to the next.
        temperature: How sharply near ones are told from far ones.
        dimensions: The length of what is compared.
        seed: The seed of the projection and of what stands in the queue at first.
    """

    def __init__(
        self, network: Any, *, queue: int, momentum: float, temperature: float, dimensions: int, seed: int
    ) -> None:
        super().__init__()
        self.network, self.momentum, self.temperature = network, momentum, temperature
        width = network.get_classifier().in_features
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.project = torch.nn.Sequential(
                torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, dimensions)
            )
            self.register_buffer("queue", functional.normalize(torch.randn(queue, dimensions)))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))
        network.get_classifier().requires_grad_(False)
        self.slow = deepcopy(torch.nn.ModuleList([network, self.project])).requires_grad_(False)

    def forward(self, inputs: Tensor) -> Tensor:
        """See the class."""
        if not self.training:
            return self.network(inputs)
        first, second = inputs.chunk(2)
        with torch.no_grad():
            self._follow()
            keys = self._slowly(second)
        queries = functional.normalize(self._embedded(self.network, self.project, first).float())
        own = (queries * keys).sum(dim=1, keepdim=True)
        others = queries @ self.queue.clone().detach().T
        with torch.no_grad():
            self._remember(keys)
        return torch.cat([own, others], dim=1) / self.temperature

    def _embedded(self, network: Any, project: Any, inputs: Tensor) -> Tensor:
        return project(network.forward_head(network.forward_features(inputs), pre_logits=True))

    def _slowly(self, inputs: Tensor) -> Tensor:
        order = torch.randperm(len(inputs), device=inputs.device)
        halves = inputs[order].chunk(2) if len(inputs) > 3 else (inputs[order],)
        network, project = self.slow
        seen = torch.cat([self._embedded(network, project, half) for half in halves]).float()
        keys = torch.empty_like(seen)
        keys[order] = functional.normalize(seen)
        return keys

    def _follow(self) -> None:
        fast = [*self.network.parameters(), *self.project.parameters()]
        for slow, own in zip(self.slow.parameters(), fast, strict=True):
            slow.lerp_(own, 1 - self.momentum)

    def _remember(self, keys: Tensor) -> None:
        keys = keys[-len(self.queue) :]
        rows = (self.place + torch.arange(len(keys), device=keys.device)) % len(self.queue)
        self.queue[rows] = keys
        self.place.copy_((self.place + len(keys)) % len(self.queue))

    @staticmethod
    def network_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Those of the network itself, among all weights of a pair."""
        return {name.removeprefix(PREFIX): tensor for name, tensor in weights.items() if name.startswith(PREFIX)}


@dataclass(frozen=True)
class MomentumContrast(WithoutLabels):
    """No labels at all: the first view of a photo is nearer to the second than to the photos of earlier batches.

        L = mean over photos of -log( exp(q k+ / t) / (exp(q k+ / t) + sum over the queue of exp(q k / t)) )

    It trains a `MomentumPair`, before labels are learned. The classifier learns nothing, so that the last epoch is
    taken (best_by=last).
    """

    def batch_loss(self, model: Any, batch: Prepared, loss: Loss, how: Training) -> Tensor:
        assert batch.strong is not None  # every example is shown twice
        likeness = model(torch.cat([batch.inputs, batch.strong.inputs])).float()
        first = torch.zeros(len(likeness), dtype=torch.int64, device=likeness.device)
        return cross_entropy(likeness, first).mean()

    def outcomes(self, logits: Tensor, targets: Tensor, loss: Loss) -> Tensor:
        return super().outcomes(logits, targets.clamp(min=0), loss)

    def check(self, how: Training, part: int) -> None:
        super().check(how, part)
        if how.strategy == "fsdp":
            raise MisuseError("momentum contrast follows a network by a copy of it, which needs strategy=ddp.")
        if how.best_by != "last" or how.mixup or how.ema or how.layer_decay != 1:
            raise MisuseError(
                "momentum contrast learns no labels, mixes nothing and averages by itself: "
                "set best_by=last, mixup=0, ema=0 and layer_decay=1."
            )
