"""A network that looks at spectrograms, or at patches of maps."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from fieldmark.audio.samples import Samples, SoundError
from fieldmark.audio.spectrograms import MelSettings, spectrogram_settings
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.settings import PACKAGED
from fieldmark.features.sounds import Clip, remark_on_cut, windows_of
from fieldmark.methods.base import Arrays, Fitted, Need, media_of, targets_of
from fieldmark.methods.joined import input_names
from fieldmark.methods.patch_networks import bands_of, patch_inputs, patch_logits, patch_network, train_on_patches
from fieldmark.methods.places.species_lists import MOST_LISTED, best_of_blocks
from fieldmark.methods.trained_networks import TrainsNetwork, epoch_chosen, leave_to_first, remarks_on_training
from fieldmark.runs.label_scores import Scale
from fieldmark.runs.predictions import Predictions
from fieldmark.settings import setting
from fieldmark.tables.inputs import Input
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import MEDIA
from fieldmark.training.gabor import GaborFrontEnd, listen_through
from fieldmark.training.loop import train
from fieldmark.training.networks import (
    answer_with_embedding,
    load_trained,
    make_network,
    with_least_side,
    with_one_channel,
)
from fieldmark.training.objective_names import make_objective, objective_name, refuse_other_objectives
from fieldmark.training.objectives import Objective
from fieldmark.training.packs import default_packs
from fieldmark.training.recipe import BestBy, Training
from fieldmark.training.sounds import SoundSource, SoundTransform, Windowed, choirs, open_sound_pack
from fieldmark.training.strategies import make_fabric
from fieldmark.training.trained_features import TrainedEmbedder
from fieldmark.views.parts import Part, View
from fieldmark.work.progress import progress

BATCH_WINDOWS = 32


@dataclass(frozen=True, kw_only=True)
class SpectrogramNetwork(Training, TrainsNetwork):
    """Trains a network of timm on mel spectrograms of one channel (see `training.recipe.Training`).

    On a release of places it looks at patches of maps instead (`patch_networks`): imagery, altitude, and land cover
    with a channel for each class, never averaged.

    It learns from the salient windows of recordings, and from choirs of two of them whose labels are united. Where any
    number of labels may hold at once, each has a sigmoid of its own; where one holds, it is a softmax.

    Args:
        network: Any name timm knows, or a packaged backbone.
        weights: "random", "pretrained" (on photos, the three channels summed into one), or a file.
        spectrogram: The settings of the spectrogram, by name.
        windows: How many windows are kept of a training recording.
        choirs: How many choirs there are for each recording; 0 for none.
        front_end: "mel" for the spectrogram, "gabor" for filters that begin there and are learned with the network
            (`training.gabor`).
        objective: "labels" (one or several, as the task has it), or "triplet" for triplets beside them.
        patches: The inputs whose patches it looks at, with commas between them; found out from the release where that
            has no media.
        size: The side in pixels that patches are brought to.
    """

    network: str = "efficientnet_lite0"
    weights: str = "pretrained"
    spectrogram: str = "segment"
    windows: int = setting(4, least=1)
    choirs: float = setting(1.0, least=0, most=1)
    front_end: Literal["mel", "gabor"] = "mel"
    patches: str = ""
    size: int = 64
    loss: str = "binary"
    weight_decay: float = 0.01
    warmup_epochs: float = 1.0
    epochs: int = 10
    batch: int = 32
    best_by: BestBy = "top_1"

    added_settings: ClassVar[tuple[str, ...]] = ("objective", "front_end", "patches", "size")
    follows_from_task: ClassVar[tuple[str, ...]] = ("loss", "patches")

    def check_settings(self) -> None:
        super().check_settings()
        spectrogram_settings(self.spectrogram)
        if self.front_end == "gabor" and self.layer_decay != 1:
            raise MisuseError("front_end=gabor learns at the pace of all layers; set layer_decay=1.")
        refuse_other_objectives("cnn", self.objective, ("labels", "triplet"))

    @property
    def needs(self) -> tuple[Need, ...]:
        if self.patches:
            return tuple(Need("patches", name) for name in input_names(self.patches))
        return (Need("audio"),)

    def for_release(self, inputs: Mapping[str, Input]) -> SpectrogramNetwork:
        patches = "" if MEDIA.keys() & set(inputs) else patch_inputs(inputs)
        return self if self.patches or not patches else replace(self, patches=patches)

    @property
    def learns_from_val(self) -> bool:
        # The epoch is chosen on val, so there is nothing left to choose it by if val were learned from as well.
        return False

    @property
    def scale(self) -> Scale:
        return "score" if self.loss == "binary" else "logit"

    @property
    def settings(self) -> MelSettings:
        """The settings of the spectrogram."""
        return spectrogram_settings(self.spectrogram)

    def fit(self, view: View) -> Fitted:
        if view.val is None:
            raise ValueError("the network chooses its epoch on val")
        if view.train.targets is not None and view.train.targets.shape == "codes" and self.loss == "binary":
            return replace(self, loss="cross-entropy").fit(view)
        if self.patches:
            return self._fit_patches(view)
        fabric = make_fabric(self)
        with fabric.rank_zero_first():  # one process packs, the others find the pack
            learned, remarks = self._source(view.train, mixing=self.choirs)
            val, of_val = self._source(view.val, mixing=0)
            remarks += [f"Of val, {remark}" for remark in of_val]
        with tempfile.TemporaryDirectory() as temporary:
            objective = self._objective(len(view.labels))
            network = self.new_network(len(view.labels), self.weights)
            if objective.with_embedding:
                answer_with_embedding(network)
            trained = train(
                network,
                learned,
                val,
                self._transform(str(fabric.device)),
                self,
                objective=objective,
                scratch=view.scratch or Path(temporary),
                fabric=fabric,
            )
        leave_to_first(trained)
        remarks += remarks_on_training(trained, self)
        weights = {name: tensor.numpy() for name, tensor in trained.weights.items()}
        return Fitted(self, weights, tuple(remarks), epoch_chosen(self))

    def _fit_patches(self, view: View) -> Fitted:
        trained, moments = train_on_patches(self, self.patches, self.size, view, self._patch_network)
        weights = {name: tensor.numpy() for name, tensor in trained.weights.items()}
        return Fitted(self, {**weights, **moments}, tuple(remarks_on_training(trained, self)), epoch_chosen(self))

    def _patch_network(self, bands: int, classes: int) -> Any:
        packaged = self.network in PACKAGED
        made = partial(patch_network, self.network, self.weights, self.size, self.seed, packaged=packaged)
        return made(bands=bands, classes=classes)

    def _patch_scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        network = replace(self, weights="random")._patch_network(bands_of(arrays), 1)
        learned = {name: one for name, one in arrays.items() if not name.startswith("patches.")}
        tensors = {name: torch.from_numpy(np.array(one)) for name, one in learned.items()}
        load_trained(network, self.network, tensors)
        return patch_logits(arrays, part, self.patches, self.size, network.eval())

    def answer(self, arrays: Arrays, part: Part, labels: Labels) -> Predictions:
        if not self.patches or len(labels) <= MOST_LISTED:
            return super().answer(arrays, part, labels)
        return best_of_blocks(part, labels, self.scale, partial(self._patch_scores, arrays))

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        if self.patches:
            return self._patch_scores(arrays, part)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        network = self._loaded(arrays).to(device)
        transform = self._transform(device)
        sums: NDArray[np.float64] | None = None
        counts = np.zeros(len(part), dtype=np.int64)
        with progress("listening", len(part)) as tick:
            for rows, windows in self._batches(part):
                logits = network(transform([torch.from_numpy(windows).to(device)], None)).float()
                of_windows = (logits.sigmoid() if self.loss == "binary" else logits.log_softmax(dim=1)).cpu().numpy()
                sums = np.zeros((len(part), of_windows.shape[1])) if sums is None else sums
                np.add.at(sums, rows, of_windows)
                tick(len(np.unique(rows[counts[rows] == 0])))
                np.add.at(counts, rows, 1)
        assert sums is not None  # a part has items, and each has a window
        return np.asarray(sums / counts[:, None], dtype=np.float32)

    def backbone(self, arrays: Arrays, size: int = 0, resize: str = "") -> TrainedEmbedder:
        """The trained network as a source of features: what goes into its head, window by window.

        Raises:
            MisuseError: When the size of a photo is asked for.
        """
        if size or resize:
            raise MisuseError("size and resize are for photos; this network looks at spectrograms.")
        device = "cuda" if torch.cuda.is_available() else "cpu"
        network = self._loaded(arrays).requires_grad_(False).to(device)
        return TrainedEmbedder(self.network, network, self.settings, self.front_end == "mel")

    def _batches(self, part: Part) -> Iterator[tuple[NDArray[np.int64], Samples]]:
        """Windows of the items, a few at a time, each with the row of its item."""
        waiting, clips_of = list[tuple[int, Samples]](), _clips_by_recording(part)
        for (media_id, clips), recording in zip(clips_of.items(), media_of(part).open.many(clips_of), strict=True):
            try:
                with closing(recording) as file:
                    for row, windows in windows_of(file, clips, Windowed.of(self.settings), self.windows):
                        waiting += [(row, window) for window in windows]
                        while len(waiting) >= BATCH_WINDOWS:
                            yield _stacked(waiting[:BATCH_WINDOWS])
                            del waiting[:BATCH_WINDOWS]
            except SoundError as error:
                raise _unreadable(media_id, str(error)) from error
        if waiting:
            yield _stacked(waiting)

    def _source(self, part: Part, *, mixing: float) -> tuple[SoundSource, list[str]]:
        """The examples of a part, and remarks about recordings that cannot be read or were cut."""
        clips = [Clip(*row) for row in _clip_rows(part)]
        pack = open_sound_pack(clips, media_of(part).open, self.settings, self.windows, default_packs())
        if pack.problems and not mixing and targets_of(part).shape == "pairs":
            raise _unreadable(*next(iter(pack.problems.items())))
        heard = np.flatnonzero([clip.media_id not in pack.problems for clip in clips])
        part_targets = targets_of(part)
        several = self.loss == "binary" and part_targets.shape == "pairs"
        labels = part_targets.take(heard)
        targets = (labels.holds(part_targets.n_labels) if several else labels.codes).astype(np.int32)
        partners = choirs(len(heard), round(mixing * len(heard)), self.seed) if several else np.empty(0, int)
        some = "; ".join(f"{medium} ({problem})" for medium, problem in list(pack.problems.items())[:3])
        left_out = f"{len(pack.problems)} recordings cannot be read and were left out: {some}."
        remarks = [*([left_out] if pack.problems else []), *remark_on_cut(pack.cut_short)]
        return SoundSource(pack, heard, targets, partners), remarks

    def _objective(self, classes: int) -> Objective:
        several = self.loss == "binary"
        if objective_name(self.objective) == "triplet":
            return make_objective(self.objective, classes=classes, several=several)
        return make_objective("several-labels" if several else "labels", classes=classes)

    def _transform(self, device: str) -> SoundTransform:
        return SoundTransform(self.settings, device, pictures=self.front_end == "mel")

    def new_network(self, classes: int, weights: str) -> Any:
        """A network of the settings for so many classes, with weights as they are before training."""
        # Packaged weights fit networks of three channels, whose first layer is then made one of one channel.
        packaged = self.network in PACKAGED
        network = make_network(
            self.network,
            weights,
            classes=classes,
            size=self.settings.frames,
            channels=3 if packaged else 1,
            seed=self.seed,
        )
        if packaged:
            network = with_one_channel(network)
        network = with_least_side(network, self.network)
        if self.front_end == "gabor":
            listen_through(network, GaborFrontEnd(self.settings))
        return network

    def _loaded(self, arrays: Arrays) -> Any:
        network = self.new_network(1, "random")
        load_trained(network, self.network, {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
        return network.eval()


def _clip_rows(part: Part) -> Iterator[tuple[str, float | None, float | None]]:
    return part.items.select(pl.col("media_ids").list.first(), "start_s", "end_s").iter_rows()


def _clips_by_recording(part: Part) -> Mapping[str, dict[int, Clip]]:
    clips: dict[str, dict[int, Clip]] = {}
    for row, clip in enumerate(Clip(*fields) for fields in _clip_rows(part)):
        clips.setdefault(clip.media_id, {})[row] = clip
    return clips


def _stacked(waiting: list[tuple[int, Samples]]) -> tuple[NDArray[np.int64], Samples]:
    return np.array([row for row, _ in waiting]), np.stack([window for _, window in waiting])


def _unreadable(media_id: str, problem: str) -> InputError:
    expected = "a WAV, FLAC, OGG, MP3 or M4A file"
    return InputError(media_id, found=problem, expected=expected, hint="Replace or remove it.")
