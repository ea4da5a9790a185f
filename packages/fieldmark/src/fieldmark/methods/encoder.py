"""An encoder: a network that learns features of some species to be used for others."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.features.store import KEY_BYTES, content_key
from fieldmark.methods.base import SEEN_PHOTOS, Fitted, media_of, truth_of
from fieldmark.methods.finetune import INPUTS, Finetune
from fieldmark.methods.trained_networks import leave_to_first, remarks_on_training
from fieldmark.settings import setting
from fieldmark.training.encoders import SupervisedContrast, train_encoder
from fieldmark.training.networks import normalization
from fieldmark.training.packs import UnpackedPhotos, default_packs, open_pack
from fieldmark.training.photos import PhotoSource, pack_side
from fieldmark.training.recipe import BestBy, read_recipe
from fieldmark.training.strategies import make_fabric
from fieldmark.views.parts import View

Codes = NDArray[np.int32]
DEFAULT_RECIPE = "encoder"


@dataclass(frozen=True)
class EncoderPhotos:
    """The photos to learn from.

    Args:
        ids: One for each photo.
        read: Returns the bytes of a photo.
        species: The class of each, from 0.
        genera: The genus of each, -1 where that is not known.
        groups: The observation of each.
    """

    ids: Sequence[str]
    read: Callable[[str], bytes]
    species: Codes
    genera: Codes
    groups: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Encoder(Finetune):
    """Trains a network whose features serve for related species as well (`training.encoders`).

    Args:
        recipe: As for `finetune`.
        contrast, temperature, pull, relatives, each: See `training.encoders.SupervisedContrast`.
        keep: How far the kept weights lie from the start (0) to the end of the training (1).
        best_by: Always the last epoch: what features are for is not in val.
        refit: Whether val is learned from as well.
    """

    recipe: str = DEFAULT_RECIPE
    contrast: float = setting(1.0, least=0)
    temperature: float = setting(0.1, above=0)
    pull: float = setting(2.0, least=0)
    relatives: float = setting(0.0, least=0, most=1)
    each: int = setting(4, least=1)
    keep: float = setting(0.5, above=0, most=1)
    best_by: BestBy = "last"
    refit: bool = True

    objectives: ClassVar[tuple[str, ...]] = ("labels",)
    beside_weights: ClassVar[tuple[str, ...]] = (*INPUTS, SEEN_PHOTOS)

    def check_settings(self) -> None:
        super().check_settings()
        if self.crop:
            raise MisuseError(f"crop={self.crop}: an encoder learns whole photos; crop them before, or leave it out.")
        if self.best_by != "last":
            raise MisuseError(
                "An encoder takes the last epoch: what its features are for is not in val. Leave best_by out."
            )

    @classmethod
    def expand(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {**read_recipe(str(settings.get("recipe", DEFAULT_RECIPE))), **settings}

    def fit(self, view: View) -> Fitted:
        part = view.train
        photos = part.items["media_ids"].list.len().to_numpy().astype(np.int64)
        species = np.repeat(truth_of(part), photos)
        genera = view.taxonomy.ranks["genus"][1] if "genus" in view.taxonomy.ranks else np.full(len(view.labels), -1)
        groups = part.items["observation_id"].rank("dense").to_numpy().astype(np.int64)
        shown = EncoderPhotos(
            part.items["media_ids"].explode().to_list(),
            media_of(part).read,
            species,
            np.asarray(genera, dtype=np.int32)[species],
            np.repeat(groups, photos),
        )
        return self.learn(shown, len(view.labels), view.scratch)

    def learn(self, photos: EncoderPhotos, classes: int, scratch: Path | None = None) -> Fitted:
        """Trains the network on photos.

        Args:
            photos: What it learns from.
            classes: How many species there are.
            scratch: A folder from which an interrupted training goes on.
        """
        fabric, remarks = make_fabric(self), list[str]()
        network = self.new_network(classes, self.weights)
        names = ("contrast", "temperature", "pull", "relatives", "each")
        objective = SupervisedContrast(classes, **{name: getattr(self, name) for name in names})
        source = self._source(photos, fabric, remarks)
        with tempfile.TemporaryDirectory() as temporary:
            weights, trained = train_encoder(
                network,
                source,
                self.transform(network),
                self,
                objective,
                keep=self.keep,
                scratch=scratch or Path(temporary),
                per_group=self.photos_per_observation,
                fabric=fabric,
            )
        leave_to_first(trained)
        arrays = {name: tensor.numpy() for name, tensor in weights.items()}
        arrays |= {name: np.array(values) for name, values in zip(INPUTS, normalization(network), strict=True)}
        arrays[SEEN_PHOTOS] = seen_keys([photos.ids[row] for row in source.rows], photos.read)
        return Fitted(self, arrays, (*remarks, *remarks_on_training(trained, self)))

    def _source(self, photos: EncoderPhotos, fabric: Any, remarks: list[str]) -> PhotoSource:
        """The photos that can be read; how many cannot is said in a remark."""
        side_px = pack_side(self.size, self.eval_crop, self.eval_share)
        with fabric.rank_zero_first(local=True):  # one process packs, the others find the pack
            if self.pack == "none":
                shown: Any = UnpackedPhotos(photos.ids, photos.read, side_px)
            else:
                shown = open_pack(photos.ids, photos.read, side_px, self.pack, default_packs())
        broken = shown.find_problems()
        if broken:
            some = "; ".join(f"{one} ({problem})" for one, problem in list(broken.items())[:3])
            remarks.append(f"{len(broken)} photos cannot be read and were left out: {some}.")
        rows = np.flatnonzero([one not in broken for one in photos.ids])
        labels = np.column_stack([photos.species, photos.genera])[rows]
        return PhotoSource(shown, rows, labels, photos.groups[rows], self.reading.crops)


def seen_keys(ids: Sequence[str], read: Callable[[str], bytes]) -> NDArray[np.uint8]:
    """The contents of photos as rows of bytes, in an order that tells nothing."""
    keys = sorted({content_key(read(one)) for one in ids})
    return np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, KEY_BYTES)
