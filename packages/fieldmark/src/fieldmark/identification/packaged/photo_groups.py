"""What kind of living thing a photo shows, whatever model names it: bird, fungus, snake, plant, insect, mammal, other.

The packaged EfficientNet-Lite2 looks at the photo twice: at the square in its middle, and at all of it. Each look gives
every class of ImageNet a probability; what counts for a group is the mean over its classes (`imagenet_taxa` says which
they are), because ImageNet shows 118 breeds of dogs and eight fungi. Nothing here was fitted to photos: the rule
follows from the classes, and its few round numbers were settled on photos of other species than those that the rates
in docs/results.md were measured on (`studies/evidence/living_groups.py`, which also says what a fitted rule would do).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MissingExtraError
from fieldmark.features.photos import HeldPhoto, Preprocessing, held_square
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
# What a group counts beside the others. ImageNet's plants are fruit and vegetables, hardly a leaf or a wild flower, so
# that photos of plants are spread over all it knows; and who asks for a name shows something that is alive.
COUNTS: Final = {PLANTS: 3.0, OTHER: 1 / 3, THINGS: 1 / 3}
# ImageNet's "pot, flowerpot" shows the plants in it.
SHOWS_PLANTS: Final = (738,)
# Trained with smoothed labels, the network is less sure than it could be: chances are taken to this power.
POWER: Final = 2.0
# From which probability on a group is plausible.
PLAUSIBLE: Final = {FUNGI: 0.4, SNAKES: 0.15}
BATCH: Final = 32
SMALLEST: Final = 1e-12

Floats = NDArray[np.float64]


def chances_of(looks: Sequence[NDArray[Any]]) -> Floats:
    """The probability of each of `GROUPS`, one row per photo, from the logits of the classes in each look at it."""
    logs = np.mean([group_logs(logits) for logits in looks], axis=0)
    scores = POWER * (logs + np.log([COUNTS.get(name, 1.0) for name in WEIGHED]))
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    return np.column_stack([chances[:, :-2], chances[:, -2:].sum(axis=1)])


def group_logs(logits: NDArray[Any]) -> Floats:
    """The logarithm of the mean probability of the classes of each of `WEIGHED`, one row per photo."""
    chances = np.exp(logits - logits.max(axis=1, keepdims=True)).astype(np.float64)
    chances /= chances.sum(axis=1, keepdims=True)
    means = np.stack([chances[:, group_of_class() == number].mean(axis=1) for number in range(len(WEIGHED))], axis=1)
    return np.asarray(np.log(means + SMALLEST))


@cache
def group_of_class() -> NDArray[np.int64]:
    """The place in `WEIGHED` of each class of ImageNet."""
    table = label_table()
    labels = Labels(tuple(table["label"]))
    group = dict(zip(labels.names, groups_of(labels, table), strict=True))
    places = np.full(CLASSES, WEIGHED.index(THINGS), dtype=np.int64)
    for index, (_, taxon) in classes().items():
        places[index] = WEIGHED.index(group[taxon])
    places[list(SHOWS_PLANTS)] = WEIGHED.index(PLANTS)
    return places


def group_chances(photos: Iterable[bytes]) -> Floats | None:
    """The probability of each of `GROUPS`, one row per photo; None where the packaged network is not installed."""
    try:
        network = _network()
    except MissingExtraError:
        return None
    left, chances = iter(photos), [np.zeros((0, len(GROUPS)))]
    while batch := list(islice(left, BATCH)):
        squares = zip(*(squares_of(photo, network.preprocessing) for photo in batch), strict=True)
        chances.append(chances_of([network(pixels)["logits"] for pixels in squares]))
    return np.concatenate(chances)


def squares_of(photo: bytes, how: Preprocessing) -> list[NDArray[np.uint8]]:
    """The squares of a photo that the network looks at, which is decoded once."""
    held = photo if isinstance(photo, HeldPhoto) else HeldPhoto(photo)
    return [held_square(held, look) for look in looks(how)]


def looks(how: Preprocessing) -> tuple[Preprocessing, Preprocessing]:
    """The two looks at a photo: as the network was trained, and at all of it, out of proportion."""
    return how, replace(how, crop=1.0, resize="squash")


def most_plausible(chances: Floats) -> dict[str, float]:
    """The probability of each group for photos of one specimen: of each the highest that a photo gives it."""
    return dict(zip(GROUPS, chances.max(axis=0).tolist(), strict=True))


@cache
def _network() -> Any:
    return load_backbone(FeatureSettings(BACKBONE))
