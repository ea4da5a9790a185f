"""In which order examples are shown: a function of the seed and the epoch."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Sampler = Literal["natural", "square-root", "class-balanced"]

# By which power of its class's count the chance of an example falls.
_POWER: dict[str, float] = {"natural": 0.0, "square-root": 0.5, "class-balanced": 1.0}


def epoch_order(
    labels: NDArray[np.int32],
    groups: NDArray[np.int64] | None,
    *,
    sampler: Sampler,
    per_group: int,
    seed: int,
    epoch: int,
) -> NDArray[np.int64]:
    """The examples of one epoch, in the order in which they are shown.

    Natural sampling shows every example once. The others draw with replacement as many examples as there are: with
    chances that give every class the same share (class-balanced) or a share that grows as the root of its count.

    Args:
        labels: The class of each example.
        groups: What each example belongs to (its observation); photos of one mushroom say much the same.
        sampler: How classes share an epoch.
        per_group: How many examples each group gives an epoch, 0 for all. Which ones rotates from epoch to epoch, so
            that all of them are seen in the end.
        seed: The seed of the training.
        epoch: Which epoch, counted from 0.
    """
    rng = np.random.default_rng([seed, epoch])
    shown = np.arange(len(labels))
    if per_group and groups is not None:
        shown = _rotating(groups, per_group, seed, epoch)
    power = _POWER[sampler]
    if power:
        classes = labels[shown]
        counts = np.bincount(classes)
        weights = counts[classes].astype(np.float64) ** -power
        return rng.choice(shown, size=len(shown), p=weights / weights.sum())
    return rng.permutation(shown)


def _rotating(groups: NDArray[np.int64], per_group: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """At most `per_group` examples of each group, others in each epoch until all have had their turn."""
    shuffled = np.random.default_rng([seed, 0, 1]).permutation(len(groups))  # the same in every epoch
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    sizes = np.unique(groups[by_group], return_counts=True)[1]
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    place, size = np.arange(len(groups)) - starts, np.repeat(sizes, sizes)
    turn = (place - epoch * per_group) % size
    return np.sort(by_group[turn < per_group])
