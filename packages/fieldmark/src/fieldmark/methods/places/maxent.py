"""Maximum entropy, species by species."""

from __future__ import annotations

import warnings
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

FEATURES = "lqh"


@dataclass(frozen=True, kw_only=True)
class Maxent(BySpecies):
    """Maxent (Phillips, Anderson and Schapire 2006) as elapid fits it: a penalized logistic regression of presences
    against background points on linear, quadratic and hinge features (Fithian and Hastie 2013).

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
        elapid: Any = require("elapid", "The method 'maxent'")
        table = _scaled(shared, np.concatenate([present, others]))
        # Every covariate reaches from 0 to 1, so that all species share features and coefficients are all to be kept.
        table = np.concatenate([table, np.zeros((1, table.shape[1])), np.ones((1, table.shape[1]))])
        truth = np.concatenate([np.ones(len(present)), np.zeros(len(others) + 2)])
        model = elapid.MaxentModel(
            feature_types=FEATURES,
            n_hinge_features=self.hinges,
            beta_multiplier=self.penalty,
            transform="raw",
            n_cpus=1,
            use_sklearn=True,
            random_state=self.seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(table, truth)
        slope = np.asarray(model.beta_scores_, dtype=np.float64)
        features = self._features(_scaled(shared, others))
        # Raw predictions sum to one over the background.
        level = features @ slope
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
