"""Labels, and the same answer in two views of an unlabeled example: FixMatch, and what others have made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.settings import setting
from fieldmark.training.guesses import Guesses
from fieldmark.training.losses import Loss, cross_entropy
from fieldmark.training.objectives import Labels, Prepared, SingleLabel
from fieldmark.training.recipe import Training
from fieldmark.training.samplers import UNLABELED, followed_order

Tensor = Any


@dataclass(frozen=True)
class Consistency(SingleLabel):
    """A single label for some examples, and for the others the same answer in two views.

    Sohn et al., "FixMatch" (2020). An unlabeled example is shown twice, weakly and strongly changed. Where the network
    is sure of the weak view, its answer is the label of the strong one:

        L = mean loss of the labeled examples
            + weight x mean over the unlabeled ones of [max p >= threshold] x cross-entropy(strong, argmax p)
            + coarse x mean over the unlabeled ones of -log of the sum of p over the labels that their taxa allow

    with p the softmax of the weak view, through which no gradient runs in the second term. Every labeled example of a
    batch is followed by `unlabeled_each` unlabeled ones (`sampling.followed_order`). `sources.WeakAndStrong` makes a
    transform for both views. `guesses` says what thresholds, alignment and filter are.

    With coarse labels (`within`, `coarse`), labels of a source have a second column: the row of `allowed` that says
    which classes an example may have. Examples to which no class is left are surely out of class, and teach nothing.

    Args:
        classes: How many classes there are.
        threshold: How sure the network must be, from 0 to 1, for fixed thresholds.
        weight: The weight of the unlabeled examples; with 0 no second view is read.
        unlabeled_each: How many unlabeled examples there are in a batch for each labeled one.
        thresholds: "fixed", "softmatch" or "freematch".
        align: Whether guesses are scaled so that classes are as frequent as among the labels.
        keep: The share of unlabeled examples that is kept, those most like a class.
        within: Whether only labels are guessed that the stated taxa of an example allow.
        coarse: The weight of the stated taxa as a loss of their own (hierarchical loss).
        memory: How slowly what thresholds, alignment and filter go by is renewed, from 0 to below 1.
        allowed: One row of flags over the classes for each set of stated taxa; filled in by the method.
    """

    threshold: float = setting(0.95, least=0, most=1)
    weight: float = setting(1.0, least=0)
    unlabeled_each: int = setting(7, least=1)
    thresholds: Literal["fixed", "softmatch", "freematch"] = "fixed"
    align: bool = False
    keep: float = setting(1.0, above=0, most=1)
    within: bool = False
    coarse: float = setting(0.0, least=0)
    memory: float = setting(0.99, least=0, below=1)
    allowed: Any = field(default=None, compare=False)

    @property
    def reads_coarse(self) -> bool:
        """Whether it needs the stated taxa of unlabeled examples."""
        return self.within or self.coarse > 0

    def counts(self, labels: Labels) -> NDArray[np.int64]:
        codes = codes_of(labels)
        return super().counts(codes[codes != UNLABELED])

    def drawn_by(self, labels: Labels) -> NDArray[np.int32]:
        return np.asarray(codes_of(labels))

    def order(
        self, labels: Labels, groups: NDArray[np.int64] | None, how: Training, per_group: int, epoch: int
    ) -> NDArray[np.int64]:
        return followed_order(
            codes_of(labels),
            groups,
            followers=self.unlabeled_each,
            sampler=how.sampler,
            per_group=per_group,
            seed=how.seed,
            epoch=epoch,
        )

    def shown_again(self, targets: NDArray[Any]) -> NDArray[np.int64]:
        if not self.weight and not self.with_embedding:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(codes_of(targets) == UNLABELED)

    def make_loss(self, labels: Labels, how: Training, device: Any) -> Loss:
        plain = super().make_loss(labels, how, device)
        if self.thresholds == "fixed" and not self.align and self.keep == 1 and not self.reads_coarse:
            return plain  # nothing to remember
        counts = np.maximum(self.counts(labels), 1)
        shares = torch.tensor(counts / counts.sum(), dtype=torch.float32)
        allowed = None if self.allowed is None else torch.from_numpy(np.asarray(self.allowed, dtype=np.bool_))
        made: Loss = Guesses(
            plain,
            shares,
            allowed,
            threshold=self.threshold,
            thresholds=self.thresholds,
            align=self.align,
            keep=self.keep,
            within=self.within,
            memory=self.memory,
        ).to(device)
        return made

    def batch_loss(self, model: Any, batch: Prepared, loss: Loss, how: Training) -> Tensor:
        return self.losses_of_views(model, batch, loss)[0]

    def losses_of_views(self, model: Any, batch: Prepared, loss: Loss) -> tuple[Tensor, Tensor, Tensor]:
        """The loss of a batch; what the network answers, the second views last; what it says of unlabeled examples."""
        codes, number = codes_of(batch.targets), len(batch.inputs)
        inputs = batch.inputs if batch.strong is None else torch.cat([batch.inputs, batch.strong.inputs])
        answered = model(inputs).float()  # one pass: batch norm sees all views
        logits = answered[:, : self.classes]
        labeled = codes != UNLABELED
        own = loss(logits[:number], codes.clamp(min=0)) * labeled
        places = batch.strong.places if batch.strong is not None else (~labeled).nonzero()[:, 0]
        total = own.sum() / max(1, number - len(places))
        if not len(places):
            return total, answered, logits[:0]
        weak = logits[:number][places]
        groups = batch.targets[places, 1] if batch.targets.ndim > 1 else None
        shares, weights = self._guessed(weak, groups, loss)
        if self.weight and batch.strong is not None:
            strong = cross_entropy(logits[number:], shares.argmax(dim=1)) * weights
            total = total + self.weight * strong.mean()
        if self.coarse and groups is not None and isinstance(loss, Guesses):
            total = total + self.coarse * loss.coarse_losses(weak, groups).mean()
        return total, answered, shares

    def _guessed(self, weak: Tensor, groups: Tensor | None, loss: Loss) -> tuple[Tensor, Tensor]:
        if isinstance(loss, Guesses):
            return loss.guessed(weak.detach(), groups)
        shares = weak.detach().softmax(dim=1)
        return shares, (shares.max(dim=1).values >= self.threshold).float()

    def outcomes(self, logits: Tensor, targets: Tensor, loss: Loss) -> Tensor:
        return super().outcomes(logits[:, : self.classes], codes_of(targets), loss)

    def metrics(
        self, measured: NDArray[np.float32], labels: Labels, groups: NDArray[np.int64] | None = None
    ) -> dict[str, float]:
        return super().metrics(measured, codes_of(labels), groups)

    def check(self, how: Training, part: int) -> None:
        super().check(how, part)
        if how.mixup:
            raise MisuseError("mixup does not go with the consistency of two views; set mixup=0.")
        if part % (1 + self.unlabeled_each):
            raise MisuseError(
                f"A batch of {part} examples at once cannot hold {self.unlabeled_each} unlabeled ones for each labeled "
                f"one; take a multiple of {1 + self.unlabeled_each}."
            )

    def fingerprint(self, labels: Mapping[str, Labels]) -> dict[str, Any]:
        names = ("threshold", "weight", "unlabeled_each", "thresholds", "align", "keep", "within", "coarse", "memory")
        taxa = {} if self.allowed is None else {"stated taxa labels": crc32(np.asarray(self.allowed).tobytes())}
        return super().fingerprint(labels) | {f"{name} of consistency": getattr(self, name) for name in names} | taxa


def codes_of(labels: Any) -> Any:
    """The class of each example, whether or not a row of `Consistency.allowed` stands beside it."""
    return labels if labels.ndim == 1 else labels[:, 0]
