"""Fine-tuning: the whole network learns, not only its head."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Sees
from fieldmark.errors import InputError
from fieldmark.features.settings import data_behind
from fieldmark.methods.base import Arrays, Fitted, Need, truth_of
from fieldmark.progress import progress
from fieldmark.runs.predictions import Scale
from fieldmark.training.loop import make_fabric, train
from fieldmark.training.networks import make_network, normalization
from fieldmark.training.packing import Pack, Photos, default_packs, open_pack
from fieldmark.training.photos import Crops, PhotoSource, PhotoTransform, pack_side
from fieldmark.training.recipe import Recipe, read_recipe
from fieldmark.training.sources import evaluation_batches, prepared
from fieldmark.views import Part, View

DEFAULT_RECIPE = "better"


@dataclass(frozen=True, kw_only=True)
class Finetune(Recipe):
    """Trains a network of timm by a recipe (see `training.recipe.Recipe` for its settings).

    Args:
        recipe: The recipe the settings came from: a shipped one, or a TOML file. Settings given beside it win.
    """

    recipe: str = DEFAULT_RECIPE

    needs: ClassVar[tuple[Need, ...]] = ("pixels",)
    sees: ClassVar[Sees] = "item"
    scale: ClassVar[Scale] = "logit"
    # The epoch is chosen on val, so there is nothing left to choose it by if val were learned from as well.
    learns_from_val: ClassVar[bool] = False

    @staticmethod
    def expand(settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of the recipe, with those given on top."""
        return {**read_recipe(str(settings.get("recipe", DEFAULT_RECIPE))), **settings}

    @property
    def external_data(self) -> tuple[str, ...]:
        """What the network was trained on before."""
        return data_behind(self.network, self.weights)

    def fit(self, view: View) -> Fitted:
        if view.val is None:
            raise ValueError("fine-tuning chooses its epoch on val")
        fabric = make_fabric(self)
        network = self._network(len(view.labels), self.weights)
        sources: dict[str, PhotoSource] = {}
        remarks: list[str] = []
        for name, part in (("train", view.train), ("val", view.val)):
            with fabric.rank_zero_first():  # one process packs, the others find the pack
                photos = self._photos(part)
            problems = photos.find_problems()
            if problems and name == "val":
                raise _unreadable(problems)
            sources[name] = self._source(photos, part, set(problems))
            if problems:
                some = "; ".join(f"{medium} ({problem})" for medium, problem in list(problems.items())[:3])
                remarks.append(f"{len(problems)} photos of {name} cannot be read and were left out: {some}.")
        with tempfile.TemporaryDirectory() as temporary:
            trained = train(
                network,
                sources["train"],
                sources["val"],
                self._transform(network),
                self,
                classes=len(view.labels),
                scratch=view.scratch or Path(temporary),
                per_group=self.photos_per_observation,
                fabric=fabric,
            )
        if trained.rank:
            raise SystemExit(0)  # the first process goes on to predict and write; the others have done their part
        remarks.append(f"Best of {self.epochs} epochs by {self.best_by} on val: {trained.best_epoch}.")
        return Fitted(self, {name: tensor.numpy() for name, tensor in trained.weights.items()}, tuple(remarks))

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        photos = self._photos(part)
        if problems := photos.find_problems():
            raise _unreadable(problems)
        network, device = self.load(arrays)
        transform, source = self._transform(network), self._source(photos, part, set())
        logits = []
        with progress("answering", len(source)) as tick:
            batches = evaluation_batches(
                source, np.arange(len(source)), batch=self.batch, workers=self.workers, pin=device.type == "cuda"
            )
            for batch in prepared(batches, transform, device):
                logits.append(network(batch.inputs).float().cpu().numpy())
                tick(len(batch.labels))
        rows = np.concatenate(logits)
        photos_each = part.items["media_ids"].list.len().to_numpy().astype(np.int64)
        sums = np.add.reduceat(rows, np.cumsum(photos_each) - photos_each, axis=0)
        return np.asarray(sums / photos_each[:, None], dtype=np.float32)

    def load(self, arrays: Arrays) -> tuple[Any, torch.device]:
        """The trained network, ready to answer, and the device it is on."""
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        network = self._network(1, "random")
        network.reset_classifier(len(arrays[f"{network.default_cfg['classifier']}.weight"]))
        network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
        return network.eval().to(device, memory_format=torch.channels_last), device

    def _network(self, classes: int, weights: str) -> Any:
        return make_network(
            self.network, weights, classes=classes, size=self.size, drop_path=self.drop_path, seed=self.seed
        )

    def _photos(self, part: Part) -> Pack | Photos:
        if part.read_medium is None:
            raise ValueError("this part comes without a way to open its photos")
        media = part.items["media_ids"].explode().to_list()
        if self.pack == "none" or (part.truth is None and len(media) < self.batch):
            return Photos(media, part.read_medium, pack_side(self.size))
        return open_pack(media, part.read_medium, pack_side(self.size), self.pack, default_packs())

    def _source(self, photos: Pack | Photos, part: Part, problems: set[str]) -> PhotoSource:
        """One example per photo that can be read, with the label and the observation of its item."""
        labels = np.zeros(len(part), dtype=np.int32) if part.truth is None else truth_of(part)
        media = pl.DataFrame(
            {"media_ids": part.items["media_ids"], "label": labels, "group": part.items["observation_id"]}
        ).explode("media_ids")
        readable = (~media["media_ids"].is_in(list(problems))).to_numpy()
        groups = media["group"].rank("dense").cast(pl.Int64).to_numpy()
        crops = Crops(self.eval_crop, self.crop_scale, self.flip)
        return PhotoSource(
            photos, np.flatnonzero(readable), media["label"].to_numpy()[readable], groups[readable], crops
        )

    def _transform(self, network: Any) -> PhotoTransform:
        mean, std = normalization(network)
        return PhotoTransform(self.size, mean, std, self.randaugment_ops, self.randaugment_magnitude)


def _unreadable(problems: Mapping[str, str]) -> InputError:
    medium, problem = next(iter(problems.items()))
    more = f" {len(problems) - 1} more photos cannot be read either." if len(problems) > 1 else ""
    hint = f"Replace the file or remove it (and its line in any table).{more}"
    return InputError(medium, found=problem, expected="a photo that can be read to its end", hint=hint)
