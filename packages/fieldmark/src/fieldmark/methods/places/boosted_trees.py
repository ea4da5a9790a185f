"""Boosted trees with a down-weighted background, species by species."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.methods.base import Arrays
from fieldmark.methods.places.base import Ratios
from fieldmark.methods.places.by_species import BySpecies, Table, Weights
from fieldmark.methods.places.records import PlaceRecords, Points
from fieldmark.registry import require
from fieldmark.settings import setting

# The weight of all presences together, so that penalties mean the same for common and rare species.
TOTAL = 100.0


@dataclass(frozen=True, kw_only=True)
class DownWeightedBoosting(BySpecies):
    """Boosted regression trees for each species, the background weighing as much as its places (Valavi et al. 2022).

    Elith, Leathwick and Hastie, "A working guide to boosted regression trees" (2008); grown by LightGBM.

    Args:
        rounds: How many trees.
        leaves: Leaves of a tree.
        rate: The learning rate.
        bag: The share of points that each tree is grown on.
        weight: How much weight a leaf has at least, of 200 in all; for surveys of the places.
    """

    rounds: int = setting(300, least=1)
    leaves: int = setting(4, least=2)
    rate: float = setting(0.02, above=0)
    bag: float = setting(0.75, above=0, most=1)
    weight: float = setting(1.0, least=0)

    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"rounds": (300, 1000, 100), "leaves": (4, 8, 2)}

    def prepare(self, records: PlaceRecords) -> Arrays:
        return {}

    def learn_species(self, shared: Arrays, present: Table, others: Table, weights: Weights) -> NDArray[Any]:
        lightgbm: Any = require("lightgbm", "The method 'down-weighted-boosting'")
        truth = np.concatenate([np.ones(len(present)), np.zeros(len(others))])
        if len(np.unique(weights)) > 1:
            weights = weights * TOTAL / weights[: len(present)].sum()
        data = lightgbm.Dataset(np.concatenate([present, others]), truth, weight=weights)
        settings = {
            "objective": "binary",
            "learning_rate": self.rate,
            "num_leaves": self.leaves,
            "bagging_fraction": self.bag,
            "bagging_freq": 1,
            "min_data_in_leaf": 3,
            "min_sum_hessian_in_leaf": self.weight / 4,
            "seed": self.seed,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": 1,
            "verbosity": -1,
        }
        booster = lightgbm.train(settings, data, self.rounds)
        return np.frombuffer(booster.model_to_string().encode(), dtype=np.uint8)

    def species_ratios(self, arrays: Arrays, points: Points, models: list[NDArray[Any]]) -> Ratios:
        columns = [
            _booster(np.ascontiguousarray(model, dtype=np.uint8).tobytes()).predict(
                points.table, raw_score=True, num_threads=1
            )
            for model in models
        ]
        return np.asarray(np.stack(columns, axis=1), dtype=np.float32)


@lru_cache(maxsize=512)
def _booster(text: bytes) -> Any:
    lightgbm: Any = require("lightgbm", "The method 'down-weighted-boosting'")
    return lightgbm.Booster(model_str=text.decode())
