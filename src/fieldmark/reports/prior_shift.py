"""How far the class frequencies of a part lie from those of train."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark.labels import UNKNOWN
from fieldmark.reports.section import Codes, Context

SHUFFLES = 20
SEED = 0


@dataclass(frozen=True)
class PartFrequencies:
    """One part of the benchmark.

    Args:
        part: Its name.
        items, units, classes: How many of each it has, items of unknown species left out.
        shift: The share of its items that would have to change class to match train; None for train itself.
        by_chance: The shift to expect if units had been dealt to train and this part at random.
    """

    part: str
    items: int
    units: int
    classes: int
    shift: float | None = None
    by_chance: float | None = None


def part_frequencies(context: Context) -> list[PartFrequencies]:
    """Every part whose labels are known, train first; all counts are of the items of known classes."""
    codes, units = {}, {}
    for part in context.labeled_parts:
        items = context.opened.items[part]
        every = context.labels.encode(items["label"])
        codes[part] = every[every != UNKNOWN]
        units[part] = items[context.task.unit].to_numpy()[every != UNKNOWN]
    frequencies = []
    for part, labels in codes.items():
        shifts: tuple[float | None, float | None] = (None, None)
        if part != "train":
            numbered = np.unique(np.concatenate([units["train"], units[part]]), return_inverse=True)[1]
            shifts = shift_and_chance(codes["train"], labels, numbered, len(context.labels))
        classes = len(np.unique(labels))
        frequencies.append(PartFrequencies(part, len(labels), len(np.unique(units[part])), classes, *shifts))
    return frequencies


def total_variation(one: NDArray[np.integer], other: NDArray[np.integer]) -> float:
    """Half the summed difference of the shares that counts stand for.

    >>> total_variation(np.array([3, 1]), np.array([1, 1]))
    0.25
    """
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


def shift_and_chance(train: Codes, part: Codes, unit: NDArray[np.integer], size: int) -> tuple[float, float]:
    """The total variation between two parts, and its mean when whole units are dealt to them at random.

    Args:
        train: The label code of each item of train.
        part: The label code of each item of the other part.
        unit: The unit of each item, those of train first, numbered from 0.
        size: How many labels there are.
    """

    def distance(in_part: NDArray[np.bool_]) -> float:
        counts = [np.bincount(codes[side & known], minlength=size) for side in (~in_part, in_part)]
        return total_variation(*counts) if all(one.any() for one in counts) else 0.0

    codes = np.concatenate([train, part])
    known = codes != UNKNOWN
    belongs = np.arange(len(codes)) >= len(train)
    n_units = int(unit.max()) + 1
    n_dealt = len(np.unique(unit[belongs]))
    rng = np.random.default_rng(SEED)
    chance = []
    for _ in range(SHUFFLES):
        dealt = np.zeros(n_units, dtype=bool)
        dealt[rng.permutation(n_units)[:n_dealt]] = True
        chance.append(distance(dealt[unit]))
    return distance(belongs), float(np.mean(chance))
