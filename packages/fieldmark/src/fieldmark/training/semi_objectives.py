"""Objectives for few labels and many unlabeled examples, beside `consistency.Consistency` (FixMatch)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from fieldmark.errors import MisuseError
from fieldmark.settings import setting
from fieldmark.training.consistency import Consistency
from fieldmark.training.losses import Loss
from fieldmark.training.objectives import Labels, Objective, Prepared, SingleLabel
from fieldmark.training.recipe import Training
from fieldmark.training.samplers import UNLABELED, followed_order

Tensor = Any


@dataclass(frozen=True)
class ClassAwareContrast(Consistency):
    """FixMatch, and unlabeled examples that contrast by class where the network is sure, and each by itself elsewhere.

    Yang et al., "Class-aware contrastive semi-supervised learning" (2022). With z the embeddings of the weak and the
    strong view of all unlabeled examples of a batch,

        L = L of FixMatch + contrast x mean over views of -log of the share of their partners among all others,
        by exp(cosine / temperature)

    Partners are the other view of the same example and, where both are sure (`sure` or more), all views with the same
    answer, weighed by the product of how sure they are. Out-of-class photos, of which the network is not sure, are thus
    kept from pulling classes together. Two departures: the authors contrast two strong views through a projection head;
    here the two views of FixMatch are contrasted as they go into the classifier.

    Args:
        contrast: The weight of the contrast.
        sure: How sure the network must be for two examples to be of one class.
        temperature: How sharply near ones are told from far ones.
    """

    contrast: float = setting(1.0, least=0)
    sure: float = setting(0.9, least=0, most=1)
    temperature: float = setting(0.1, above=0)

    with_embedding = True

    def batch_loss(self, model: Any, batch: Prepared, loss: Loss, how: Training) -> Tensor:
        total, answered, shares = self.losses_of_views(model, batch, loss)
        if batch.strong is None:
            return total
        number, embedding = len(batch.inputs), answered[:, self.classes :]
        views = torch.cat([embedding[:number][batch.strong.places], embedding[number:]])
        return total + self.contrast * class_aware_contrast(views, shares, self.sure, self.temperature)

    def fingerprint(self, labels: Mapping[str, Labels]) -> dict[str, Any]:
        names = ("contrast", "sure", "temperature")
        return super().fingerprint(labels) | {f"{name} of class-aware contrast": getattr(self, name) for name in names}


def class_aware_contrast(views: Tensor, chances: Tensor, sure: float, temperature: float) -> Tensor:
    """The mean contrastive loss of two views of some examples.

    Args:
        views: The embeddings of all first views, then those of all second ones.
        chances: What the network says of each example, one column per class.
        sure: From where on an answer makes partners.
        temperature: See `ClassAwareContrast`.
    """
    number = len(chances)
    confidence, answers = chances.max(dim=1)
    trusted = confidence >= sure
    together = (answers[:, None] == answers[None, :]) & trusted[:, None] & trusted[None, :]
    partners = together * (confidence[:, None] * confidence[None, :])
    itself = torch.eye(number, device=views.device)
    return contrast_of(views, torch.maximum(partners, itself).repeat(2, 2), temperature)


def contrast_of(views: Tensor, partners: Tensor, temperature: float) -> Tensor:
    """The mean over views of -log of the share of their partners among all other views, by exp(cosine / temperature).

    Args:
        views: One embedding per view.
        partners: For each pair of views how much they are partners; every view has one besides itself.
        temperature: How sharply near ones are told from far ones.
    """
    unit = functional.normalize(views)
    others = ~torch.eye(len(views), dtype=torch.bool, device=views.device)
    likeness = (unit @ unit.T / temperature).masked_fill(~others, -torch.inf)
    logs = (likeness - likeness.logsumexp(dim=1, keepdim=True)).masked_fill(~others, 0.0)
    partners = partners * others
    return -((partners * logs).sum(dim=1) / partners.sum(dim=1)).mean()


@dataclass(frozen=True)
class WithoutLabels(SingleLabel):
    """What objectives that learn no labels have in common: every photo is shown twice, labeled or not."""

    def counts(self, labels: Labels) -> NDArray[np.int64]:
        return super().counts(labels[labels != UNLABELED])

    def shown_again(self, targets: NDArray[Any]) -> NDArray[np.int64]:
        return np.arange(len(targets))

    def make_loss(self, labels: Labels, how: Training, device: Any) -> Loss:
        return super().make_loss(np.zeros(1, dtype=np.int32), how, device)


@dataclass(frozen=True)
class Contrast(WithoutLabels):
    """No labels at all: two views of a photo are nearer to each other than to any other photo of the batch.

    The loss of MoCo (He et al. 2020) with the other photos of the batch in place of a queue, and without a momentum
    encoder (Chen et al. 2020, SimCLR): an objective has no state to keep either in. It is for training a network before
    labels are learned; the head learns nothing, so that the last epoch is taken (best_by=last).

    Args:
        classes: How many classes there are.
        temperature: How sharply near ones are told from far ones.
    """

    temperature: float = 0.1

    with_embedding = True

    def batch_loss(self, model: Any, batch: Prepared, loss: Loss, how: Training) -> Tensor:
        assert batch.strong is not None  # every example is shown twice
        answered = model(torch.cat([batch.inputs, batch.strong.inputs])).float()
        chances = torch.zeros(len(batch.inputs), 2, device=answered.device)  # nobody is sure of anything
        return class_aware_contrast(answered[:, self.classes :], chances, 1.0, self.temperature)

    def outcomes(self, logits: Tensor, targets: Tensor, loss: Loss) -> Tensor:
        return super().outcomes(logits[:, : self.classes], targets.clamp(min=0), loss)

    def check(self, how: Training, part: int) -> None:
        super().check(how, part)
        if how.best_by != "last" or how.mixup:
            raise MisuseError("contrast learns no labels and mixes nothing: set best_by=last and mixup=0.")

    def fingerprint(self, labels: Mapping[str, Labels]) -> dict[str, Any]:
        return super().fingerprint(labels) | {"temperature of contrast": self.temperature}


@dataclass(frozen=True)
class Distillation(Objective):
    """Labels, and what a teacher says of unlabeled examples (self-training; Su, Cheng and Maji 2021).

        L = (1 - alpha) x mean loss of the labeled examples + alpha x mean CE(teacher, student) of the unlabeled ones

    Labels of a source have one column for each class, which sum to one (a 1 for labeled examples, what the teacher says
    for others), and a last one that is 1 for labeled examples (`taught_labels`).

    Args:
        classes: How many classes there are.
        alpha: The share of the teacher.
        unlabeled_each: How many unlabeled examples there are in a batch for each labeled one.
    """

    alpha: float = setting(0.7, least=0, below=1)
    unlabeled_each: int = setting(3, least=1)

    measures = SingleLabel.measures
    headline = "top_1"

    def _codes(self, labels: Labels) -> NDArray[np.int32]:
        codes = labels[:, :-1].argmax(axis=1)
        return np.where(labels[:, -1] > 0, codes, UNLABELED).astype(np.int32)

    def counts(self, labels: Labels) -> NDArray[np.int64]:
        codes = self._codes(labels)
        return np.bincount(codes[codes != UNLABELED], minlength=self.classes)

    def drawn_by(self, labels: Labels) -> NDArray[np.int32]:
        return self._codes(labels)

    def order(
        self, labels: Labels, groups: NDArray[np.int64] | None, how: Training, per_group: int, epoch: int
    ) -> NDArray[np.int64]:
        return followed_order(
            self._codes(labels),
            groups,
            followers=self.unlabeled_each,
            sampler=how.sampler,
            per_group=per_group,
            seed=how.seed,
            epoch=epoch,
        )

    def targets(self, read: Tensor) -> Tensor:
        return read.float()

    def batch_loss(self, model: Any, batch: Prepared, loss: Loss, how: Training) -> Tensor:
        logs = model(batch.inputs).float().log_softmax(dim=1)
        losses = -(batch.targets[:, :-1] * logs).sum(dim=1)
        labeled = batch.targets[:, -1] > 0
        parts = [losses[which].sum() / which.sum().clamp(min=1) for which in (labeled, ~labeled)]
        return (1 - self.alpha) * parts[0] + self.alpha * parts[1]

    def outcomes(self, logits: Tensor, targets: Tensor, loss: Loss) -> Tensor:
        return SingleLabel(self.classes).outcomes(logits, targets[:, :-1].argmax(dim=1), loss)

    def metrics(
        self, measured: NDArray[np.float32], labels: Labels, groups: NDArray[np.int64] | None = None
    ) -> dict[str, float]:
        return SingleLabel(self.classes).metrics(measured, self._codes(labels))

    def check(self, how: Training, part: int) -> None:
        super().check(how, part)
        if how.mixup or how.loss != "cross-entropy":
            raise MisuseError("distillation goes with loss=cross-entropy and mixup=0.")
        if part % (1 + self.unlabeled_each):
            raise MisuseError(
                f"A batch of {part} cannot hold {self.unlabeled_each} unlabeled ones for each labeled one."
            )

    def fingerprint(self, labels: Mapping[str, Labels]) -> dict[str, Any]:
        return super().fingerprint(labels) | {"alpha of the teacher": self.alpha}


def taught_labels(codes: NDArray[np.int32], taught: NDArray[np.float32]) -> NDArray[np.float32]:
    """The labels of a source for `Distillation`: classes of labeled examples (-1 for none), and the teacher's shares.

    >>> taught_labels(np.array([1, -1]), np.array([[0.25, 0.75]], dtype=np.float32)).tolist()
    [[0.0, 1.0, 1.0], [0.25, 0.75, 0.0]]
    """
    labeled = codes != UNLABELED
    shares = np.zeros((len(codes), taught.shape[1] + 1), dtype=np.float32)
    shares[labeled, codes[labeled]] = 1
    shares[labeled, -1] = 1
    shares[~labeled, :-1] = taught
    return shares
