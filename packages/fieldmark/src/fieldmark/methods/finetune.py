"""Fine-tuning: the whole network learns, not only its head."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.features.photos import Preprocessing
from fieldmark.features.settings import data_behind_crop
from fieldmark.methods.base import Arrays, Fitted, Need
from fieldmark.methods.photo_networks import PhotoReading, on_device, unreadable
from fieldmark.methods.trained_networks import TrainsNetwork, epoch_chosen, leave_to_first, remarks_on_training
from fieldmark.questions.targets import Shape
from fieldmark.runs.label_scores import Scale
from fieldmark.training.auxiliary_ranks import AuxiliaryRanks, rank_labels
from fieldmark.training.boxes import Crops
from fieldmark.training.loop import train
from fieldmark.training.networks import (
    answer_with_embedding,
    change_size,
    first_outputs,
    load_trained,
    make_network,
    normalization,
)
from fieldmark.training.objective_names import make_objective, refuse_other_objectives
from fieldmark.training.objectives import Objective
from fieldmark.training.photos import PhotoSource, PhotoTransform
from fieldmark.training.recipe import Recipe, read_recipe
from fieldmark.training.strategies import make_fabric
from fieldmark.training.trained_features import TrainedBackbone
from fieldmark.views.parts import Part, View

DEFAULT_RECIPE = "better"
INPUTS = ("input_mean", "input_std")
LabelsOf = Callable[[str, NDArray[np.int32]], NDArray[Any]]
Begin = Callable[[Any, Any], None]


def as_they_are(part: str, codes: NDArray[np.int32]) -> NDArray[Any]:
    """The code of each photo as its label."""
    return codes


@dataclass(frozen=True, kw_only=True)
class Finetune(Recipe, TrainsNetwork):
    """Trains a network of timm by a recipe (see `training.recipe.Recipe` for its settings).

    Args:
        recipe: The recipe the settings came from: a shipped one, or a TOML file. Settings given beside it win.
    """

    recipe: str = DEFAULT_RECIPE

    scale: ClassVar[Scale] = "logit"
    exportable: ClassVar[bool] = True
    added_settings: ClassVar[tuple[str, ...]] = ("objective",)
    targets: ClassVar[tuple[Shape, ...]] = ("codes",)
    objectives: ClassVar[tuple[str, ...]] = ("labels", "triplet", "auxiliary-rank")
    # Arrays that are no weights of the network.
    beside_weights: ClassVar[tuple[str, ...]] = INPUTS

    def check_settings(self) -> None:
        super().check_settings()
        refuse_other_objectives("finetune", self.objective, self.objectives)

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("pixels"),)

    @classmethod
    def expand(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of the recipe, with those given on top."""
        return {**read_recipe(str(settings.get("recipe", DEFAULT_RECIPE))), **settings}

    @property
    def learns_from_val(self) -> bool:
        """Whether the final network is trained on val as well; as a rule val is needed to choose the epoch."""
        return self.refit

    @property
    def external_data(self) -> tuple[str, ...]:
        """What the network was trained on before, and what finds the organism."""
        return (*super().external_data, *data_behind_crop(self.crop))

    def fit(self, view: View) -> Fitted:
        remarks: list[str] = []
        objective, taxon_of = self._objective(view, remarks)
        labels_of: LabelsOf = (lambda _, codes: rank_labels(codes, taxon_of)) if taxon_of else as_they_are
        return self.train_network(view, objective, remarks, labels_of)

    def train_network(
        self, view: View, objective: Objective, remarks: list[str], labels_of: LabelsOf, begin: Begin | None = None
    ) -> Fitted:
        """Trains the network of the settings.

        Args:
            view: What there is to learn from.
            objective: What is learned.
            remarks: What is to be said of the run so far; more is added.
            labels_of: The labels that the objective wants of a part, from the code of each photo.
            begin: Changes the weights of the network before it is trained.
        """
        fabric = make_fabric(self)
        network = self.new_network(objective.outputs, self.weights)
        if begin is not None:
            begin(network, fabric)
        if objective.with_embedding:
            answer_with_embedding(network)
        parts = {"train": view.train} | ({} if view.val is None else {"val": view.val})
        sources = {}
        for name, part in parts.items():
            source = self.source_of(name, part, fabric, remarks)
            sources[name] = replace(source, labels=labels_of(name, source.labels))
        with tempfile.TemporaryDirectory() as temporary:
            trained = train(
                network,
                sources["train"],
                sources.get("val"),
                self.training_transform(network),
                self,
                objective=objective,
                scratch=view.scratch or Path(temporary),
                per_group=self.photos_per_observation,
                fabric=fabric,
            )
        leave_to_first(trained)
        remarks += remarks_on_training(trained, self)
        weights = trained.weights
        if objective.outputs > len(view.labels):
            weights = first_outputs(network, weights, len(view.labels))
        arrays = {name: tensor.numpy() for name, tensor in weights.items()}
        arrays |= {name: np.array(values) for name, values in zip(INPUTS, normalization(network), strict=True)}
        return Fitted(self, arrays, tuple(remarks), epoch_chosen(self))

    def source_of(self, name: str, part: Part, fabric: Any, remarks: list[str]) -> PhotoSource:
        """The photos of a part that can be read; what cannot be read is said in a remark, and refused in val."""
        with fabric.rank_zero_first(local=True):  # one process packs, the others find the pack
            photos = self.reading.photos(part)
        problems = photos.find_problems()
        if problems and name == "val":
            raise unreadable(problems)
        if problems:
            some = "; ".join(f"{medium} ({problem})" for medium, problem in list(problems.items())[:3])
            remarks.append(f"{len(problems)} photos of {name} cannot be read and were left out: {some}.")
        if photos.boxes.remark:
            remarks.append(f"Of {name}, {photos.boxes.remark}")
        return self.reading.source(photos, part, problems)

    def _objective(self, view: View, remarks: list[str]) -> tuple[Objective, dict[str, NDArray[np.int32]]]:
        """What is learned and, for auxiliary ranks, the taxon of each label at each of them."""
        objective = make_objective(self.objective, classes=len(view.labels))
        if not isinstance(objective, AuxiliaryRanks):
            return objective, {}
        ranks = {rank: view.taxonomy.ranks[rank] for rank in objective.names if rank in view.taxonomy.ranks}
        ranks = {rank: known for rank, known in ranks.items() if len(known[0]) > 1}
        if not ranks:
            told = ", ".join(view.taxonomy.ranks) or "none"
            raise MisuseError(f"objective={self.objective}: no such rank tells labels apart; the release has {told}.")
        absent = [rank for rank in objective.names if rank not in ranks]
        if absent:
            remarks.append(f"No auxiliary head for {' and '.join(absent)}, which tell no labels apart here.")
        sizes = tuple(len(taxa) for taxa, _ in ranks.values())
        return replace(objective, ranks="+".join(ranks), sizes=sizes), {rank: of for rank, (_, of) in ranks.items()}

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        network = self.load(arrays)
        return self.reading.answer(network, self.transform(network), part)

    def load(self, arrays: Arrays) -> Any:
        """The trained network, ready to answer."""
        network = self.new_network(1, "random")
        learned = {name: array for name, array in arrays.items() if name not in self.beside_weights}
        weights = {name: torch.from_numpy(np.array(array)) for name, array in learned.items()}
        load_trained(network, self.network, weights)
        given = dict(zip(("mean", "std"), (tuple(arrays[name].tolist()) for name in INPUTS), strict=True))
        network.pretrained_cfg = {**network.pretrained_cfg, **given}  # not what this version of timm has by that name
        return on_device(network)

    def backbone(self, arrays: Arrays, size: int = 0, resize: str = "") -> TrainedBackbone:
        """The trained network as a source of features: what goes into its head.

        Args:
            arrays: What was learned.
            size: The side of the photo in pixels, if not that of the training.
            resize: "cut" or "squash", if not as photos of val were shown.

        Raises:
            MisuseError: When the network takes photos of one size only, and that is another.
        """
        network = self.load(arrays)
        if size not in (0, self.size):
            change_size(network, self.network, size)
        mean, std = normalization(network)
        shown = resize or ("squash" if self.eval_crop == "squash" else "cut")
        how = Preprocessing(size or self.size, self.eval_share, mean, std, shown)  # type: ignore[arg-type]
        return TrainedBackbone(self.network, "fine-tuned", network, how)

    def transform(self, network: Any) -> PhotoTransform:
        """What happens to a photo on its way into the network."""
        mean, std = normalization(network)
        return PhotoTransform(self.size, mean, std, self.randaugment_ops, self.randaugment_magnitude, self.compile)

    def training_transform(self, network: Any) -> Any:
        """The same while it learns."""
        return self.transform(network)

    def new_network(self, classes: int, weights: str) -> Any:
        """A network of the settings for so many classes, with weights as they are before training."""
        return make_network(
            self.network, weights, classes=classes, size=self.size, drop_path=self.drop_path, seed=self.seed
        )

    @property
    def reading(self) -> PhotoReading:
        """How photos are read."""
        crops = Crops(self.eval_crop, self.crop_scale, self.flip, self.eval_share)
        return PhotoReading(self.size, self.pack, crops, self.batch, self.workers, self.crop, self.crop_margin)
