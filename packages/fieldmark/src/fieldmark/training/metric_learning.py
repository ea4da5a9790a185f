"""Metric learning: examples of one class lie closer together than to any other class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from fieldmark.errors import MisuseError
from fieldmark.settings import setting
from fieldmark.training.losses import Loss
from fieldmark.training.objectives import Labels, Objective, Prepared, SeveralLabels, SingleLabel
from fieldmark.training.recipe import Training
from fieldmark.training.samplers import classes_order
from fieldmark.training.validation import LABEL_OUTCOMES

Tensor = Any

# So many examples of val are compared with all others at once.
BLOCK_EXAMPLES = 1024


@dataclass(frozen=True)
class Triplet(Objective):
    """Labels and triplets: of each example, the farthest of its own class must be nearer than the nearest of another.

    Hermans et al., "In defense of the triplet loss for person re-identification" (2017), batch hard, on embeddings of
    length one. With z what goes into the head,

        L = labels x mean loss of the recipe
            + weight x mean over anchors of max(0, margin + max over same |z_a - z_p| - min over others |z_a - z_n|)

    Anchors without a partner or without an opponent in the batch do not count. Where several labels may hold, two
    examples are of one class if they share a label. A batch holds `each` examples of every class in it
    (`sampling.classes_order`). The network answers with its logits and the embedding after them
    (`networks.answer_with_embedding`).

    Args:
        classes: How many classes there are.
        margin: By how much nearer; distances run from 0 to 2.
        weight: The weight of the triplets.
        labels: The weight of the loss over labels; 0 for triplets alone, whose head learns nothing.
        each: How many examples of a class are in a batch.
        several: Whether any number of labels may hold.
    """

    margin: float = setting(0.2, least=0)
    weight: float = setting(1.0, least=0)
    labels: float = setting(1.0, least=0)
    each: int = setting(4, least=2)
    several: bool = False

    measures = (*SingleLabel.measures, "retrieval_top_1")
    headline = "retrieval_top_1"
    with_embedding = True

    def check_settings(self) -> None:
        if not self.weight + self.labels:
            raise MisuseError("triplet: weight and labels are both 0, expected one of them above 0.")

    @cached_property
    def of_labels(self) -> Objective:
        """The objective without triplets."""
        return SeveralLabels(self.classes) if self.several else SingleLabel(self.classes)

    def counts(self, labels: Labels) -> NDArray[np.int64]:
        return self.of_labels.counts(labels)

    def drawn_by(self, labels: Labels) -> NDArray[np.int32]:
        return self.of_labels.drawn_by(labels)

    def targets(self, read: Tensor) -> Tensor:
        return self.of_labels.targets(read)

    def order(
        self, labels: Labels, groups: NDArray[np.int64] | None, how: Training, per_group: int, epoch: int
    ) -> NDArray[np.int64]:
        drawn_by = self.drawn_by(labels)
        return classes_order(drawn_by, groups, each=self.each, per_group=per_group, seed=how.seed, epoch=epoch)

    def batch_loss(self, model: Any, batch: Prepared, loss: Loss, how: Training) -> Tensor:
        answered = model(batch.inputs)
        logits, embedding = answered[:, : self.classes], answered[:, self.classes :]
        triplets = batch_hard(embedding.float(), same_label(batch.targets), self.margin)
        return self.labels * loss(logits, batch.targets).mean() + self.weight * triplets

    def outcomes(self, logits: Tensor, targets: Tensor, loss: Loss) -> Tensor:
        of_labels = self.of_labels.outcomes(logits[:, : self.classes], targets, loss)
        return torch.cat([of_labels, functional.normalize(logits[:, self.classes :].float())], dim=1)

    def metrics(
        self, measured: NDArray[np.float32], labels: Labels, groups: NDArray[np.int64] | None = None
    ) -> dict[str, float]:
        own = LABEL_OUTCOMES
        values = self.of_labels.metrics(measured[:, :own], labels)
        return values | {"retrieval_top_1": retrieval_top_1(measured[:, own:], labels, groups)}

    def check(self, how: Training, part: int) -> None:
        super().check(how, part)
        if how.loss == "binary" and not self.several:
            raise MisuseError("loss=binary is for several labels at once; here one class holds.")
        if how.mixup:
            raise MisuseError("mixup does not go with triplets, since a mixed example is of no class; set mixup=0.")
        if how.sampler != "natural":
            raise MisuseError(f"sampler={how.sampler} does not go with triplets, which draw batches by class.")
        if part % self.each or part < 2 * self.each:
            raise MisuseError(
                f"A batch of {part} examples at once cannot hold {self.each} of each class, of two classes at least; "
                f"take a larger multiple of {self.each}."
            )

    def fingerprint(self, labels: Mapping[str, Labels]) -> dict[str, Any]:
        names = ("margin", "weight", "labels", "each", "several")
        return super().fingerprint(labels) | {f"{name} of triplets": getattr(self, name) for name in names}


def batch_hard(embedding: Tensor, same: Tensor, margin: float) -> Tensor:
    """The mean loss of the anchors of a batch that have a partner and an opponent; 0 where none has.

    Args:
        embedding: One row per example, of any length; they are scaled to length one.
        same: Whether two examples are of one class.
        margin: By how much nearer partners must be.
    """
    unit = functional.normalize(embedding)
    # The root has no gradient at 0, where two examples are equal.
    distance = (2 - 2 * unit @ unit.T).clamp(min=1e-8).sqrt()
    others = ~torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    farthest = distance.masked_fill(~(same & others), -torch.inf).amax(dim=1)
    nearest = distance.masked_fill(same, torch.inf).amin(dim=1)
    counts = torch.isfinite(farthest) & torch.isfinite(nearest)
    losses = functional.relu(margin + farthest[counts] - nearest[counts])
    return losses.sum() / counts.sum().clamp(min=1)


def same_label(targets: Tensor) -> Tensor:
    """For each pair of examples whether they have a label in common."""
    if targets.ndim == 1:
        return targets[:, None] == targets[None, :]
    shared = targets @ targets.T > 0
    return shared | torch.eye(len(targets), dtype=torch.bool, device=targets.device)


def retrieval_top_1(unit: NDArray[np.float32], labels: Labels, groups: NDArray[np.int64] | None = None) -> float:
    """How often the nearest example (by cosine, the first among equals) shares a label.

    Args:
        unit: Embeddings of length one.
        labels: The class of each example, or one row of 0/1 over the classes.
        groups: The observation of each; photos of one's own observation are not looked at.
    """
    own = np.arange(len(unit)) if groups is None else groups
    hits = looked = 0
    for start in range(0, len(unit), BLOCK_EXAMPLES):
        rows = np.arange(start, min(start + BLOCK_EXAMPLES, len(unit)))
        cosine = np.where(own[rows, None] == own[None, :], -np.inf, unit[rows] @ unit.T)
        nearest, there = cosine.argmax(axis=1), np.isfinite(cosine.max(axis=1))
        pairs = labels[nearest], labels[rows]
        shared = pairs[0] == pairs[1] if labels.ndim == 1 else (pairs[0] * pairs[1]).any(axis=1)
        hits, looked = hits + int((shared & there).sum()), looked + int(there.sum())
    return hits / max(1, looked)
