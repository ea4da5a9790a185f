"""How likely each place of a photo is the organism, as learned from masks: a ridge regression on maps of a network.

The network is EfficientNet-Lite0 with the weights of ImageNet, which stay as they are. The maps of its last three
stages, of a photo made 384 x 384 pixels and of its mirror image, are brought to one grid of 48 x 48 places; what is
learned is the share of each place that masks of train cover. That tells an insect from the flower it sits on, also for
species that train does not have, where saliency takes both and SAM either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from fieldmark.features.backbones import create_network
from fieldmark.features.settings import FeatureSettings
from fieldmark.masks.parts import Mask
from fieldmark.training.networks import normalization

NETWORK, SIDE_PX, GRID, STAGES = "efficientnet_lite0", 384, 48, 3
# The penalty of a coefficient, as a share of the sum of squares of its channel.
PENALTY = 0.3
Values = NDArray[np.float32]


@dataclass(frozen=True)
class FrozenMaps:
    """The network, loaded at the first use."""

    def look(self, photo: Image.Image) -> Values:
        """What the network sees at each place (rows) by each channel, the last of which is 1."""
        network, mean, std = self._network
        square = np.array(photo.resize((SIDE_PX, SIDE_PX), Image.Resampling.BICUBIC))
        pixels = (torch.from_numpy(square).permute(2, 0, 1) / 255 - mean) / std
        with torch.inference_mode():
            stages = network.forward_intermediates(torch.stack([pixels, pixels.flip(2)]), intermediates_only=True)
            maps = [
                torch.nn.functional.interpolate((seen[:1] + seen[1:].flip(3)) / 2, size=(GRID, GRID), mode="bilinear")
                for seen in stages[-STAGES:]
            ]
            channels = torch.cat([*maps, torch.ones(1, 1, GRID, GRID)], dim=1)
        return np.asarray(channels[0].flatten(1).T.numpy(), dtype=np.float32)

    @cached_property
    def _network(self) -> tuple[Any, Any, Any]:
        network = create_network(FeatureSettings(backbone=NETWORK)).eval().requires_grad_(False)
        mean, std = (torch.tensor(values).view(3, 1, 1) for values in normalization(network))
        return network, mean, std


class Moments(NamedTuple):
    """The sums over places that a regression needs; those of several photos are added."""

    squares: NDArray[np.float64]
    products: NDArray[np.float64]

    def weights(self) -> Values:
        """The coefficients of the ridge regression; the constant is not penalized."""
        penalty = PENALTY * np.diag(self.squares).copy()
        penalty[-1] = 0
        penalty += 1e-6  # a channel that is 0 everywhere
        return np.asarray(np.linalg.solve(self.squares + np.diag(penalty), self.products), dtype=np.float32)


def moments_of(channels: Values, mask: Mask) -> Moments:
    """The sums over one photo, of what the network sees and of the mask."""
    exact = channels.astype(np.float64)
    shares = Image.fromarray(mask.astype(np.float32), mode="F").resize((GRID, GRID), Image.Resampling.BOX)
    return Moments(exact.T @ exact, exact.T @ np.asarray(shares, dtype=np.float64).ravel())


def sum_of(moments: Iterable[Moments]) -> Moments:
    """The sums over all photos of several sums, at least one."""
    return reduce(lambda one, other: Moments(*(a + b for a, b in zip(one, other, strict=True))), moments)


def organism_map(channels: Values, weights: Values) -> Values:
    """How likely each place of the grid is the organism, from 0 to 1."""
    return np.asarray(np.clip(channels @ weights, 0, 1).reshape(GRID, GRID), dtype=np.float32)
