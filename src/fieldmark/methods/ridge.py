"""Least squares with a penalty, one label against the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.base import Arrays, Fitted, OnFeatures, features_of, truth_of, unit_rows
from fieldmark.runs.label_scores import Scale
from fieldmark.views import Part, View

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

    l2: float = 0.0

    scale: ClassVar[Scale] = "logit"
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"l2": STRENGTHS[::-1]}

    def __post_init__(self) -> None:
        if self.l2 < 0:
            raise MisuseError("ridge needs l2 of at least 0.")

    def fit(self, view: View) -> Fitted:
        features, truth = unit_rows(features_of(view.train)), truth_of(view.train)
        mean = features.mean(axis=0)
        targets = np.eye(len(view.labels), dtype=np.float64)[truth]
        frequency = targets.mean(axis=0)
        # One decomposition serves every strength.
        left, values, right = np.linalg.svd((features - mean).astype(np.float64), full_matrices=False)
        projected = left.T @ (targets - frequency)

        def weights(l2: float) -> NDArray[np.float64]:
            shrink = values / (values**2 + l2 * len(features))
            return np.asarray(right.T @ (shrink[:, None] * projected))

        l2 = self.l2 or self._choose(view, mean, frequency, weights)
        learned = {"weights": weights(l2).astype(np.float32), "mean": mean, "bias": frequency.astype(np.float32)}
        return Fitted(replace(self, l2=l2), learned)

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        centered = unit_rows(features_of(part)) - arrays["mean"]
        return np.asarray(centered @ arrays["weights"] + arrays["bias"], dtype=np.float32)

    def _choose(self, view: View, mean: NDArray[np.float32], bias: NDArray[np.float64], weights: Solver) -> float:
        if view.val is None:
            raise MisuseError("ridge chooses l2 on val, and there is none: pass --set l2=VALUE.")
        centered, truth = unit_rows(features_of(view.val)) - mean, truth_of(view.val)
        right = {l2: int(((centered @ weights(l2) + bias).argmax(axis=1) == truth).sum()) for l2 in STRENGTHS}
        return max(right, key=lambda l2: (right[l2], l2))
