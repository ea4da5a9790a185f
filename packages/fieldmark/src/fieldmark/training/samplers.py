"""In which order examples are shown: a function of the seed and the epoch."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError

Sampler = Literal["natural", "square-root", "class-balanced"]

# The label of examples that have none.
UNLABELED = -1

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


def followed_order(
    labels: NDArray[np.int32],
    groups: NDArray[np.int64] | None,
    *,
    followers: int,
    sampler: Sampler,
    per_group: int,
    seed: int,
    epoch: int,
) -> NDArray[np.int64]:
    """The examples of one epoch where some have no label: each labeled one is followed by a few unlabeled ones.

    An epoch shows all of them. The kind of which there are too few comes round again, in another order, until the
    other kind is through.

    Args:
        labels: The class of each example, -1 for those without a label.
        groups: See `epoch_order`, as for all that is not named here.
        followers: How many unlabeled examples follow each labeled one.
        sampler: How classes share the labeled examples; unlabeled ones are drawn naturally.
        per_group: How many labeled and how many unlabeled examples each group gives.
        seed: The seed of the training.
        epoch: Which epoch, counted from 0.

    Raises:
        MisuseError: When there are none of one kind.
    """
    kinds = [
        (np.flatnonzero(labels != UNLABELED), sampler, 1),
        (np.flatnonzero(labels == UNLABELED), "natural", followers),
    ]
    if not all(len(rows) for rows, _, _ in kinds):
        raise MisuseError("Consistency needs examples with a label and examples without one.")

    def shown(rows: NDArray[np.int64], sampler: Sampler, turn: int) -> NDArray[np.int64]:
        own = None if groups is None else groups[rows]
        return rows[epoch_order(labels[rows], own, sampler=sampler, per_group=per_group, seed=seed, epoch=turn)]

    sizes = [len(shown(rows, sampler, 0)) for rows, sampler, _ in kinds]
    blocks = max(-(-size // number) for size, (_, _, number) in zip(sizes, kinds, strict=True))
    columns = []
    for (rows, sampler, number), size in zip(kinds, sizes, strict=True):
        turns = -(-blocks * number // size)
        order = np.concatenate([shown(rows, sampler, epoch * turns + turn) for turn in range(turns)])
        columns.append(order[: blocks * number].reshape(blocks, number))
    return np.concatenate(columns, axis=1).ravel()


def classes_order(
    labels: NDArray[np.int32],
    groups: NDArray[np.int64] | None,
    *,
    each: int,
    per_group: int,
    seed: int,
    epoch: int,
) -> NDArray[np.int64]:
    """The examples of one epoch, `each` of one class after the other, the classes in random order.

    A class of n examples comes n / `each` times, rounded down, and once at least; examples that are left over have
    their turn in another epoch. A class with fewer than `each` examples shows some of them again.

    Args:
        labels: The class of each example.
        groups: See `epoch_order`, as for all that is not named here.
        each: How many examples of a class follow each other.
        per_group: How many examples each group gives.
        seed: The seed of the training.
        epoch: Which epoch, counted from 0.

    >>> order = classes_order(np.array([0, 0, 0, 1]), None, each=2, per_group=0, seed=0, epoch=0)
    >>> sorted(np.array([0, 0, 0, 1])[order].tolist())
    [0, 0, 1, 1]
    """
    shown = epoch_order(labels, groups, sampler="natural", per_group=per_group, seed=seed, epoch=epoch)
    by_class = shown[np.argsort(labels[shown], kind="stable")]
    own = np.split(by_class, np.flatnonzero(np.diff(labels[by_class])) + 1)
    turns = [np.resize(rows, max(1, len(rows) // each) * each).reshape(-1, each) for rows in own]
    rng = np.random.default_rng([seed, epoch, 2])
    return np.asarray(rng.permutation(np.concatenate(turns)).ravel())


def _rotating(groups: NDArray[np.int64], per_group: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """At most `per_group` examples of each group, others in each epoch until all have had their turn."""
    shuffled = np.random.default_rng([seed, 0, 1]).permutation(len(groups))  # the same in every epoch
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    sizes = np.unique(groups[by_group], return_counts=True)[1]
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    place, size = np.arange(len(groups)) - starts, np.repeat(sizes, sizes)
    turn = (place - epoch * per_group) % size
    return np.sort(by_group[turn < per_group])
