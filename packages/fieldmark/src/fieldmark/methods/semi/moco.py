"""MoCo: a network learns from all photos without labels first, then from labels."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from fieldmark.benchmarks.declarations import LearnsFrom
from fieldmark.methods.base import Fitted
from fieldmark.methods.finetune import Finetune, as_they_are
from fieldmark.methods.semi.networks import numbered, scratch_of, unlabeled_of
from fieldmark.settings import setting
from fieldmark.training.loop import train
from fieldmark.training.momentum import MomentumContrast, MomentumPair
from fieldmark.training.objective_names import make_objective
from fieldmark.views.parts import View

# The queue of MoCo on ImageNet; a queue may not be longer than this, nor hold more than a quarter of the photos, or a
# photo would be told from itself.
LONGEST_QUEUE = 65_536
LEAST_OPS = 2


@dataclass(frozen=True, kw_only=True)
class Moco(Finetune):
    """Trains a network by momentum contrast on labeled and unlabeled photos, then fine-tunes it on labels.

    See `training.momentum`. The first training takes no labels, and its last epoch; the settings of `finetune` are
    those of the second. Both go on where they were interrupted.

    Args:
        contrast_epochs: Passes over all photos without labels.
        contrast_lr: The learning rate of that training; 0 for that of the other one.
        contrast_batch: Its batch; 0 for that of the other one.
        contrast_crop: The least share of the area of a photo that a view shows.
        queue: How many photos are remembered; 0 for a quarter of them, and at most 65,536.
        key_momentum: How slowly the slow network follows. The paper has 0.999 for a million photos and 200 epochs.
        contrast_temperature: How sharply near photos are told from far ones.
        dimensions: The length of what is compared.
    """

    contrast_epochs: int = setting(50, least=1)
    contrast_lr: float = setting(0.0, least=0)
    contrast_batch: int = setting(0, least=0)
    contrast_crop: float = 0.2
    queue: int = setting(0, least=0)
    key_momentum: float = setting(0.99, least=0, below=1)
    contrast_temperature: float = setting(0.2, above=0)
    dimensions: int = setting(128, least=1)

    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train", "unlabeled")
    objectives: ClassVar[tuple[str, ...]] = ("labels",)

    @classmethod
    def expand(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        recipe = super().expand({name: value for name, value in settings.items() if name == "recipe"})
        return {**recipe, "best_by": "top_1", **settings}

    def fit(self, view: View) -> Fitted:
        unlabeled_of(view)
        remarks: list[str] = []

        def begin(network: Any, fabric: Any) -> None:
            network.load_state_dict(self._contrasted(view, fabric, remarks) | _classifier(network))

        labeled = replace(view, unlabeled=None, scratch=scratch_of(view, "labels"))
        objective = make_objective(self.objective, classes=len(view.labels))
        return self.train_network(labeled, objective, remarks, as_they_are, begin)

    def _contrasted(self, view: View, fabric: Any, remarks: list[str]) -> dict[str, Any]:
        """The weights that momentum contrast gives, with those of a classifier that has learned nothing."""
        how = self._contrast_recipe()
        source = how.source_of("train and unlabeled", numbered(view.train, unlabeled_of(view)), fabric, remarks)
        queue = self.queue or min(LONGEST_QUEUE, max(1, len(source) // 4))
        pair = MomentumPair(
            self.new_network(1, self.weights),
            queue=queue,
            momentum=self.key_momentum,
            temperature=self.contrast_temperature,
            dimensions=self.dimensions,
            seed=self.seed,
        )
        transform = how.transform(pair.network)
        objective = MomentumContrast(1)
        with tempfile.TemporaryDirectory() as temporary:
            scratch = scratch_of(view, "contrast") or Path(temporary)
            trained = train(pair, source, None, transform, how, objective=objective, scratch=scratch, fabric=fabric)
        remarks.append(
            f"Before labels: {len(source):,} photos contrasted for {how.epochs} epochs, with {queue:,} in the queue."
        )
        return MomentumPair.network_weights(trained.weights)

    def _contrast_recipe(self) -> Moco:
        return replace(
            self,
            epochs=self.contrast_epochs,
            lr=self.contrast_lr or self.lr,
            batch=self.contrast_batch or self.batch,
            crop_scale=self.contrast_crop,
            flip=True,
            randaugment_ops=max(LEAST_OPS, self.randaugment_ops),
            best_by="last",
            schedule="cosine",
            loss="cross-entropy",
            label_smoothing=0.0,
            mixup=0.0,
            ema=0.0,
            layer_decay=1.0,
            sampler="natural",
        )


def _classifier(network: Any) -> dict[str, Any]:
    """The weights of the classifier, which are not replaced."""
    head = network.default_cfg["classifier"]
    return {name: tensor for name, tensor in network.state_dict().items() if name.startswith(f"{head}.")}
