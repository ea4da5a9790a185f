"""Linear discriminant analysis with a shrunk common covariance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.base import Arrays, Fitted, OnFeatures, features_of, truth_of, unit_rows
from fieldmark.methods.covariance import SHARES, Covariance, loss_on_val
from fieldmark.runs.label_scores import Scale
from fieldmark.views import Part, View


@dataclass(frozen=True)
class Discriminant(OnFeatures):
    """Gaussian classes with means of their own and one covariance, (1 - shrinkage) S + shrinkage tr(S) / d I.

    S is the pooled covariance within labels of unit-length features. All labels count as equally likely, so that rare
    ones have a chance; a label without training items gets the lowest score.

    Args:
        shrinkage: From 0 to 1. 0 tries several and takes the one of lowest log loss on val.
    """

    shrinkage: float = 0.0

    scale: ClassVar[Scale] = "logit"
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"shrinkage": SHARES}

    def __post_init__(self) -> None:
        if not 0 <= self.shrinkage <= 1:
            raise MisuseError("lda needs a shrinkage between 0 and 1.")

    def fit(self, view: View) -> Fitted:
        features, truth = unit_rows(features_of(view.train)).astype(np.float64), truth_of(view.train)
        counts = np.bincount(truth, minlength=len(view.labels))
        sums = np.zeros((len(view.labels), features.shape[1]))
        np.add.at(sums, truth, features)
        means = sums / np.maximum(counts, 1)[:, None]
        covariance = Covariance.of(features - means[truth], len(features) - int((counts > 0).sum()))

        def discriminants(shrinkage: float) -> Arrays:
            weights, bias = covariance.discriminants(means, shrinkage)
            return {"weights": weights, "bias": bias, "learned": counts > 0}

        shrinkage = self.shrinkage or self._choose(view, discriminants)
        return Fitted(replace(self, shrinkage=shrinkage), discriminants(shrinkage))

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        logits = unit_rows(features_of(part)) @ arrays["weights"].T + arrays["bias"]
        lowest = logits.min(axis=1, keepdims=True) - 1
        return np.asarray(np.where(arrays["learned"], logits, lowest), dtype=np.float32)

    def _choose(self, view: View, discriminants: Callable[[float], Arrays]) -> float:
        if view.val is None:
            raise MisuseError("lda chooses its shrinkage on val, and there is none: pass --set shrinkage=VALUE.")
        val, truth = view.val, truth_of(view.val)
        return min(SHARES, key=lambda share: loss_on_val(self.scores(discriminants(share), val), truth))
