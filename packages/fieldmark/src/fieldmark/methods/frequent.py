"""The baseline that never looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.methods.base import Arrays, Fitted, Method, lists_labels, targets_of, truth_of
from fieldmark.runs.code_sets import offsets_of
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.runs.predictions import Predictions
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part, View

# Where there are more labels than this, only the most frequent are listed: items x labels is never held.
LISTED = 1000


@dataclass(frozen=True)
class Frequent(Method):
    """Answers every item with the training frequencies (add-one smoothed): what any method must beat."""

    scale: ClassVar[Scale] = "log_probability"

    def fit(self, view: View) -> Fitted:
        # Lists of species count each of them; elsewhere the label that stands for an item.
        targets = targets_of(view.train)
        codes = targets.code if lists_labels(view.train) else truth_of(view.train)
        counts = np.bincount(codes, minlength=len(view.labels)) + 1.0
        return Fitted(self, {"log_frequency": np.log(counts / counts.sum()).astype(np.float32)})

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        return np.tile(arrays["log_frequency"], (len(part), 1))

    def answer(self, arrays: Arrays, part: Part, labels: Labels) -> Predictions:
        if len(labels) <= LISTED:
            return super().answer(arrays, part, labels)
        log_frequency = arrays["log_frequency"]
        best = np.argsort(-log_frequency, kind="stable")[:LISTED].astype(np.int32)
        codes, scores = np.tile(best, len(part)), np.tile(log_frequency[best], len(part))
        offsets = offsets_of(np.full(len(part), LISTED))
        return LabelScores(part.item_ids, labels, scores, self.scale, codes, offsets)
