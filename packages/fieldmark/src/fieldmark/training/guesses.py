"""What a network guesses of unlabeled examples while it learns: thresholds that adapt, alignment, filters.

The same ideas as `methods.semi.pseudo_labels` has for frozen features, batch by batch. What they go by (how sure the
network is, how often it guesses each class) is averaged over steps; the averages are buffers of a module, so that a
checkpoint holds them.
"""

from __future__ import annotations

from typing import Any

import torch

from fieldmark.training.losses import Loss

Tensor = Any

THRESHOLDS = {
    "fixed": "as sure as the threshold",
    "softmatch": "every guess counts, by a Gaussian around the mean confidence (Chen et al. 2023)",
    "freematch": "the mean confidence, lower for classes that are seldom guessed (Wang et al. 2023)",
}
SMALLEST = 1e-12


class Guesses(torch.nn.Module):  # type: ignore[misc]
    """The loss of labeled examples, and how guesses of unlabeled ones become labels.

    Of FreeMatch the thresholds are here, not its loss for fairness.

    Args:
        plain: The loss of labeled examples.
        label_shares: How frequent each class is among the labels.
        allowed: See `consistency.Consistency`, as for all others.
    """

    def __init__(
        self,
        plain: Loss,
        label_shares: Tensor,
        allowed: Tensor | None,
        *,
        threshold: float,
        thresholds: str,
        align: bool,
        keep: float,
        within: bool,
        memory: float,
    ) -> None:
        super().__init__()
        self.plain, self.threshold, self.thresholds = plain, threshold, thresholds
        self.align, self.keep, self.within, self.memory = align, keep, within, memory
        classes = len(label_shares)
        self.register_buffer("label_shares", label_shares, persistent=False)
        self.register_buffer("allowed", allowed, persistent=False)
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("said", torch.full((classes,), 1 / classes))
        self.register_buffer("guessed_shares", torch.full((classes,), 1 / classes))
        self.register_buffer("confidence", torch.tensor(1 / classes))
        self.register_buffer("variance", torch.tensor(1.0))
        self.register_buffer("least_like", torch.tensor(0.0))

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of labeled examples."""
        return self.plain(logits, labels)

    def guessed(self, weak: Tensor, groups: Tensor | None) -> tuple[Tensor, Tensor]:
        """What each unlabeled example is taught as, and how much it counts; the averages move on a step.

        Args:
            weak: The logits of the weak view, without gradient.
            groups: The row of `allowed` for each example, where there are stated taxa.
        """
        # The averages start fast and slow down to `memory`, so that the first steps do not stay in them for long.
        self.steps += 1
        pace = 1 - torch.minimum(torch.full_like(self.steps, self.memory), self.steps / (10 + self.steps))
        shares = weak.softmax(dim=1)
        if self.align:
            self._renew(self.said, shares.mean(dim=0), pace)
            shares = shares * (self.label_shares / self.said.clamp(min=SMALLEST))
        possible = torch.ones(len(weak), device=weak.device)
        if self.within and groups is not None:
            allowed = self.allowed[groups]
            shares, possible = shares * allowed, allowed.any(dim=1).float()
        shares = shares / shares.sum(dim=1, keepdim=True).clamp(min=SMALLEST)
        weights = possible * self._weights(shares, possible, pace)
        if self.keep < 1:
            highest = weak.max(dim=1).values
            self._renew(self.least_like, highest.quantile(1 - self.keep), pace)
            weights = weights * (highest >= self.least_like)
        return shares, weights

    def _weights(self, shares: Tensor, possible: Tensor, pace: Tensor) -> Tensor:
        sure, answers = shares.max(dim=1)
        if self.thresholds == "fixed":
            return (sure >= self.threshold).float()
        counted = possible.sum().clamp(min=1)
        mean = (sure * possible).sum() / counted
        self._renew(self.confidence, mean, pace)
        if self.thresholds == "softmatch":
            self._renew(self.variance, ((sure - mean) ** 2 * possible).sum() / counted, pace)
            below = (sure - self.confidence).clamp(max=0)
            return torch.exp(-(below**2) / (2 * self.variance.clamp(min=SMALLEST)))
        self._renew(self.guessed_shares, (shares * possible[:, None]).sum(dim=0) / counted, pace)
        relative = self.guessed_shares / self.guessed_shares.max().clamp(min=SMALLEST)
        return (sure >= self.confidence * relative[answers]).float()

    def coarse_losses(self, weak: Tensor, groups: Tensor) -> Tensor:
        """-log of what the network gives to the labels that the stated taxa of each example allow; 0 where none is."""
        allowed = self.allowed[groups]
        inside = weak.log_softmax(dim=1).masked_fill(~allowed, -torch.inf)
        possible = allowed.any(dim=1)
        return -torch.where(possible[:, None], inside, 0.0).logsumexp(dim=1) * possible

    def _renew(self, average: Tensor, value: Tensor, pace: Tensor) -> None:
        value = value.detach().clone()
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(value)
            value /= torch.distributed.get_world_size()
        average.lerp_(value, pace)
