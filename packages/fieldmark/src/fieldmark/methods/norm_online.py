"""A fine-tuned network whose normalization follows what it has been shown of late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch

from fieldmark.benchmarks.declarations import Sees
from fieldmark.errors import MisuseError
from fieldmark.methods.base import Arrays
from fieldmark.methods.finetune import Finetune
from fieldmark.runs.label_scores import LabelScores
from fieldmark.settings import setting
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part, View

# Per normalization layer the mean of its inputs and of their squares, one number per channel.
Moments = tuple[tuple[torch.Tensor, torch.Tensor], ...]


class Shown(NamedTuple):
    """What is known after some days: the network, its moments from training, and those of the photos shown since.

    Args:
        network: The network; its weights never change.
        trained: The moments of training.
        seen: The moments of the photos seen, older ones counting less; None before the first.
        photos: How many photos these are worth.
    """

    network: Any
    trained: Moments
    seen: Moments | None
    photos: float


@dataclass(frozen=True, kw_only=True)
class NormOnline(Finetune):
    """`finetune`, and in time order the statistics of batch normalization move with the photos of earlier days.

    With n photos seen and N photos that the statistics of training are worth, each layer normalizes by
    (N m_train + n m_seen) / (N + n), m being the means of its inputs and of their squares: Schneider et al., "Improving
    robustness against common corruptions by covariate shift adaptation" (2020), over days in place of batches. Weights
    stay as they are, and a photo is answered by what earlier days have shown. `fieldmark adapt RUN --method
    norm-online` does this to a run of `finetune`, without training again.

    Args:
        norm_strength: N, the photos that the statistics of training are worth.
        norm_half_life: After how many photos one counts half as much; 0 forgets nothing.
    """

    norm_strength: float = setting(256.0, above=0)
    norm_half_life: float = setting(0.0, least=0)

    sees: ClassVar[Sees] = "past"

    def check(self, view: View) -> None:
        super().check(view)
        self.refuse_without_statistics(self.new_network(1, "random"))

    def refuse_without_statistics(self, network: Any) -> None:
        """Refuses a network that has nothing to adapt.

        Raises:
            MisuseError: For networks with layer normalization, which takes its statistics from each photo.
        """
        if not _layers(network):
            raise MisuseError(
                f"The network {self.network} has no batch normalization, so that there are no statistics to adapt; "
                "take one that has (resnet50, efficientnet_lite0), or --method finetune."
            )

    def start(self, arrays: Arrays) -> Shown:
        network = self.load(arrays)
        self.refuse_without_statistics(network)
        trained = tuple(
            (layer.running_mean.clone(), layer.running_var + layer.running_mean**2) for layer in _layers(network)
        )
        return Shown(network, trained, None, 0.0)

    def answer_day(self, state: Shown, arrays: Arrays, day: Part, labels: Labels) -> LabelScores:
        self._set_statistics(state)
        logits = self.reading.answer(state.network, self.transform(state.network), day)
        return LabelScores(day.item_ids, labels, logits, self.scale)

    def observe(self, state: Shown, arrays: Arrays, day: Part) -> Shown:
        self._set_statistics(state)
        with _recorded(state.network) as sums:
            self.reading.answer(state.network, self.transform(state.network), day)
        photos = float(day.items["media_ids"].list.len().sum())
        of_day = tuple((mean / number, square / number) for mean, square, number in sums)
        if state.seen is None:
            return state._replace(seen=of_day, photos=photos)
        left = state.photos * (0.5 ** (photos / self.norm_half_life) if self.norm_half_life else 1.0)
        return state._replace(seen=_mixed(state.seen, left, of_day, photos), photos=left + photos)

    def _set_statistics(self, state: Shown) -> None:
        """Lets every layer normalize by the moments of training and of the photos seen."""
        moments = state.trained
        if state.seen is not None:
            moments = _mixed(state.trained, self.norm_strength, state.seen, state.photos)
        for layer, (mean, square) in zip(_layers(state.network), moments, strict=True):
            layer.running_mean.copy_(mean)
            layer.running_var.copy_((square - mean**2).clamp_min(0.0))


def _layers(network: Any) -> list[Any]:
    """The layers of batch normalization that keep statistics, in order."""
    kinds = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)
    return [layer for layer in network.modules() if isinstance(layer, kinds) and layer.running_mean is not None]


def _mixed(one: Moments, weight: float, other: Moments, other_weight: float) -> Moments:
    total = weight + other_weight
    return tuple(
        ((weight * a + other_weight * c) / total, (weight * b + other_weight * d) / total)
        for (a, b), (c, d) in zip(one, other, strict=True)
    )


@contextmanager
def _recorded(network: Any) -> Iterator[list[list[Any]]]:
    """Adds up the inputs of every layer and their squares, per channel, while the network answers."""
    sums: list[list[Any]] = []
    hooks = []
    for layer in _layers(network):
        own: list[Any] = [0.0, 0.0, 0]
        sums.append(own)

        def add(_: Any, inputs: tuple[torch.Tensor, ...], own: list[Any] = own) -> None:
            values = inputs[0].detach().float()
            axes = [axis for axis in range(values.dim()) if axis != 1]
            own[0] = own[0] + values.sum(dim=axes)
            own[1] = own[1] + (values**2).sum(dim=axes)
            own[2] += values.numel() // values.shape[1]

        hooks.append(layer.register_forward_pre_hook(add))
    try:
        yield sums
    finally:
        for hook in hooks:
            hook.remove()
