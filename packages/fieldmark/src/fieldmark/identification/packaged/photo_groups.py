"""What kind of living thing a photo shows, whatever model names it: bird, fungus, snake, plant, insect, mammal, other.

The packaged EfficientNet-Lite2 gives each class of ImageNet a probability; those of a group are added (`imagenet_taxa`
says which they are). ImageNet shows 118 breeds of dogs and eight fungi, so that the sums are weighed: the logarithm of
each is multiplied by one number and moved by one number for each group (`imagenet_groups.json`). These numbers, and
the lines from which on a fungus or a snake is plausible, were chosen on photos of other species than those that the
rates in docs/results.md were measured on (`studies/evidence/living_groups.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MissingExtraError
from fieldmark.features.settings import FeatureSettings
from fieldmark.identification.packaged.imagenet_taxa import CLASSES, classes, label_table
from fieldmark.models.guides.living_groups import BIRDS, FUNGI, INSECTS, MAMMALS, OTHER, PLANTS, SNAKES, groups_of
from fieldmark.models.supply.sources import load_backbone
from fieldmark.tables.labels import Labels

BACKBONE: Final = "efficientnet_lite2"
GROUPS: Final = (BIRDS, FUNGI, SNAKES, PLANTS, INSECTS, MAMMALS, OTHER)
# What is weighed: the groups, and classes that are no organism, which count as "other" in the end.
THINGS: Final = "things"
WEIGHED: Final = (*GROUPS, THINGS)
BATCH: Final = 32
SMALLEST: Final = 1e-9

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GroupScale:
    """How sums over classes become probabilities of groups.

    Args:
        factor: What the logarithms of the sums are multiplied by.
        shift: What is added to that of each group, in the order of `WEIGHED`.
        plausible: From which probability on a group is plausible.
    """

    factor: float
    shift: tuple[float, ...]
    plausible: Mapping[str, float]

    def chances(self, logits: NDArray[Any]) -> Floats:
        """The probability of each of `GROUPS`, one row per photo, from the logits of the classes."""
        scores = self.factor * group_logs(logits) + np.array(self.shift)
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        return np.column_stack([chances[:, :-2], chances[:, -2:].sum(axis=1)])

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """From plain data, as `imagenet_groups.json` holds it."""
        return cls(data["factor"], tuple(data["shift"][name] for name in WEIGHED), data["plausible"])


def group_logs(logits: NDArray[Any]) -> Floats:
    """The logarithm of the probability that the classes of each of `WEIGHED` have together, one row per photo."""
    chances = np.exp(logits - logits.max(axis=1, keepdims=True)).astype(np.float64)
    chances /= chances.sum(axis=1, keepdims=True)
    sums = np.stack([chances[:, group_of_class() == number].sum(axis=1) for number in range(len(WEIGHED))], axis=1)
    return np.asarray(np.log(sums + SMALLEST))


@cache
def group_of_class() -> NDArray[np.int64]:
    """The place in `WEIGHED` of each class of ImageNet."""
    table = label_table()
    labels = Labels(tuple(table["label"]))
    group = dict(zip(labels.names, groups_of(labels, table), strict=True))
    places = np.full(CLASSES, WEIGHED.index(THINGS), dtype=np.int64)
    for index, (_, taxon) in classes().items():
        places[index] = WEIGHED.index(group[taxon])
    return places


@cache
def group_scale() -> GroupScale:
    """The scale that comes with the package."""
    text = resources.files(__package__).joinpath("imagenet_groups.json").read_text(encoding="utf-8")
    return GroupScale.from_data(json.loads(text))


def group_chances(photos: Iterable[bytes]) -> Floats | None:
    """The probability of each of `GROUPS`, one row per photo; None where the packaged network is not installed."""
    try:
        network = _network()
    except MissingExtraError:
        return None
    left, logits = iter(photos), [np.zeros((0, CLASSES), np.float32)]
    while pixels := [network.decode(photo) for photo in islice(left, BATCH)]:  # no more than a batch is in memory
        logits.append(network(pixels)["logits"])
    return group_scale().chances(np.concatenate(logits))


def most_plausible(chances: Floats) -> dict[str, float]:
    """The probability of each group for photos of one specimen: of each the highest that a photo gives it."""
    return dict(zip(GROUPS, chances.max(axis=0).tolist(), strict=True))


@cache
def _network() -> Any:
    return load_backbone(FeatureSettings(BACKBONE))
