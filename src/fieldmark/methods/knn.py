"""The nearest training items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Sees
from fieldmark.errors import MisuseError
from fieldmark.methods.base import Arrays, Fitted, Need, features_of, truth_of, unit_rows
from fieldmark.runs.predictions import Scale
from fieldmark.views import Part, View

BLOCK_ITEMS = 1024


@dataclass(frozen=True)
class NearestNeighbors:
    """A vote of the k training items of highest cosine, each with weight exp(cosine / temperature).

    The weighting follows Wu et al., "Unsupervised feature learning via non-parametric instance discrimination"
    (2018). A share `floor` of the vote is spread evenly over all labels, so that none is impossible.

    Args:
        k: How many neighbors vote.
        temperature: How much more the nearer ones count.
        floor: The share that is spread evenly.
    """

    k: int = 10
    temperature: float = 0.07
    floor: float = 0.01

    needs: ClassVar[tuple[Need, ...]] = ("features",)
    sees: ClassVar[Sees] = "item"
    scale: ClassVar[Scale] = "log_probability"

    def __post_init__(self) -> None:
        if self.k < 1 or self.temperature <= 0 or not 0 < self.floor < 1:
            raise MisuseError("knn needs k of at least 1, a temperature above 0 and a floor between 0 and 1.")

    def fit(self, view: View) -> Fitted:
        stored = unit_rows(features_of(view.train)).astype(np.float16)
        return Fitted(
            self,
            {"features": stored, "labels": truth_of(view.train), "n_labels": np.array(len(view.labels))},
        )

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        known, labels, n_labels = arrays["features"].astype(np.float32), arrays["labels"], int(arrays["n_labels"])
        asked = unit_rows(features_of(part))
        k = min(self.k, len(known))
        votes = np.zeros((len(asked), n_labels), dtype=np.float32)
        for start in range(0, len(asked), BLOCK_ITEMS):
            cosine = asked[start : start + BLOCK_ITEMS] @ known.T
            nearest = np.argpartition(-cosine, k - 1, axis=1)[:, :k]
            near = np.take_along_axis(cosine, nearest, axis=1)
            weight = np.exp((near - near.max(axis=1, keepdims=True)) / self.temperature)
            weight /= weight.sum(axis=1, keepdims=True)
            rows = np.arange(start, start + len(cosine))[:, None]
            np.add.at(votes, (rows, labels[nearest]), weight)
        return np.asarray(np.log((1 - self.floor) * votes + self.floor / n_labels))
