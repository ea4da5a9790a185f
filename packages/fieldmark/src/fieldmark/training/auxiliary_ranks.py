"""Auxiliary heads: genus and family are learned beside the label, from the same features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.settings import setting
from fieldmark.training.losses import Loss, cross_entropy
from fieldmark.training.objectives import Labels, Objective, SingleLabel
from fieldmark.training.recipe import Training
from fieldmark.training.samplers import UNLABELED
from fieldmark.training.validation import LABEL_OUTCOMES

Tensor = Any


@dataclass(frozen=True)
class RankLoss:
    """The loss of the label, where it is known, plus that of each rank, where that is known.

        L_i = [label known] x loss(label) + sum over ranks of weight x [taxon known] x cross-entropy(taxon)

    Args:
        of_label: The loss of the recipe.
        sizes: How many outputs belong to the label and to each rank, one after the other.
        weight: The weight of each rank.
    """

    of_label: Loss
    sizes: tuple[int, ...]
    weight: float

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        heads = logits.split(self.sizes, dim=1)
        known = targets != UNLABELED
        codes = targets.clamp(min=0)
        total = self.of_label(heads[0], codes[:, 0]) * known[:, 0]
        for place, head in enumerate(heads[1:], start=1):
            total = total + self.weight * cross_entropy(head, codes[:, place]) * known[:, place]
        return total


@dataclass(frozen=True)
class AuxiliaryRanks(Objective):
    """One class for each example, and its taxa of higher ranks as a help.

    The head of the network has an output for each class, followed by one for each taxon of each rank; what answers is
    the first part alone. Labels of a source have one column for the class and one for each rank, -1 where it is not
    known: an example whose genus is known and whose species is not teaches the genus.

    Args:
        classes: How many classes there are.
        ranks: The ranks, with a plus between them.
        weight: The weight of each rank beside the label.
        sizes: How many taxa each rank has; given by the method, which knows the taxonomy.
    """

    ranks: str = "genus+family"
    weight: float = setting(0.3, least=0)
    sizes: tuple[int, ...] = ()

    measures = SingleLabel.measures
    headline = "top_1"

    def check_settings(self) -> None:
        if not all(self.names):
            raise MisuseError(f"auxiliary-rank:ranks={self.ranks}: expected ranks with a plus between them.")

    @property
    def names(self) -> tuple[str, ...]:
        """The ranks."""
        return tuple(self.ranks.split("+"))

    @property
    def outputs(self) -> int:
        return self.classes + sum(self.sizes)

    def counts(self, labels: Labels) -> NDArray[np.int64]:
        own = labels[:, 0]
        return np.bincount(own[own != UNLABELED], minlength=self.classes)

    def drawn_by(self, labels: Labels) -> NDArray[np.int32]:
        return np.asarray(labels[:, 0])

    def targets(self, read: Tensor) -> Tensor:
        return read.long()

    def make_loss(self, labels: Labels, how: Training, device: Any) -> Loss:
        return RankLoss(super().make_loss(labels, how, device), (self.classes, *self.sizes), self.weight)

    def outcomes(self, logits: Tensor, targets: Tensor, loss: Loss) -> Tensor:
        assert isinstance(loss, RankLoss)  # made above
        heads = logits.float().split(loss.sizes, dim=1)
        of_label = SingleLabel(self.classes).outcomes(heads[0], targets[:, 0], loss.of_label)
        right = [head.argmax(dim=1) == targets[:, place] for place, head in enumerate(heads[1:], start=1)]
        return torch.cat([of_label, *(one[:, None].float() for one in right)], dim=1)

    def metrics(
        self, measured: NDArray[np.float32], labels: Labels, groups: NDArray[np.int64] | None = None
    ) -> dict[str, float]:
        own = LABEL_OUTCOMES
        values = SingleLabel(self.classes).metrics(measured[:, :own], labels[:, 0])
        for place, name in enumerate(self.names):
            known = labels[:, 1 + place] != UNLABELED
            if known.any():
                values[f"{name}_top_1"] = float(measured[known, own + place].mean())
        return values

    def check(self, how: Training, part: int) -> None:
        super().check(how, part)
        if how.loss == "binary":
            raise MisuseError("loss=binary is for several labels at once; here one class holds.")

    def fingerprint(self, labels: Mapping[str, Labels]) -> dict[str, Any]:
        facts = {"ranks": self.ranks, "weight of ranks": self.weight, "taxa of ranks": self.sizes}
        return super().fingerprint(labels) | facts


def rank_labels(codes: NDArray[np.int32], taxon_of: Mapping[str, NDArray[np.int32]]) -> NDArray[np.int32]:
    """The labels of a source: the class of each example, then its taxon of each rank.

    >>> rank_labels(np.array([1, 0, -1]), {"genus": np.array([5, -1])}).tolist()
    [[1, -1], [0, 5], [-1, -1]]
    """
    columns = [np.where(codes >= 0, own[np.maximum(codes, 0)], UNLABELED) for own in taxon_of.values()]
    return np.column_stack([codes, *columns]).astype(np.int32)
