"""Semi-supervised draws from folders of birds: which photos are labeled, val, unlabeled and test.

Imports no table library, so that a bare GPU machine can draw the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

LABELS, VAL = 5, 5
# Long-tailed: the r-th species of a random order has 15 / r^0.6 labels, 1 at least, and four times as many unlabeled.
MOST_LABELS, TAIL = 15, 0.6
UNLABELED_PER_LABEL = 4


def group_of(species: str) -> str:
    """The group of names that a bird belongs to: the last word of its English name."""
    return species.rpartition("_")[2]


def half_of_species(species: Sequence[str], seed: int = 0) -> list[str]:
    """Half of the species, drawn within each group of names; groups of one take turns."""
    rng = np.random.default_rng(seed)
    inside: list[str] = []
    owed = 0.0
    for group in sorted({group_of(one) for one in species}):
        members = [str(one) for one in rng.permutation([one for one in sorted(species) if group_of(one) == group])]
        owed += len(members) / 2
        taken = min(len(members), int(owed + 1e-9))
        inside += members[:taken]
        owed -= taken
    return sorted(inside)


def draw_parts(
    train: Mapping[str, Sequence[str]], test: Mapping[str, Sequence[str]], inside: Sequence[str], draw: int, tail: str
) -> dict[str, list[tuple[str, str]]]:
    """The photos of each part with their species.

    Args:
        train: The photos of each species in the official train.
        test: The same for test.
        inside: The in-class species.
        draw: The number of the draw, which is its seed.
        tail: "balanced" for as many labels of each species, "long-tailed" for few of most.

    Returns:
        `train`, `val`, `test` (the official one of the in-class species) and `unlabeled`: what is left of train, and
        all photos of the other species.
    """
    rng = np.random.default_rng([draw, 2021])
    parts: dict[str, list[tuple[str, str]]] = {name: [] for name in ("train", "val", "unlabeled", "test")}
    ranks = dict(zip((str(one) for one in rng.permutation(inside)), range(1, len(inside) + 1), strict=True))
    for species in inside:
        photos = [str(one) for one in rng.permutation(sorted(train[species]))]
        parts["val"] += [(one, species) for one in photos[:VAL]]
        rest = photos[VAL:]
        labels = LABELS if tail == "balanced" else max(1, round(MOST_LABELS * ranks[species] ** -TAIL))
        unlabeled = rest[labels:] if tail == "balanced" else rest[labels : labels * (1 + UNLABELED_PER_LABEL)]
        parts["train"] += [(one, species) for one in rest[:labels]]
        parts["unlabeled"] += [(one, species) for one in unlabeled]
        parts["test"] += [(one, species) for one in sorted(test[species])]
    for species in sorted(set(train) - set(inside)):
        parts["unlabeled"] += [(one, species) for one in sorted([*train[species], *test[species]])]
    return parts


def listed(folder: Any) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The photos of `folder/{train,test}/<species>/` by species, as paths below the folder."""
    sides = []
    for side in ("train", "test"):
        by_species: dict[str, list[str]] = {}
        for path in sorted((folder / side).glob("*/*")):
            by_species.setdefault(path.parent.name, []).append(f"{side}/{path.parent.name}/{path.name}")
        sides.append(by_species)
    return sides[0], sides[1]
