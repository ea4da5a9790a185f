"""Objectives: what a network is to learn, and how well it has learned it.

| objective | logits | labels of a source | targets |
| --- | --- | --- | --- |
| `SingleLabel` | batch x classes | the class of each example | the same |
| `SeveralLabels` | batch x classes | one row of 0/1 over the classes | the same |
| `MaskObjective` | batch x classes x height x width | pixels of each class (`pixels_of_classes`) | a mask each |
| `consistency.Consistency` | batch x classes | the class of each example, -1 for unlabeled ones | the same |
| `metric_learning.Triplet` | batch x (classes + embedding) | as for single or several labels | the same |
| `auxiliary_ranks.AuxiliaryRanks` | batch x (classes + taxa) | class and taxa, -1 where unknown | the same |

Recipes name them as `objective_names.OBJECTIVES` lists them.

*Labels* are held for all examples at once: they are counted, sampled by and compared when a training goes on. *Targets*
are read batch by batch. An objective has no state: what it needs from one step to the next is in the recipe, the labels
and the draws, or in a loss that is a torch module, whose state a checkpoint keeps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.settings import Settings
from fieldmark.training.devices import to_device
from fieldmark.training.draws import Draws
from fieldmark.training.losses import UNKNOWN_PIXEL, Loss, MaskLoss, make_loss
from fieldmark.training.recipe import Training
from fieldmark.training.samplers import epoch_order
from fieldmark.training.validation import (
    Outcomes,
    label_outcomes,
    macro_f1_metrics,
    mask_metrics,
    mask_outcomes,
    place_metrics,
)

Tensor = Any
Labels = NDArray[Any]


class StrongView(NamedTuple):
    """Some examples of a batch as they are shown a second time, and their places in the batch."""

    inputs: Tensor
    places: Tensor


class Prepared(NamedTuple):
    """A batch on the device: inputs as the network takes them, targets as an objective made them."""

    inputs: Tensor
    targets: Tensor
    draws: Draws | None
    strong: StrongView | None = None


@dataclass(frozen=True)
class Objective(Settings, ABC):
    """Everything the loop asks about what is learned.

    Args:
        classes: How many classes there are.
    """

    classes: int

    # The metrics on val that a recipe may choose the best epoch by, and the one that is shown beside the loss.
    measures: ClassVar[tuple[str, ...]]
    headline: ClassVar[str]
    # Whether the network must answer with what goes into its head as well, after the logits.
    with_embedding: ClassVar[bool] = False

    @property
    def outputs(self) -> int:
        """How many outputs the head of the network has."""
        return self.classes

    @abstractmethod
    def counts(self, labels: Labels) -> NDArray[np.int64]:
        """How often each class occurs, for losses that weigh classes."""

    @abstractmethod
    def drawn_by(self, labels: Labels) -> NDArray[np.int32]:
        """The one class of each example that samplers go by."""

    def order(
        self, labels: Labels, groups: NDArray[np.int64] | None, how: Training, per_group: int, epoch: int
    ) -> NDArray[np.int64]:
        """The examples of one epoch, in the order in which they are shown; every epoch has the same number."""
        drawn_by = self.drawn_by(labels)
        return epoch_order(drawn_by, groups, sampler=how.sampler, per_group=per_group, seed=how.seed, epoch=epoch)

    @abstractmethod
    def targets(self, read: Tensor) -> Tensor:
        """Targets as the loss takes them, from what the source has read; both are on the device."""

    def shown_again(self, targets: NDArray[Any]) -> NDArray[np.int64]:
        """The examples of a training batch of which a second, strongly changed view is read, as places in the batch."""
        return np.empty(0, dtype=np.int64)

    def make_loss(self, labels: Labels, how: Training, device: Any) -> Loss:
        """The loss of each example of a batch, from logits and targets.

        Args:
            labels: Those of train.
            how: The recipe.
            device: Where the logits will be.
        """
        counts = self.counts(labels)
        return make_loss(how.loss, counts, device, smoothing=how.label_smoothing, strength=how.loss_strength)

    def batch_loss(self, model: Any, batch: Prepared, loss: Loss, how: Training) -> Tensor:
        """The mean loss of a training batch."""
        inputs, targets = batch.inputs, batch.targets
        if not how.mixup or batch.draws is None:
            return loss(model(inputs), targets).mean()
        # Every example is mixed with its neighbor in the batch, and so is its loss.
        share = to_device(batch.draws.beta("mixup", how.mixup).astype(np.float32), inputs.device)
        weight = share.view(-1, *[1] * (inputs.ndim - 1))
        logits = model(inputs * weight + inputs.roll(1, 0) * (1 - weight))
        return (share * loss(logits, targets) + (1 - share) * loss(logits, targets.roll(1, 0))).mean()

    @abstractmethod
    def outcomes(self, logits: Tensor, targets: Tensor, loss: Loss) -> Tensor:
        """What each example of a val batch came to: one row of numbers, as many for each, the loss first."""

    @abstractmethod
    def metrics(
        self, measured: NDArray[np.float32], labels: Labels, groups: NDArray[np.int64] | None = None
    ) -> dict[str, float]:
        """The metrics from the outcomes of all of val, in its order; "loss" is among them.

        Args:
            measured: The outcomes.
            labels: The labels of val.
            groups: What each example belongs to (its observation), None where that is not known.
        """

    def check(self, how: Training, part: int) -> None:
        """Refuses recipes that do not go with the objective.

        Args:
            how: The recipe.
            part: How many examples are in the network at once.

        Raises:
            MisuseError: With a sentence about the setting.
        """
        if how.best_by not in (*self.measures, "last"):
            raise MisuseError(f"best_by={how.best_by}: what is measured here is {', '.join(self.measures)}.")

    def fingerprint(self, labels: Mapping[str, Labels]) -> dict[str, Any]:
        """What a training that goes on must have in common with the one before, besides the recipe.

        Args:
            labels: The labels of each part, by its name.
        """
        examples = {f"{part} labels": crc32(own.tobytes()) for part, own in labels.items()}
        return examples | {"number of classes": self.classes}


class SingleLabel(Objective):
    """One class holds for each example."""

    measures = ("loss", "top_1", "top_3", "top_5", "macro_f1_all", "macro_f1_present")
    headline = "top_1"

    def counts(self, labels: Labels) -> NDArray[np.int64]:
        return np.bincount(labels, minlength=self.classes)

    def drawn_by(self, labels: Labels) -> NDArray[np.int32]:
        return labels

    def targets(self, read: Tensor) -> Tensor:
        return read.long()

    def outcomes(self, logits: Tensor, targets: Tensor, loss: Loss) -> Tensor:
        logits = logits.float()
        return label_outcomes(loss(logits, targets), logits, targets)

    def metrics(
        self, measured: NDArray[np.float32], labels: Labels, groups: NDArray[np.int64] | None = None
    ) -> dict[str, float]:
        outcomes = Outcomes.of(measured)
        return place_metrics(outcomes) | macro_f1_metrics(outcomes, labels, self.classes)

    def check(self, how: Training, part: int) -> None:
        super().check(how, part)
        _refuse_binary(how)


class SeveralLabels(Objective):
    """Any number of classes hold for each example; the place of the best of them counts on val."""

    # Macro-F1 is not measured, but was never refused either: every epoch then counts as the best so far.
    measures = SingleLabel.measures
    headline = "top_1"

    def counts(self, labels: Labels) -> NDArray[np.int64]:
        return np.asarray(labels.sum(axis=0))

    def drawn_by(self, labels: Labels) -> NDArray[np.int32]:
        return np.asarray(labels.argmax(axis=1))

    def targets(self, read: Tensor) -> Tensor:
        return read.float()

    def outcomes(self, logits: Tensor, targets: Tensor, loss: Loss) -> Tensor:
        logits = logits.float()
        best_true = torch.where(targets > 0, logits, -torch.inf).argmax(dim=1)
        return label_outcomes(loss(logits, targets), logits, best_true)

    def metrics(
        self, measured: NDArray[np.float32], labels: Labels, groups: NDArray[np.int64] | None = None
    ) -> dict[str, float]:
        return place_metrics(Outcomes.of(measured))


@dataclass(frozen=True)
class MaskObjective(Objective):
    """One class holds for each pixel; the loss is that of the recipe over pixels, plus Dice (`losses.MaskLoss`).

    Pixels of the value 255 count neither as right nor as wrong. Samplers go by the rarest class of a mask. Masks count
    as the same when a training goes on if each has as many pixels of every class as before.

    Args:
        classes: How many classes there are, the background among them.
        dice: The weight of Dice beside the loss of pixels.
    """

    dice: float = 1.0

    measures = ("loss", "miou", "pixel_accuracy")
    headline = "miou"

    def check_settings(self) -> None:
        if self.classes > UNKNOWN_PIXEL:
            raise MisuseError(f"Masks have at most {UNKNOWN_PIXEL} classes, found {self.classes}.")

    def counts(self, labels: Labels) -> NDArray[np.int64]:
        return np.asarray(labels.sum(axis=0))

    def drawn_by(self, labels: Labels) -> NDArray[np.int32]:
        return np.asarray(np.where(labels > 0, self.counts(labels), np.inf).argmin(axis=1), dtype=np.int32)

    def targets(self, read: Tensor) -> Tensor:
        return read.long()

    def make_loss(self, labels: Labels, how: Training, device: Any) -> Loss:
        return MaskLoss(super().make_loss(labels, how, device), self.dice)

    def outcomes(self, logits: Tensor, targets: Tensor, loss: Loss) -> Tensor:
        logits = logits.float()
        return mask_outcomes(loss(logits, targets), logits, targets, targets != UNKNOWN_PIXEL)

    def metrics(
        self, measured: NDArray[np.float32], labels: Labels, groups: NDArray[np.int64] | None = None
    ) -> dict[str, float]:
        return mask_metrics(measured, self.classes)

    def check(self, how: Training, part: int) -> None:
        super().check(how, part)
        _refuse_binary(how)

    def fingerprint(self, labels: Mapping[str, Labels]) -> dict[str, Any]:
        return super().fingerprint(labels) | {"weight of Dice": self.dice}


def pixels_of_classes(masks: NDArray[Any], classes: int) -> NDArray[np.int64]:
    """The labels of a source of masks: how many pixels of each class every mask has.

    >>> pixels_of_classes(np.array([[[0, 1, 1]], [[0, 255, 0]]]), 2).tolist()
    [[1, 2], [2, 0]]
    """
    counted = [np.bincount(mask[mask != UNKNOWN_PIXEL], minlength=classes) for mask in masks]
    return np.stack(counted).astype(np.int64)


def _refuse_binary(how: Training) -> None:
    if how.loss == "binary":
        raise MisuseError("loss=binary is for several labels at once; here one class holds.")
