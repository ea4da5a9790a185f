"""The baseline that never looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.methods.base import Arrays, Fitted, Method, truth_of
from fieldmark.runs.label_scores import Scale
from fieldmark.views import Part, View


@dataclass(frozen=True)
class Frequent(Method):
    """Answers every item with the training frequencies (add-one smoothed): what any method must beat."""

    scale: ClassVar[Scale] = "log_probability"

    def fit(self, view: View) -> Fitted:
        counts = np.bincount(truth_of(view.train), minlength=len(view.labels)) + 1.0
        return Fitted(self, {"log_frequency": np.log(counts / counts.sum()).astype(np.float32)})

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        return np.tile(arrays["log_frequency"], (len(part), 1))
