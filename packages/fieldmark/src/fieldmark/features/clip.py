"""Image towers of open_clip: CLIP, BioCLIP and similar ones.

What comes out is the embedding in the space shared with text, before it is scaled to length one.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, Literal

import torch

from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.features.hub import LOCAL, check_reachable, unreachable
from fieldmark.features.named_backbones import address_of
from fieldmark.features.photos import Preprocessing
from fieldmark.features.settings import FeatureSettings
from fieldmark.registry import require

PREFIX = "openclip:"
RANDOM_SEED = 0
FOLDER_WEIGHTS = (".safetensors", ".bin", ".pth")  # what open_clip looks for in a folder


def load_clip(settings: FeatureSettings) -> tuple[Any, Preprocessing]:
    """The network and its preprocessing.

    Raises:
        MisuseError: When there is no such network or set of weights, or the hub does not answer.
        InputError: When files on disk are not those of the network.
    """
    open_clip: Any = require("open_clip", f"The backbone {settings.backbone}")
    name = settings.backbone.removeprefix(PREFIX)
    options: dict[str, Any] = {"force_image_size": settings.size or None}
    if settings.backbone.startswith(PREFIX):
        if name not in open_clip.list_models():
            raise MisuseError(f"open_clip has no network called {name!r}. {_near(name, open_clip.list_models())}")
        options |= _weights(open_clip, name, settings)
    elif settings.weights not in ("pretrained", "random"):
        raise MisuseError(f"weights={settings.weights}: {settings.backbone} comes with its own weights.")
    elif settings.backbone.startswith(LOCAL):
        _check_folder(Path(name.removeprefix(LOCAL)))
    options["load_weights"] = options["require_pretrained"] = settings.weights != "random"
    return _create(open_clip, name, settings, options)


def tokenizer_of(settings: FeatureSettings) -> Any:
    """What turns texts into the numbers that the network reads."""
    open_clip: Any = require("open_clip", f"The backbone {settings.backbone}")
    return open_clip.get_tokenizer(address_of(settings.backbone).removeprefix(PREFIX))


def _create(open_clip: Any, name: str, settings: FeatureSettings, options: dict[str, Any]) -> tuple[Any, Preprocessing]:
    logger = logging.getLogger()
    before = logger.level
    try:
        logger.setLevel(logging.CRITICAL)  # what it logs to the root logger, the errors below say better
        with torch.random.fork_rng():
            torch.manual_seed(RANDOM_SEED)
            network = open_clip.create_model(name, **options)
    except Exception as error:  # open_clip wraps whatever went wrong in errors of its own
        place = options.get("pretrained") if Path(str(options.get("pretrained"))).is_file() else None
        place = name.removeprefix(LOCAL) if settings.backbone.startswith(LOCAL) else place
        if place is None:
            raise unreachable(settings.backbone, error) from error
        why = str(error).strip().splitlines()[0].strip()
        raise InputError(place, found=f"something else ({why})", expected=f"the weights of {name}") from error
    finally:
        logger.setLevel(before)
    return network, preprocessing_of_clip(network, settings.backbone)


def preprocessing_of_clip(network: Any, name: str) -> Preprocessing:
    """How photos become squares for a network of open_clip.

    Raises:
        MisuseError: When it wants something that is not done here.
    """
    how = network.visual.preprocess_cfg
    if how["resize_mode"] not in ("shortest", "squash"):
        raise MisuseError(f"{name} wants photos resized by {how['resize_mode']!r}: pass --set resize=cut or squash.")
    size = how["size"] if isinstance(how["size"], int) else how["size"][0]
    resize: Literal["cut", "squash"] = "squash" if how["resize_mode"] == "squash" else "cut"
    return Preprocessing(size, 1.0, tuple(how["mean"]), tuple(how["std"]), resize)


def _weights(open_clip: Any, name: str, settings: FeatureSettings) -> dict[str, Any]:
    """Which set of weights: the one asked for, else OpenAI's, else the first that open_clip lists; or a file."""
    if settings.weights == "random":
        return {}
    if Path(settings.weights).is_file():
        return {"pretrained": settings.weights}
    tags = open_clip.list_pretrained_tags_by_model(name)
    tag = settings.weights
    if tag == "pretrained":
        if not tags:
            raise MisuseError(f"open_clip lists no weights for {name}: pass --set weights=FILE.")
        tag = "openai" if "openai" in tags else tags[0]
    if tag not in tags:
        near = did_you_mean(tag, [*tags, "pretrained", "random"])
        raise MisuseError(f"weights={tag}: no such file, and open_clip has no such weights for {name}. {near}")
    published = open_clip.get_pretrained_cfg(name, tag)
    check_reachable(settings.backbone, published.get("hf_hub", "").rpartition("/")[0])
    # OpenAI's weights were trained with another activation than the network of the same name has by default.
    return {"pretrained": tag, "force_quick_gelu": bool(published.get("quick_gelu"))}


def _check_folder(folder: Path) -> None:
    config = folder / "open_clip_config.json"
    try:
        if "model_cfg" not in json.loads(config.read_text(encoding="utf-8")):
            raise InputError(config, found="no model_cfg", expected="the configuration of a network of open_clip")
    except json.JSONDecodeError as error:
        raise InputError(
            config, line=error.lineno, found="text that is not JSON", expected="a configuration"
        ) from error
    if not any(file.suffix in FOLDER_WEIGHTS for file in folder.iterdir()):
        raise InputError(folder, found="no weights", expected=f"a file ending in {', '.join(FOLDER_WEIGHTS)}")


def _near(name: str, names: list[str]) -> str:
    return did_you_mean(name, names).partition("Known:")[0].strip() or "`fieldmark backbones` lists some."
