"""Maximum entropy, species by species."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.methods.base import Arrays
from fieldmark.methods.places.base import Ratios
from fieldmark.methods.places.by_species import BySpecies, Table, Weights
from fieldmark.methods.places.records import PlaceRecords, Points
from fieldmark.registry import require
from fieldmark.settings import setting
from fieldmark.stats.lasso_logistic import lasso_logistic

FEATURES = "lqh"
# Of each point of the background, against 1 of each presence.
BACKGROUND_WEIGHT = 100.0


@dataclass(frozen=True, kw_only=True)
class Maxent(BySpecies):
    """Maxent (Phillips, Anderson and Schapire 2006) as elapid states it: a penalized logistic regression of presences
    against background points on linear, quadratic and hinge features (Fithian and Hastie 2013), by a solver of our own
    (`stats.lasso_logistic`).

    Covariates are clamped to the range of the background. A model is its coefficients; raw predictions, which sum to
    one over the background, are times the number of background points P(place | species) / P(place).

    Args:
        penalty: What all penalties are multiplied by; larger is smoother.
        hinges: How many knots each covariate has.
        least: How many places a species must have for a model of its own.
    """

    penalty: float = setting(1.5, above=0)
    hinges: int = setting(10, least=3)
    least: int = 5

    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"penalty": (1.5, 0.75, 3.0)}

    def prepare(self, records: PlaceRecords) -> Arrays:
        others = records.points if records.background is None else records.background
        return {"low": others.table.min(axis=0), "high": others.table.max(axis=0)}

    def learn_species(self, shared: Arrays, present: Table, others: Table, weights: Weights) -> NDArray[Any]:
        features = self._features(_scaled(shared, np.concatenate([present, others])))
        truth = np.repeat([1.0, 0.0], [len(present), len(others)])
        cost = (1 - np.exp(-self.penalty)) / 2  # as elapid turns Maxent's multiplier into a penalty of all features
        slope = lasso_logistic(features, truth, np.where(truth > 0, 1.0, BACKGROUND_WEIGHT), cost)[:-1]
        # Raw predictions sum to one over the background.
        level = features[len(present) :] @ slope
        offset = -float(np.log(np.exp(level - level.max()).mean()) + level.max())
        return np.append(slope, offset)

    def species_ratios(self, arrays: Arrays, points: Points, models: list[NDArray[Any]]) -> Ratios:
        features = self._features(_scaled(arrays, points.table))
        slopes = np.stack([model[:-1] for model in models], axis=1)
        return np.asarray(features @ slopes + np.array([model[-1] for model in models]), dtype=np.float32)

    def _features(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        features: Any = require("elapid.features", "The method 'maxent'")
        edges = np.array([np.zeros(table.shape[1]), np.ones(table.shape[1])])
        made = features.MaxentFeatureTransformer(feature_types=FEATURES, n_hinge_features=self.hinges).fit(edges)
        return np.asarray(made.transform(table), dtype=np.float64)


def _scaled(shared: Arrays, table: Table) -> NDArray[np.float64]:
    """Covariates from 0 to 1 over the range of the background, clamped to it."""
    low, high = shared["low"].astype(np.float64), shared["high"].astype(np.float64)
    return np.asarray(np.clip((table - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0))
