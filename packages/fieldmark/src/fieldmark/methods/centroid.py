"""The nearest class mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.methods.base import (
    LENGTHS,
    Arrays,
    Fitted,
    OnFeatures,
    features_of,
    truth_of,
    unit_rows,
    with_lengths,
)
from fieldmark.runs.label_scores import Scale
from fieldmark.settings import setting
from fieldmark.views.parts import Part, View
from fieldmark.work.large_arrays import class_sums, scored_rows


@dataclass(frozen=True)
class Centroid(OnFeatures):
    """Cosine between an item and the mean of the training features of each class.

    Args:
        lengths: "unit" scales training features to length one before the mean is taken, "given" takes them as they
            come.
        absent: What a class without training items scores: "never", the lowest cosine there is, so that it is never
            preferred; or "zero", the cosine of a centroid of zeros, which the organizers of FungiTastic let it have and
            which wins where all other cosines are negative.
    """

    lengths: str = setting("unit", choices=LENGTHS)
    absent: str = setting("never", choices=("never", "zero"))

    second_order: ClassVar[bool] = True
    scale: ClassVar[Scale] = "logit"

    def fit(self, view: View) -> Fitted:
        features, truth = features_of(view.train), truth_of(view.train)
        sums = class_sums(
            lambda rows: with_lengths(rows, self.lengths), features, truth, len(view.labels), dtype=np.float32
        )
        learned = np.bincount(truth, minlength=len(view.labels)) > 0
        return Fitted(self, {"centroids": unit_rows(sums), "learned": learned})

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        centroids, learned = arrays["centroids"], arrays["learned"]
        lowest = np.float32(-1 if self.absent == "never" else 0)

        def cosines(rows: NDArray[np.float32]) -> NDArray[np.float32]:
            return np.where(learned, unit_rows(rows) @ centroids.T, lowest)

        return scored_rows(cosines, features_of(part), len(centroids))
