"""Networks to be trained: from timm, with the head a task needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import timm
import torch
from timm.data import resolve_model_data_config

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.backbones import create_network
from fieldmark.features.named_backbones import address_of
from fieldmark.features.settings import PACKAGED, FeatureSettings


def make_network(
    name: str, weights: str, *, classes: int, size: int, drop_path: float = 0.0, channels: int = 3, seed: int = 0
) -> Any:
    """A network with a fresh head for the given classes; the same seed gives the same head.

    Args:
        name: A packaged backbone, or any name timm knows.
        weights: "pretrained", "random", or a file.
        classes: How many logits the head gives.
        size: The side of the input in pixels, for networks that must know it.
        drop_path: The share of residual branches left out at random; refused by networks without any.
        channels: How many channels the input has.
        seed: The seed of whatever is not loaded.
    """
    name = address_of(name)
    options: dict[str, Any] = {}
    if drop_path:
        options["drop_path_rate"] = drop_path
    if channels != 3:
        options["in_chans"] = channels
    if _must_know_size(name):
        options["img_size"] = size
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        try:
            network = create_network(FeatureSettings(name, size, weights), **options)
        except TypeError as error:
            raise MisuseError(f"{name} has no {' or no '.join(options)} to set ({error}).") from error
        network.reset_classifier(classes)
    return network


def normalization(network: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The mean and the deviation of each channel the network was trained with, for values between 0 and 1."""
    config = resolve_model_data_config(network)
    return tuple(config["mean"]), tuple(config["std"])


def load_trained(network: Any, name: str, weights: Mapping[str, Any]) -> None:
    """Loads what was learned into a network, with the head that belongs to it.

    Raises:
        InputError: When these are the weights of another network.
    """
    try:
        network.reset_classifier(len(weights[f"{network.default_cfg['classifier']}.weight"]))
        network.load_state_dict(weights)
    except (KeyError, RuntimeError) as error:
        hint = "Was the folder put together from two models?"
        expected = f"the trained weights of {name}"
        raise InputError(
            "weights.safetensors", found="tensors of something else", expected=expected, hint=hint
        ) from error


def with_one_channel(network: Any) -> Any:
    """The network for pictures of one channel: its first layer does to it what it did to three equal ones."""
    first = next(layer for layer in network.modules() if isinstance(layer, torch.nn.Conv2d))
    with torch.no_grad():
        summed = first.weight.sum(dim=1, keepdim=True)
    first.in_channels, first.weight = 1, torch.nn.Parameter(summed)
    return network


# Networks that shrink a picture without padding have nothing left of a smaller one.
LEAST_SIDES = {"inception_v3": 75, "inception_v4": 75, "inception_resnet_v2": 75}


def with_least_side(network: Any, name: str) -> Any:
    """The network for pictures of any shape: a spectrogram that is too flat for it is enlarged before its first layer.

    Args:
        network: The network.
        name: As timm knows it.
    """
    least = LEAST_SIDES.get(name.partition(".")[0].removeprefix("tf_").removeprefix("gluon_"), 0)
    if not least:
        return network

    def enlarge(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        high, wide = inputs[0].shape[2:]
        if min(high, wide) >= least:
            return inputs
        size = (max(high, least), max(wide, least))
        return (torch.nn.functional.interpolate(inputs[0], size, mode="bilinear", align_corners=False),)

    first = next(layer for layer in network.modules() if isinstance(layer, torch.nn.Conv2d))
    first.register_forward_pre_hook(enlarge)
    return network


def with_channels(network: Any, channels: int) -> Any:
    """The network for inputs of so many channels: each is seen as the mean of three was, all together as strongly."""
    first = next(layer for layer in network.modules() if isinstance(layer, torch.nn.Conv2d))
    with torch.no_grad():
        mean = first.weight.mean(dim=1, keepdim=True)
        spread = mean.repeat(1, channels, 1, 1) * (first.in_channels / channels)
    first.in_channels, first.weight = channels, torch.nn.Parameter(spread)
    return network


def answer_with_embedding(network: Any) -> None:
    """Lets a network answer with its logits and, in the columns after them, with what goes into its head."""

    def forward(inputs: Any) -> Any:
        embedding = network.forward_head(network.forward_features(inputs), pre_logits=True)
        return torch.cat([network.get_classifier()(embedding), embedding], dim=1)

    network.forward = forward


def first_outputs(network: Any, weights: Mapping[str, Any], classes: int) -> dict[str, Any]:
    """The weights of a network whose head keeps its first outputs only: those that answer."""
    head = network.default_cfg["classifier"]
    names = (f"{head}.weight", f"{head}.bias")
    return {name: tensor[:classes].clone() if name in names else tensor for name, tensor in weights.items()}


def change_size(network: Any, name: str, size: int) -> None:
    """Lets a loaded network take photos of another size; positions it has learned are resampled.

    Raises:
        MisuseError: For a network that was built for one size and cannot change.
    """
    if not _must_know_size(name):
        return
    if not hasattr(network, "set_input_size"):
        raise MisuseError(f"size={size}: {name} takes only photos of the size it was trained for; leave size out.")
    network.set_input_size(img_size=size)


def _must_know_size(name: str) -> bool:
    if name in PACKAGED or not timm.is_model(name.partition(".")[0]):
        return False  # an unknown name is refused where the network is made
    return bool(timm.get_pretrained_cfg_value(name, "fixed_input_size"))
