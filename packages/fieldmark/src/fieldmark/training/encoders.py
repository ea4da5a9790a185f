"""Encoders: a network learns features of some species that serve for their relatives.

Fine-tuning by labels alone makes a network forget what tells other species apart. Three things keep that: examples of a
species attract each other in two views (Khosla et al., "Supervised contrastive learning", 2020), features are pulled
toward those of the network at its start, and the weights that are kept lie between start and end (Wortsman et al.,
"Robust fine-tuning of zero-shot models", 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from fieldmark.errors import MisuseError
from fieldmark.settings import setting
from fieldmark.training.loop import Trained, train
from fieldmark.training.losses import Loss
from fieldmark.training.objectives import Labels, Objective, Prepared, SingleLabel
from fieldmark.training.recipe import Training
from fieldmark.training.samplers import classes_order
from fieldmark.training.semi_objectives import contrast_of
from fieldmark.training.sources import Source, Transform

Tensor = Any
PREFIX = "network."
SPECIES, GENUS = 0, 1


class AnchoredNetwork(torch.nn.Module):  # type: ignore[misc]
    """A network beside a frozen copy of itself.

    In training it answers with its logits, its features and, in the last columns, those of the copy; otherwise with its
    logits.
    """

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network
        self.start = deepcopy(network).requires_grad_(False).eval()

    def train(self, mode: bool = True) -> AnchoredNetwork:
        """Leaves the copy in inference mode, so that its batch normalization stays as it was."""
        super().train(mode)
        self.start.eval()
        return self

    def forward(self, inputs: Tensor) -> Tensor:
        features = _features(self.network, inputs)
        logits = self.network.get_classifier()(features)
        if not self.training:
            return logits
        with torch.no_grad():
            start = _features(self.start, inputs)
        return torch.cat([logits, features, start], dim=1)


def _features(network: Any, inputs: Tensor) -> Tensor:
    return network.forward_head(network.forward_features(inputs), pre_logits=True)


def train_encoder(
    network: Any,
    source: Source,
    transform: Transform,
    how: Training,
    objective: SupervisedContrast,
    *,
    keep: float,
    scratch: Path,
    per_group: int = 0,
    fabric: Any = None,
) -> tuple[dict[str, Tensor], Trained]:
    """Trains a network as an encoder, or goes on with a training that was interrupted.

    Args:
        network: A network of timm.
        source: The photos, labeled as `SupervisedContrast` says.
        transform: As for `training.loop.train`, like all that is not named here.
        how: The recipe.
        objective: What is learned.
        keep: How far the weights lie from the start to the end of the training.
        scratch: The folder for checkpoints.
        per_group: How many photos of each observation are shown in an epoch, 0 for all.
        fabric: Where to train.

    Returns:
        The weights, and what the training came to.
    """
    start = {name: tensor.detach().cpu().clone() for name, tensor in network.state_dict().items()}
    trained = train(
        AnchoredNetwork(network),
        source,
        None,
        transform,
        how,
        objective=objective,
        scratch=scratch,
        per_group=per_group,
        fabric=fabric,
    )
    own = ((name.removeprefix(PREFIX), one) for name, one in trained.weights.items() if name.startswith(PREFIX))
    return between(start, dict(own), keep, network.default_cfg["classifier"]), trained


def between(start: Mapping[str, Tensor], end: Mapping[str, Tensor], share: float, classifier: str) -> dict[str, Tensor]:
    """Weights between two states of a network; the classifier, which the first has not learned, is that of the second.

    Args:
        start: The weights before training.
        end: Those after it.
        share: How far from the first to the second.
        classifier: What the names of the tensors of the classifier begin with.
    """
    weights = {}
    for name, tensor in end.items():
        mixed = tensor.is_floating_point() and not name.startswith(f"{classifier}.")
        weights[name] = torch.lerp(start[name].cpu(), tensor, share) if mixed else tensor
    return weights


@dataclass(frozen=True)
class SupervisedContrast(Objective):
    """Labels, examples of a species nearer to each other than to others, and features that stay near their start.

    With z the features of two views of each example and z0 those of the network before training,

        L = mean loss over labels + contrast x mean over views of -log of the share of their partners among all others,
            by exp(cosine / temperature), + pull x mean of 1 - cosine(z, z0)

    Partners are all views of the same species and, with the weight `relatives`, of the same genus. Labels have two
    columns: species and genus, -1 where that is not known. A batch holds `each` examples of every species in it.

    Args:
        contrast: The weight of the contrast.
        temperature: How sharply near examples are told from far ones.
        pull: The weight of the pull toward the start.
        relatives: The weight of a partner of the same genus.
        each: How many examples of a species are in a batch.
    """

    contrast: float = setting(1.0, least=0)
    temperature: float = setting(0.1, above=0)
    pull: float = setting(2.0, least=0)
    relatives: float = setting(0.0, least=0, most=1)
    each: int = setting(4, least=1)

    measures = SingleLabel.measures
    headline = SingleLabel.headline

    @cached_property
    def _of_labels(self) -> SingleLabel:
        return SingleLabel(self.classes)

    def counts(self, labels: Labels) -> NDArray[np.int64]:
        return self._of_labels.counts(labels[:, SPECIES])

    def drawn_by(self, labels: Labels) -> NDArray[np.int32]:
        return np.asarray(labels[:, SPECIES])

    def order(
        self, labels: Labels, groups: NDArray[np.int64] | None, how: Training, per_group: int, epoch: int
    ) -> NDArray[np.int64]:
        drawn_by = self.drawn_by(labels)
        return classes_order(drawn_by, groups, each=self.each, per_group=per_group, seed=how.seed, epoch=epoch)

    def targets(self, read: Tensor) -> Tensor:
        return read.long()

    def shown_again(self, targets: NDArray[Any]) -> NDArray[np.int64]:
        return np.arange(len(targets))

    def batch_loss(self, model: Any, batch: Prepared, loss: Loss, how: Training) -> Tensor:
        assert batch.strong is not None  # every example is shown twice
        answered = model(torch.cat([batch.inputs, batch.strong.inputs])).float()
        logits, features = answered[:, : self.classes], answered[:, self.classes :]
        own, start = features.chunk(2, dim=1)
        taxa = batch.targets.repeat(2, 1)
        total = loss(logits, taxa[:, SPECIES]).mean()
        total = total + self.contrast * contrast_of(own, self._partners(taxa), self.temperature)
        return total + self.pull * (1 - functional.cosine_similarity(own, start)).mean()

    def _partners(self, taxa: Tensor) -> Tensor:
        species, genus = (taxa[:, rank, None] == taxa[None, :, rank] for rank in (SPECIES, GENUS))
        known = taxa[:, GENUS] >= 0
        relatives = genus & known[:, None] & ~species
        return species.float() + self.relatives * relatives

    def outcomes(self, logits: Tensor, targets: Tensor, loss: Loss) -> Tensor:
        return self._of_labels.outcomes(logits, targets[:, SPECIES], loss)

    def metrics(
        self, measured: NDArray[np.float32], labels: Labels, groups: NDArray[np.int64] | None = None
    ) -> dict[str, float]:
        return self._of_labels.metrics(measured, labels[:, SPECIES], groups)

    def check(self, how: Training, part: int) -> None:
        super().check(how, part)
        if how.mixup or how.layer_decay != 1 or how.strategy == "fsdp":
            raise MisuseError("An encoder mixes no photos and learns all layers alike: set mixup=0 and layer_decay=1.")
        if part < 2 * self.each:
            raise MisuseError(f"A batch of {part} photos cannot hold {self.each} of two species: take a larger batch.")

    def fingerprint(self, labels: Mapping[str, Labels]) -> dict[str, Any]:
        names = ("contrast", "temperature", "pull", "relatives", "each")
        return super().fingerprint(labels) | {f"{name} of encoder": getattr(self, name) for name in names}
