"""The backbones that people ask for by name, where their weights lie, under which terms, and what they have seen.

`fit` and `identify` know the same names. Repositories, sizes, means and resizing are those of timm and open_clip, which
load them. Licenses and training data were read from the model cards, and are a first orientation: the card decides.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NamedBackbone:
    """A backbone by its everyday name.

    Args:
        address: The same as loaders take it.
        repository: Where its weights lie on the hub.
        module: What runs it.
        about: What it is, in a few words.
        license: The terms of the weights.
        trained_on: What it has seen.
        names_photos: Whether it has a text half, so that it names photos by a list of species without a fit.
    """

    address: str
    repository: str
    module: str
    about: str
    license: str
    trained_on: str
    names_photos: bool = False


NAMED = {
    "bioclip-2": NamedBackbone(
        "hf-hub:imageomics/bioclip-2",
        "imageomics/bioclip-2",
        "open_clip",
        "BioCLIP 2 ViT-L/14",
        "MIT",
        "TreeOfLife-200M, with 26 million pairs of LAION-2B",
        names_photos=True,
    ),
    "bioclip": NamedBackbone(
        "hf-hub:imageomics/bioclip",
        "imageomics/bioclip",
        "open_clip",
        "BioCLIP ViT-B/16",
        "MIT",
        "TreeOfLife-10M (iNat21, BIOSCAN-1M, Encyclopedia of Life), from the weights of OpenAI's CLIP",
        names_photos=True,
    ),
    "dinov2-b": NamedBackbone(
        "vit_base_patch14_dinov2.lvd142m",
        "timm/vit_base_patch14_dinov2.lvd142m",
        "timm",
        "DINOv2 ViT-B/14",
        "Apache-2.0",
        "LVD-142M, without labels",
    ),
    "dinov3-b": NamedBackbone(
        "vit_base_patch16_dinov3.lvd1689m",
        "timm/vit_base_patch16_dinov3.lvd1689m",
        "timm",
        "DINOv3 ViT-B/16",
        "DINOv3 License",
        "LVD-1689M, without labels",
    ),
    "clip-b32": NamedBackbone(
        "openclip:ViT-B-32",
        "timm/vit_base_patch32_clip_224.openai",
        "open_clip",
        "OpenAI's CLIP ViT-B/32",
        "MIT",  # OpenAI's; the hub's copy of the weights says Apache-2.0
        "400 million pairs of images and texts that OpenAI has not published",
        names_photos=True,
    ),
    "siglip2-b": NamedBackbone(
        "openclip:ViT-B-16-SigLIP2",
        "timm/ViT-B-16-SigLIP2",
        "open_clip",
        "SigLIP 2 ViT-B/16 at 224 px",
        "Apache-2.0",
        "WebLI",
        names_photos=True,
    ),
}


def address_of(name: str) -> str:
    """A backbone as loaders take it.

    >>> address_of("bioclip"), address_of("resnet50")
    ('hf-hub:imageomics/bioclip', 'resnet50')
    """
    return NAMED[name].address if name in NAMED else name
