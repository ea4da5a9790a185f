"""The nearest class mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Sees
from fieldmark.methods.base import Arrays, Fitted, Need, features_of, truth_of, unit_rows
from fieldmark.runs.predictions import Scale
from fieldmark.views import Part, View


@dataclass(frozen=True)
class Centroid:
    """Cosine between an item and the mean of the unit-length training features of each class.

    A class without training items gets the lowest cosine there is, -1, so that it is never preferred.
    """

    needs: ClassVar[tuple[Need, ...]] = ("features",)
    sees: ClassVar[Sees] = "item"
    scale: ClassVar[Scale] = "logit"

    def fit(self, view: View) -> Fitted:
        features, truth = unit_rows(features_of(view.train)), truth_of(view.train)
        sums = np.zeros((len(view.labels), features.shape[1]), dtype=np.float32)
        np.add.at(sums, truth, features)
        learned = np.bincount(truth, minlength=len(view.labels)) > 0
        return Fitted(self, {"centroids": unit_rows(sums), "learned": learned})

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        cosine = unit_rows(features_of(part)) @ arrays["centroids"].T
        return np.where(arrays["learned"], cosine, np.float32(-1))
