"""Networks that look at patches of maps around places: imagery, land cover, altitude."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.features.settings import encoder_of
from fieldmark.methods.base import Arrays, truth_of
from fieldmark.methods.trained_networks import leave_to_first
from fieldmark.tables.inputs import Input, OwnLayer
from fieldmark.training.loop import Trained, train
from fieldmark.training.networks import make_network, with_channels
from fieldmark.training.objective_names import make_objective
from fieldmark.training.patches import Halves, PatchSource, PatchTransform, band_moments, pack_patches
from fieldmark.training.recipe import Training
from fieldmark.training.strategies import make_fabric
from fieldmark.views.parts import Part, View

MEAN, SPREAD, CODES = "patches.mean", "patches.spread", "patches.codes"
ANSWERED = 64


def patch_inputs(inputs: Mapping[str, Input]) -> str:
    """The inputs of a release that are patches of maps, with commas between them; empty for none."""
    return ",".join(name for name, one in inputs.items() if encoder_of(one.extractor) == "patches")


def train_on_patches(method: Training, names: str, size: int, view: View, network: Any) -> tuple[Trained, Arrays]:
    """Trains a network on the patches of train.

    Args:
        method: The recipe.
        names: The inputs, with commas between them.
        size: The side that patches are brought to.
        view: What there is to learn from.
        network: Makes a network for so many bands and classes.

    Returns:
        What the training came to, and how bands are brought to one scale.
    """
    assert view.val is not None  # the epoch is chosen there
    with tempfile.TemporaryDirectory() as temporary:
        scratch = view.scratch or Path(temporary)
        packs = {name: packed(part, names, size, scratch / f"{name}.npy") for name, part in _parts(view)}
        mean, spread = band_moments(packs["train"])
        codes = codes_of_bands(view.train, names, packs["train"].shape[1])
        moments: Arrays = {MEAN: mean, SPREAD: spread, **({CODES: codes} if codes.any() else {})}
        fabric = make_fabric(method)
        trained = train(
            network(bands_of(moments), len(view.labels)),
            PatchSource(packs["train"], truth_of(view.train)),
            PatchSource(packs["val"], truth_of(view.val)),
            _transform(moments),
            method,
            objective=make_objective("labels", classes=len(view.labels)),
            scratch=scratch,
            fabric=fabric,
        )
        for name in packs:
            (scratch / f"{name}.npy").unlink(missing_ok=True)
    leave_to_first(trained)
    return trained, moments


def _parts(view: View) -> Iterable[tuple[str, Part]]:
    assert view.val is not None
    return (("train", view.train), ("val", view.val))


def packed(part: Part, names: str, size: int, path: Path) -> Halves:
    """The patches of a part, on disk.

    Raises:
        MisuseError: When the release has none of them.
    """
    ids = part.items["observation_id"].to_list()
    layers = _layers(part, names)
    if not layers or not any(any(layer.there(ids[:64])) for layer in layers):
        raise MisuseError(f"There are no patches of {names} here for cnn to look at.")
    coded = [bool(layer.coded[0]) for layer in layers]
    return pack_patches(ids, [partial(_files, layer) for layer in layers], size, path, coded)


def _layers(part: Part, names: str) -> list[OwnLayer]:
    """The layers of patches, those with codes last."""
    layers = [layer for name in names.split(",") for layer in part.layers.values() if layer.input == name]
    return sorted(layers, key=lambda layer: bool(layer.coded[0]))


def codes_of_bands(part: Part, names: str, bands: int) -> NDArray[np.int64]:
    """For each packed band how many codes it has; 0 for amounts. A layer of codes has one band, and stands last."""
    codes = [layer.coded[1] for layer in _layers(part, names) if layer.coded[0]]
    return np.array([0] * (bands - len(codes)) + codes, dtype=np.int64)


def _transform(arrays: Arrays) -> PatchTransform:
    codes = tuple(arrays[CODES].tolist()) if CODES in arrays else ()
    return PatchTransform(tuple(arrays[MEAN].tolist()), tuple(arrays[SPREAD].tolist()), codes)


def _files(layer: OwnLayer, ids: list[str]) -> list[bytes | None]:
    return layer.files(ids)


def bands_of(arrays: Arrays) -> int:
    """How many channels a trained network takes: one for each band of amounts, and one for each code."""
    coded = arrays.get(CODES, np.zeros(len(arrays[MEAN]), dtype=np.int64))
    return int(np.where(coded > 0, coded - 1, 1).sum())


def patch_logits(arrays: Arrays, part: Part, names: str, size: int, network: Any) -> NDArray[np.float32]:
    """The log-probabilities of every label for the patches of a part."""
    with tempfile.TemporaryDirectory() as temporary, torch.inference_mode():
        patches = packed(part, names, size, Path(temporary) / "patches.npy")
        transform = _transform(arrays)
        made = []
        for start in range(0, len(patches), ANSWERED):
            squares = torch.from_numpy(np.asarray(patches[start : start + ANSWERED]))
            turns = torch.zeros(len(squares), dtype=torch.int64)
            made.append(network(transform([squares, turns], None)).float().log_softmax(dim=1).numpy())
    return np.concatenate(made)


def patch_network(name: str, weights: str, size: int, seed: int, *, packaged: bool, bands: int, classes: int) -> Any:
    """A network for so many bands; pre-trained first layers of three channels are spread over them."""
    if packaged or weights == "pretrained":
        return with_channels(make_network(name, weights, classes=classes, size=size, seed=seed), bands)
    return make_network(name, weights, classes=classes, size=size, channels=bands, seed=seed)
