"""A source of a prior as another package would write it: a fitted model that keeps its arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import polars as pl

from fieldmark.runs.label_scores import log_softmax
from fieldmark.steps.priors.base import Logs, PriorSource
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part


@dataclass(frozen=True)
class Latitudes(PriorSource):
    """A normal distribution of latitudes for each label."""

    kind: ClassVar[str] = "latitudes"

    def fit(self, part: Part, taxonomy: Taxonomy, *, several: bool) -> Self:
        assert part.truth is not None
        lat, n = part.items["lat"].to_numpy(), len(taxonomy.labels)
        own = [lat[part.truth == code] for code in range(n)]
        counts = np.array([len(values) + 1.0 for values in own])
        return self.with_arrays(
            {
                "mean": np.array([values.mean() if len(values) else 0.0 for values in own]),
                "log_prior": np.log(counts / counts.sum()),
            }
        )

    @property
    def log_prior(self) -> Logs:
        return np.asarray(self.arrays["log_prior"])

    def log_ratio(self, items: pl.DataFrame) -> Logs:
        distance = (items["lat"].to_numpy()[:, None] - self.arrays["mean"]) / 8
        return log_softmax(self.log_prior - distance**2 / 2) - self.log_prior
