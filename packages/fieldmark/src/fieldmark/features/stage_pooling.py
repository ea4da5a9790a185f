"""Features of networks of timm from the maps of their last stages, in place of what goes into the classifier."""

from __future__ import annotations

from typing import Any

import torch

from fieldmark.errors import MisuseError
from fieldmark.features.second_order import Axes, digest_of, pooled, triangle

MAPS = "maps"


class PooledStages(torch.nn.Module):  # type: ignore[misc]
    """A network of timm whose features are made of the maps of its last stages."""

    output: str
    stages: int = 1

    def __init__(self, network: Any, name: str) -> None:
        super().__init__()
        self.network = network
        self._made: list[Any] = []
        if len(self._stages()) < self.stages:
            raise MisuseError(f"output={self.output}: {name} has no stages that are known. Leave output out.")
        self._hooks = [stage.register_forward_hook(self._keep) for stage in self._stages()]

    @property
    def recipe(self) -> list[Any]:
        """What the features depend on besides the weights."""
        return [self.output]

    def pooled(self, maps: list[Any], last: Any) -> Any:
        """The features of photos.

        Args:
            maps: Photos x channels x positions of each of the last stages.
            last: What the network makes of the last of them.
        """
        raise NotImplementedError

    def _stages(self) -> list[Any]:
        """The last stages: of a network in blocks or stages, or of one whose layers are numbered."""
        for name in ("stages", "blocks", "layers"):
            if hasattr(self.network, name):
                return list(getattr(self.network, name).children())[-self.stages :]
        numbered = [getattr(self.network, name) for name in ("layer3", "layer4") if hasattr(self.network, name)]
        return numbered[-self.stages :]

    def _keep(self, _stage: Any, _given: Any, maps: Any) -> None:
        if maps.ndim == 4:
            channels_last = getattr(self.network, "output_fmt", "NCHW") == "NHWC"
            maps = (maps.permute(0, 3, 1, 2) if channels_last else maps).flatten(2)
        else:  # tokens
            maps = maps.transpose(1, 2)
        self._made.append(maps)

    def forward_features(self, batch: Any) -> Any:
        """The features."""
        self._made.clear()
        last = self.network.forward_features(batch)
        made = self.pooled(self._made, last)
        self._made.clear()
        return made

    def leave(self) -> Any:
        """The network as it was."""
        for hook in self._hooks:
            hook.remove()
        return self.network

    def forward_head(self, features: Any, pre_logits: bool = True) -> Any:
        """What `forward_features` gives, which is pooled already."""
        return features

    def get_classifier(self) -> Any:
        """None: a classifier would need the last features."""
        return torch.nn.Identity()

    def state_dict(self, *args: Any, **options: Any) -> Any:
        """The tensors by the names that timm gives them."""
        return self.network.state_dict(*args, **options)


class StageMeans(PooledStages):
    """The means of the last two stages, each of unit length."""

    output, stages = "stages", 2

    def pooled(self, maps: list[Any], last: Any) -> Any:
        return torch.cat([torch.nn.functional.normalize(one.mean(2), dim=1) for one in maps], dim=1)


class LastMaps(PooledStages):
    """The maps of the last stage themselves, and the plain features."""

    output = MAPS

    def pooled(self, maps: list[Any], last: Any) -> Any:
        return maps[-1].float(), self.network.forward_head(last, pre_logits=True).float()


class SecondOrder(PooledStages):
    """The last stage in second order, beside the plain features (`features.second_order`)."""

    output = "second-order"

    def __init__(self, network: Any, name: str, axes: Axes) -> None:
        super().__init__(network, name)
        self.digest = digest_of(axes)
        places, factors = (torch.from_numpy(array) for array in triangle(axes.shape[1]))
        for called, tensor in {"axes": torch.from_numpy(axes), "places": places, "factors": factors}.items():
            self.register_buffer(called, tensor, persistent=False)

    @property
    def recipe(self) -> list[Any]:
        return [self.output, self.digest]

    def pooled(self, maps: list[Any], last: Any) -> Any:
        plain = self.network.forward_head(last, pre_logits=True)
        return pooled(maps[-1], plain, self.axes, (self.places, self.factors))
