"""One score from several: a logistic combination of standardized scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.stats.logistic import logistic

Floats = NDArray[np.float64]
COMBINED = "combined"
PREFIX = f"{COMBINED}."
# Ridge of the logistic regression, in units of items: keeps a handful of unknown items from saying too much.
RIDGE = 1.0
FOLDS = 5


@dataclass(frozen=True)
class Combination:
    """A weighted sum of scores, each centered and scaled by validation items.

    Args:
        names: The scores, in order.
        center, spread, weights: One number for each.
    """

    names: tuple[str, ...]
    center: Floats
    spread: Floats
    weights: Floats

    def __call__(self, values: Mapping[str, NDArray[Any]]) -> Floats:
        table = np.column_stack([values[name] for name in self.names])
        return np.asarray((table - self.center) / self.spread @ self.weights)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """As arrays of numbers that a model can keep; names as their UTF-8 bytes."""
        return {
            f"{PREFIX}names": np.frombuffer("\n".join(self.names).encode(), dtype=np.uint8),
            f"{PREFIX}center": self.center,
            f"{PREFIX}spread": self.spread,
            f"{PREFIX}weights": self.weights,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Combination:
        """From what `to_arrays` made."""
        names = tuple(arrays[f"{PREFIX}names"].tobytes().decode().split("\n"))
        return cls(names, *(arrays[f"{PREFIX}{part}"] for part in ("center", "spread", "weights")))


def combine(values: Mapping[str, Floats], unknown: NDArray[np.bool_]) -> Combination:
    """Fits the combination that separates unknown from known items by penalized logistic regression."""
    names = tuple(values)
    table = np.column_stack([values[name] for name in names])
    center, spread = table.mean(axis=0), np.maximum(table.std(axis=0), 1e-12)
    weights, _ = logistic((table - center) / spread, unknown.astype(np.float64), ridge=RIDGE)
    return Combination(names, center, spread, weights)


def cross_fitted(values: Mapping[str, Floats], unknown: NDArray[np.bool_], unit: NDArray[np.int64]) -> Floats | None:
    """The combined score of each item by a combination that was fitted without its unit; None with too few units.

    Folds deal out the units of unknown and of known items in turn, so that each has some of both.
    """
    units, first = np.unique(unit, return_index=True)
    strange = unknown[first]
    folds = min(FOLDS, int(strange.sum()), int((~strange).sum()))
    if folds < 2:
        return None
    fold_of_unit = np.empty(len(units), dtype=np.int64)
    for kind in (strange, ~strange):
        fold_of_unit[kind] = np.arange(kind.sum()) % folds
    fold = fold_of_unit[np.searchsorted(units, unit)]
    combined = np.empty(len(unit))
    for number in range(folds):
        inside = fold == number
        fitted = combine({name: score[~inside] for name, score in values.items()}, unknown[~inside])
        combined[inside] = fitted({name: score[inside] for name, score in values.items()})
    return combined
