"""Linear discriminant analysis with a shrunk common covariance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.base import ON_VAL, Arrays, Fitted, OnFeatures, choices, features_of, truth_of, unit_rows
from fieldmark.methods.covariance import SHARES, Covariance, loss_on_val
from fieldmark.runs.label_scores import Scale
from fieldmark.settings import setting
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import class_sums, scored_rows


@dataclass(frozen=True)
class Discriminant(OnFeatures):
    """Gaussian classes with means of their own and one covariance, (1 - shrinkage) S + shrinkage tr(S) / d I.

    S is the pooled covariance within labels of unit-length features. All labels count as equally likely, so that rare
    ones have a chance; a label without training items gets the lowest score.

    Args:
        shrinkage: From 0 to 1. 0 tries several and takes the one of lowest log loss on val.
    """

    shrinkage: float = setting(0.0, least=0, most=1)

    second_order: ClassVar[bool] = True
    scale: ClassVar[Scale] = "logit"
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"shrinkage": SHARES}

    def fit(self, view: View) -> Fitted:
        features, truth = features_of(view.train), truth_of(view.train)
        counts = np.bincount(truth, minlength=len(view.labels))
        means = class_sums(unit_rows, features, truth, len(view.labels)) / np.maximum(counts, 1)[:, None]
        covariance = Covariance.of(
            lambda block: unit_rows(features[block]) - means[truth[block]],
            features.shape,
            len(features) - int((counts > 0).sum()),
        )

        def discriminants(shrinkage: float) -> Arrays:
            weights, bias = covariance.discriminants(means, shrinkage)
            return {"weights": weights, "bias": bias, "learned": counts > 0}

        shrinkage = self.shrinkage or self._choose(view, discriminants)
        chosen = replace(self, shrinkage=shrinkage)
        return Fitted(chosen, discriminants(shrinkage), chosen=choices(self, chosen, ON_VAL))

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        weights, bias, learned = (arrays[name] for name in ("weights", "bias", "learned"))

        def logits(rows: NDArray[np.float32]) -> NDArray[np.float32]:
            all_labels = unit_rows(rows) @ weights.T + bias
            return np.where(learned, all_labels, all_labels.min(axis=1, keepdims=True) - 1)

        return scored_rows(logits, features_of(part), len(weights))

    def _choose(self, view: View, discriminants: Callable[[float], Arrays]) -> float:
        if view.val is None:
            raise MisuseError("lda chooses its shrinkage on val, and there is none: pass --set shrinkage=VALUE.")
        val, truth = view.val, truth_of(view.val)
        return min(SHARES, key=lambda share: loss_on_val(self.scores(discriminants(share), val), truth))
