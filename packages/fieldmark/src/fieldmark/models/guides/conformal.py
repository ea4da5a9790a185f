"""Conformal sets: the shortest list of names that holds the right one as often as promised.

A label is listed when its probability reaches the line of its group. Groups are by the number of observations that a
label was learned from, so that rare labels get a line of their own: with the probabilities of the true labels of the n
calibration observations of a group, the line is the k-th lowest of them with k = floor((n + 1) (1 - coverage)).
Observations to come that are exchangeable with those of calibration are then covered at least as often as promised,
within each group (Vovk, "Conditional validity of inductive conformal predictors", 2012; Sadinle et al., "Least
ambiguous set-valued classifiers", 2019). The likeliest label is always listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

COVERAGE = 0.9
# Labels with at most so many observations to learn from stand together.
COUNT_EDGES = (5, 20, 100)
# A group has at least so many observations of calibration, or is merged with its neighbor.
SMALLEST_GROUP = 140
# Below this there is no set at all: its promise would rest on too few observations.
FEWEST = 30
SPLITS = 20

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class ConformalSets:
    """The lines of the groups.

    Args:
        upper: The highest number of training observations of each group but the last.
        lines: The lowest probability at which a label of each group is listed.
        calibrated_on: How many observations each line rests on.
        coverage: What is promised.
        checked: Mean coverage and mean size over random halves of the calibration observations (`check_by_halves`).
    """

    upper: tuple[int, ...]
    lines: tuple[float, ...]
    calibrated_on: tuple[int, ...]
    coverage: float = COVERAGE
    checked: Mapping[str, Any] | None = None

    def groups(self, counts: NDArray[Any]) -> Codes:
        """The group of each label, by the number of its training observations."""
        return np.asarray(np.searchsorted(np.asarray(self.upper), counts, side="left"), dtype=np.int64)

    def listed(self, probabilities: Floats, counts: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each label is in the set of each item.

        >>> sets = ConformalSets((5,), (0.2, 0.4), (200, 200))
        >>> sets.listed(np.array([[0.5, 0.3, 0.2]]), np.array([9, 9, 1]))
        array([[ True, False,  True]])
        """
        inside = probabilities >= np.asarray(self.lines)[self.groups(counts)]
        inside[np.arange(len(inside)), probabilities.argmax(axis=1)] = True
        return np.asarray(inside)

    def to_data(self) -> dict[str, Any]:
        """As plain data that a model can keep."""
        return {
            "upper": list(self.upper),
            "lines": list(self.lines),
            "calibrated_on": list(self.calibrated_on),
            "coverage": self.coverage,
            "checked": None if self.checked is None else dict(self.checked),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """From what `to_data` made."""
        upper, lines, calibrated_on = (tuple(data[name]) for name in ("upper", "lines", "calibrated_on"))
        return cls(upper, lines, calibrated_on, data["coverage"], data["checked"])


def calibrate(
    probabilities: Floats, truth: NDArray[Any], counts: NDArray[Any], *, coverage: float = COVERAGE
) -> ConformalSets | None:
    """The lines from observations whose label is known; None where there are too few.

    Args:
        probabilities: One row per observation, one column per label.
        truth: The code of the true label of each.
        counts: How many observations each label was learned from.
        coverage: What is promised.
    """
    if len(truth) < FEWEST:
        return None
    own = probabilities[np.arange(len(truth)), truth]
    upper = _edges(np.searchsorted(np.asarray(COUNT_EDGES), counts[truth], side="left"))
    group = np.searchsorted(np.asarray(upper), counts[truth], side="left")
    lines, sizes = [], []
    for number in range(len(upper) + 1):
        values = np.sort(own[group == number])
        place = int(np.floor((len(values) + 1) * (1 - coverage)))
        lines.append(float(values[place - 1]) if place else 0.0)
        sizes.append(len(values))
    return ConformalSets(tuple(upper), tuple(lines), tuple(sizes), coverage)


def _edges(group: Codes) -> list[int]:
    """Edges of training counts between groups that have enough observations; small ones join the next larger."""
    sizes = np.bincount(group, minlength=len(COUNT_EDGES) + 1)
    kept: list[int] = []
    gathered = 0
    for number, edge in enumerate(COUNT_EDGES):
        gathered += int(sizes[number])
        if gathered >= SMALLEST_GROUP and int(sizes[number + 1 :].sum()) >= SMALLEST_GROUP:
            kept.append(edge)
            gathered = 0
    return kept


def check_by_halves(
    probabilities: Floats, truth: NDArray[Any], counts: NDArray[Any], *, coverage: float = COVERAGE, seed: int = 0
) -> dict[str, Any] | None:
    """Mean coverage and mean size over `SPLITS` random halves: lines from one half, sets for the other."""
    if len(truth) < 2 * FEWEST:
        return None
    rng = np.random.default_rng(seed)
    covered: list[float] = []
    size: list[float] = []
    hits: dict[int, list[NDArray[np.bool_]]] = {}
    wide = np.searchsorted(np.asarray(COUNT_EDGES), counts[truth], side="left")
    for _ in range(SPLITS):
        order = rng.permutation(len(truth))
        first, second = order[: len(order) // 2], order[len(order) // 2 :]
        sets = calibrate(probabilities[first], truth[first], counts, coverage=coverage)
        assert sets is not None  # a half has at least `FEWEST`
        inside = sets.listed(probabilities[second], counts)
        hit = inside[np.arange(len(second)), truth[second]]
        covered.append(float(hit.mean()))
        size.append(float(inside.sum(axis=1).mean()))
        for number in np.unique(wide[second]):
            hits.setdefault(int(number), []).append(hit[wide[second] == number])
    names = group_names(COUNT_EDGES)
    groups = {names[number]: _share(hits[number]) for number in sorted(hits)}
    return {
        "splits": SPLITS,
        "observations": len(truth),
        "coverage": round(float(np.mean(covered)), 4),
        "size": round(float(np.mean(size)), 3),
        "groups": groups,
    }


def _share(hits: Sequence[NDArray[np.bool_]]) -> dict[str, float]:
    together = np.concatenate(hits)
    return {"coverage": round(float(together.mean()), 4), "observations": round(len(together) / len(hits), 1)}


def group_names(edges: Sequence[int]) -> list[str]:
    """What groups of training counts are called.

    >>> group_names((5, 20))
    ['up to 5', '6 to 20', 'more than 20']
    """
    if not edges:
        return ["all"]
    between = [f"{low + 1} to {high}" for low, high in pairwise(edges)]
    return [f"up to {edges[0]}", *between, f"more than {edges[-1]}"]
