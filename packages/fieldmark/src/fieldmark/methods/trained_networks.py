"""What methods that train a network say about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fieldmark.features.settings import data_behind
from fieldmark.methods.base import ON_VAL, ChosenSetting, Method

if TYPE_CHECKING:
    from fieldmark.training.loop import Trained
    from fieldmark.training.recipe import Training


def leave_to_first(trained: Trained) -> None:
    """Ends every process of a training but the first, which goes on to predict and write."""
    if trained.rank:
        raise SystemExit(0)


def remarks_on_training(trained: Trained, how: Training) -> list[str]:
    """What a training says about itself, and which of its epochs was taken."""
    if how.best_by == "last":
        return [*trained.remarks, f"The last of {how.epochs} epochs."]
    return [*trained.remarks, f"Best of {how.epochs} epochs by {how.best_by} on val: {trained.best_epoch}."]


def epoch_chosen(how: Training) -> tuple[ChosenSetting, ...]:
    """That the epoch was chosen on val, where it was; the remark on the training says which."""
    return () if how.best_by == "last" else (ChosenSetting("the epoch", ON_VAL),)


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
