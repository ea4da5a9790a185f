"""What methods that train a network say about it."""

from __future__ import annotations

from typing import ClassVar

from fieldmark.features.settings import data_behind
from fieldmark.methods.base import Method


class TrainsNetwork(Method):
    """A method whose settings are those of `training.recipe.Training`, and whose network others may take features from.

    Attributes:
        network: The name of the network, as timm or the packaged backbones have it.
        weights: What it starts from.
        best_by: The score on val by which the epoch is chosen; "last" chooses none.
    """

    network: str
    weights: str
    best_by: str

    trains_network: ClassVar[bool] = True

    @property
    def network_name(self) -> str:
        return self.network

    @property
    def chooses_on_val(self) -> bool:
        return self.best_by != "last"

    @property
    def external_data(self) -> tuple[str, ...]:
        """What the network was trained on before."""
        return data_behind(self.network, self.weights)
