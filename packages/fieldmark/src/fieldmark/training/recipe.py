"""Recipes: everything about a training that could be disputed, as typed values; TOML on disk."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_origin, get_type_hints

from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.features.crops import USUAL_MARGIN, WIDEST_MARGIN
from fieldmark.features.settings import SMALLEST_PX
from fieldmark.settings import Settings, setting
from fieldmark.training.samplers import Sampler

# What a recipe ends with that follows the code of organizers where it differs from their paper.
ORGANIZERS = "+organizers"
BestBy = Literal[
    "loss",
    "top_1",
    "top_3",
    "top_5",
    "macro_f1_all",
    "macro_f1_present",
    "miou",
    "pixel_accuracy",
    "retrieval_top_1",
    "last",
]


@dataclass(frozen=True, kw_only=True)
class Training(Settings):
    """How any network is trained, whatever it looks at or listens to.

    Args:
        objective: What is learned, by a name in `objective_names.OBJECTIVES` and, after a colon, its settings
            (`triplet:margin=0.3`).
        loss: The loss, by a name in `losses.LOSSES`.
        loss_strength: What the loss calls its strength, for losses that have one.
        label_smoothing: For cross-entropy, the share of each target that is spread over all labels.
        sampler: How classes share an epoch.
        optimizer: SGD with momentum, or AdamW with its own betas.
        lr: The learning rate at its highest.
        momentum: The momentum of SGD.
        weight_decay: How strongly weights are drawn to zero.
        layer_decay: Each layer learns this much slower than the one after it; 1 for all alike.
        schedule: "plateau" lowers lr when the loss on val stops falling, "cosine" lets it fall to zero step by step.
        plateau_factor: What lr is multiplied by on a plateau.
        plateau_patience: After how many epochs without a lower loss on val a plateau is reached.
        warmup_epochs: For how long lr rises from zero, for cosine and constant.
        epochs: Passes over the examples.
        batch: Examples per step, over all processes together; fewer where an epoch has fewer.
        accumulate: Each step is taken in so many parts, where a batch does not fit the memory.
        clip_norm: Gradients are cut to this length, 0 for never.
        mixup: The alpha of mixup, 0 for none.
        ema: The decay of the averaged weights that are evaluated and kept, 0 for none.
        best_by: The metric on val that decides which epoch is kept, or "last" for the last epoch. For masks: loss, miou
            or pixel_accuracy; for triplets also retrieval_top_1 (whether the nearest photo of another observation is
            of the same class).
        precision: "auto" is bf16 on a GPU that has it and single precision elsewhere.
        compile: Whether torch.compile is used.
        devices: How many devices of this host; under torchrun, its processes.
        strategy: How several processes share the network: "ddp" gives each a copy, "fsdp" a part of every tensor, for
            networks that one device cannot hold.
        workers: Threads that read ahead; 0 for one per core.
        checkpoint_minutes: A checkpoint is written after each epoch, and within one this often.
        checkpoints: An address (s3://bucket/folder) to keep checkpoints at in place of the folder beside the run, for
            hosts that share no disk or may be lost.
        trackers: "tensorboard", "mlflow", or both with a comma, beside the JSON lines that are always written.
        seed: The random seed.
    """

    objective: str = "labels"
    loss: str = "cross-entropy"
    loss_strength: float = 1.0
    label_smoothing: float = 0.0
    sampler: Sampler = "natural"
    optimizer: Literal["sgd", "adamw"] = "adamw"
    lr: float = setting(1e-3, above=0)
    momentum: float = 0.9
    weight_decay: float = 0.0
    layer_decay: float = 1.0
    schedule: Literal["plateau", "cosine", "constant"] = "cosine"
    plateau_factor: float = 0.9
    plateau_patience: int = 1
    warmup_epochs: float = 0.0
    epochs: int = setting(10, above=0)
    batch: int = setting(64, above=0)
    accumulate: int = setting(1, above=0)
    clip_norm: float = 0.0
    mixup: float = 0.0
    ema: float = 0.0
    best_by: BestBy = "macro_f1_all"
    precision: Literal["auto", "32-true", "bf16-mixed", "16-mixed"] = "auto"
    compile: bool = False
    devices: int = 1
    strategy: Literal["ddp", "fsdp"] = "ddp"
    workers: int = 0
    checkpoint_minutes: float = 5.0
    checkpoints: str = ""
    trackers: str = ""
    seed: int = 0

    def check_settings(self) -> None:
        if self.warmup_epochs and self.schedule == "plateau":
            raise MisuseError("warmup_epochs goes with cosine and constant, not with plateau.")
        if self.batch % self.accumulate:
            raise MisuseError(f"accumulate={self.accumulate} does not divide batch={self.batch}.")


@dataclass(frozen=True, kw_only=True)
class Recipe(Training):
    """How a network is trained on photos.

    Args:
        network: A packaged backbone, or any name timm knows.
        weights: "pretrained", "random", or a file.
        size: The side of the photo in pixels.
        drop_path: The share of residual branches that are left out at random; for networks that have them.
        crop_scale: Crops for training cover at least this share of a photo's area.
        flip: Whether photos are mirrored at random.
        randaugment_ops: How many operations of RandAugment change each photo; 0 for none.
        randaugment_magnitude: How strong they are, from 0 to 30.
        eval_crop: "squash" shows the whole photo made square, "center" the largest square in its middle.
        eval_share: The share of its sides that is shown; networks of timm were made for 0.875 of the center.
        refit: Whether the network that answers test is trained once more, on train and val, where val was drawn
            from train (an official val is never learned from). Nothing is left to choose an epoch by then, so it needs
            best_by=last and a schedule other than plateau.
        photos_per_observation: How many photos of each observation are shown in an epoch, 0 for all.
        pack: Photos are kept as squares a little larger than `size`: "raw" for speed, "jpeg" for an eighth of the
            room, or "none" to decode them each time.
        crop: Which part of each photo is packed and shown; empty for all of it. A finder sees it ("saliency", "sam",
            "yolox", "detector"), or the release tells it ("masks", "boxes"); all of the above happens afterwards.
        crop_margin: The share of the longer side of a box that is added at each end of it.
    """

    network: str = "efficientnet_lite0"
    weights: str = "pretrained"
    size: int = setting(224, least=SMALLEST_PX)
    drop_path: float = 0.0
    crop_scale: float = setting(0.8, above=0, most=1)
    flip: bool = False
    randaugment_ops: int = 0
    randaugment_magnitude: int = setting(9, least=0, most=30)
    eval_crop: Literal["squash", "center"] = "squash"
    eval_share: float = setting(1.0, above=0, most=1)
    refit: bool = False
    photos_per_observation: int = 0
    pack: Literal["raw", "jpeg", "none"] = "raw"
    crop: Literal["", "saliency", "sam", "yolox", "detector", "masks", "boxes"] = ""
    crop_margin: float = setting(USUAL_MARGIN, least=0, most=WIDEST_MARGIN)

    def check_settings(self) -> None:
        super().check_settings()
        if self.network.startswith(("hf-hub:", "local-dir:")):
            raise MisuseError(f"network={self.network}: take a name of timm, and pass the file as --set weights=FILE.")
        if self.refit and (self.best_by != "last" or self.schedule == "plateau"):
            raise MisuseError("refit needs best_by=last and a schedule other than plateau.")


def shipped_recipes() -> list[str]:
    """The names of the recipes that come with Fieldmark."""
    return sorted(path.name.removesuffix(".toml") for path in files(__package__).joinpath("recipes").iterdir())


def recipe_text(name: str) -> str:
    """A recipe as it is written: a shipped one by name, or a TOML file.

    Raises:
        MisuseError: When there is no such recipe.
    """
    shipped = name.removesuffix(ORGANIZERS)
    if shipped in shipped_recipes():
        return files(__package__).joinpath("recipes", f"{shipped}.toml").read_text(encoding="utf-8")
    if Path(name).is_file():
        return Path(name).read_text(encoding="utf-8")
    raise MisuseError(f"There is no recipe or file called {name!r}. {did_you_mean(name, shipped_recipes())}")


def read_recipe(name: str) -> dict[str, Any]:
    """The settings of a recipe: a shipped one by name, or a TOML file; `NAME+organizers` for those of their code.

    Raises:
        MisuseError: When there is no such recipe.
        InputError: When a file is not TOML, or holds a key or value that recipes do not have.
    """
    try:
        values = tomllib.loads(recipe_text(name))
    except tomllib.TOMLDecodeError as error:
        raise InputError(name, found=f"something else ({error})", expected="a recipe in TOML") from error
    other = values.pop(ORGANIZERS[1:], None)
    if name.endswith(ORGANIZERS) and not Path(name).is_file():
        if other is None:
            raise MisuseError(f"The recipe {name.removesuffix(ORGANIZERS)} has no variant of organizers.")
        values |= other
    kinds = get_type_hints(Recipe)
    settings = [field.name for field in dataclasses.fields(Recipe)]
    for key, value in values.items():
        if key not in settings:
            raise InputError(name, found=f"the key {key!r}", expected="a setting", hint=did_you_mean(key, settings))
        kind = str if get_origin(kinds[key]) is Literal else kinds[key]
        if kind is float and type(value) is int:
            values[key] = float(value)
        elif type(value) is not kind:
            raise InputError(name, found=f"{key} = {value!r}", expected=f"{key} of type {kind.__name__}")
    return values
