"""Least squares with a penalty, one label against the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.base import ON_VAL, Arrays, Fitted, OnFeatures, choices, features_of, truth_of, unit_rows
from fieldmark.runs.label_scores import Scale
from fieldmark.settings import setting
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import class_sums, column_means, column_products, matrix_blocks, scored_rows

Solver = Callable[[float], NDArray[np.float64]]

STRENGTHS = tuple(float(10.0**power) for power in np.arange(-4, 2.5, 0.5))


@dataclass(frozen=True)
class Ridge(OnFeatures):
    """Minimizes |X W + b - Y|^2 / n + l2 |W|^2 over unit-length features centered on train, Y one column per label.

    A few photos per label are enough for it, because it has a closed form and one number to choose.

    Args:
        l2: The strength of the penalty. 0 tries several and takes the one with the most right answers on val, the
            stronger among equals.
    """

    l2: float = setting(0.0, least=0)

    second_order: ClassVar[bool] = True
    scale: ClassVar[Scale] = "logit"
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"l2": STRENGTHS[::-1]}

    def fit(self, view: View) -> Fitted:
        features, truth = features_of(view.train), truth_of(view.train)
        mean = column_means(unit_rows, features)
        frequency = np.bincount(truth, minlength=len(view.labels)) / len(truth)
        weights = _solver(features, mean, truth, frequency)
        l2 = self.l2 or self._choose(view, mean, frequency, weights)
        learned = {"weights": weights(l2).astype(np.float32), "mean": mean, "bias": frequency.astype(np.float32)}
        chosen = replace(self, l2=l2)
        return Fitted(chosen, learned, chosen=choices(self, chosen, ON_VAL))

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        weights, mean, bias = (arrays[name] for name in ("weights", "mean", "bias"))
        return scored_rows(lambda rows: (unit_rows(rows) - mean) @ weights + bias, features_of(part), len(bias))

    def _choose(self, view: View, mean: NDArray[np.float32], bias: NDArray[np.float64], weights: Solver) -> float:
        if view.val is None:
            raise MisuseError("ridge chooses l2 on val, and there is none: pass --set l2=VALUE.")
        features, truth = features_of(view.val), truth_of(view.val)

        def right_answers(l2: float) -> int:
            found, right = weights(l2), 0
            for block in matrix_blocks(len(features), max(found.shape)):
                answers = ((unit_rows(features[block]) - mean) @ found + bias).argmax(axis=1)
                right += int((answers == truth[block]).sum())
            return right

        right = {l2: right_answers(l2) for l2 in STRENGTHS}
        return max(right, key=lambda l2: (right[l2], l2))


def _solver(
    features: NDArray[np.float32],
    mean: NDArray[np.float32],
    truth: NDArray[np.int32],
    frequency: NDArray[np.float64],
) -> Solver:
    """The weights for any strength; one decomposition serves all.

    With more items than features it is that of X'X, whose products are added up in double precision, block by block.
    X'X squares what the values of X differ by; the penalty keeps that from mattering: no centered row is longer than
    two, so that with l2 of 1e-4, the smallest that is tried, what is divided by lies within a factor of 40,001.
    """
    items, width = features.shape

    def centered(rows: NDArray[np.float32]) -> NDArray[np.float64]:
        return (unit_rows(rows) - mean).astype(np.float64)

    if items <= width:
        targets = np.zeros((items, len(frequency)))
        targets[np.arange(items), truth] = 1
        left, values, right = np.linalg.svd(centered(features), full_matrices=False)
        by_axis = left.T @ (targets - frequency)
        return lambda l2: np.asarray(right.T @ ((values / (values**2 + l2 * items))[:, None] * by_axis))
    blocks = (centered(features[block]) for block in matrix_blocks(items, width))
    squares, axes = np.linalg.eigh(column_products(blocks, width))
    sums = class_sums(centered, features, truth, len(frequency))
    # X'(Y - frequency) along the axes, with Y never written down; columns of X sum to zero up to rounding only.
    by_axis = axes.T @ (sums.T - np.outer(sums.sum(axis=0), frequency))
    return lambda l2: np.asarray(axes @ (by_axis / (np.maximum(squares, 0) + l2 * items)[:, None]))
