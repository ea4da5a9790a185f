"""Candidates from the neighborhood and from a forest, put in order by boosted trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from fieldmark.methods.base import Arrays
from fieldmark.methods.places.base import OnPlaces, Ratios, log_odds
from fieldmark.methods.places.forest import RandomForest
from fieldmark.methods.places.neighbors import NeighborsInSpace
from fieldmark.methods.places.records import PlaceRecords, Points
from fieldmark.registry import require
from fieldmark.settings import setting
from fieldmark.splits.grids import square_blocks

FOLDS = 3
# Records are held out by squares of this side; those of a region smaller than a few squares, by smaller ones.
SQUARE_M, SQUARES = 20_000.0, 12
MOST_EXAMPLES = 20_000
STAGES = ("near", "forest")


@dataclass(frozen=True, kw_only=True)
class Boosting(OnPlaces):
    """Re-ranks the candidates of `neighbors` and `random-forest` with gradient boosted trees (LightGBM).

    The trees see a pair of place and species: what the two say about it, how common the species is, and how far each
    covariate lies from what the species is usually found at. They learn from places whose square was left out when
    the first stage was fitted, so that they see it as wrong as it will be. Species that are no candidates keep what
    the forest gives them, and the candidates share what they had together.

    Args:
        candidates: How many species of each of the two are put in order.
        trees: How many trees the forest of the first stage has.
        rounds: How many trees are boosted.
        leaves: Leaves of a boosted tree.
        rate: The learning rate.
    """

    candidates: int = setting(60, least=1)
    trees: int = setting(60, least=1)
    rounds: int = setting(150, least=1)
    leaves: int = setting(15, least=2)
    rate: float = setting(0.05, above=0)

    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"rounds": (150, 50, 400), "leaves": (15, 31, 7)}

    @property
    def _stages(self) -> dict[str, OnPlaces]:
        common: dict[str, Any] = {"inputs": self.inputs, "several": self.several, "seed": self.seed}
        common["background"] = "target-group"
        return {
            "near": NeighborsInSpace(**common),
            "forest": RandomForest(sampling="bootstrap", trees=self.trees, **common),
        }

    def learn(self, records: PlaceRecords) -> tuple[Boosting, Arrays]:
        lightgbm: Any = require("lightgbm", "The method 'boosting'")
        records = replace(records, against_background=False)
        envelope = _envelope(records)
        folds = _folds(records, self.seed)
        columns, truths = [], []
        for fold in range(FOLDS):
            held = np.flatnonzero(folds == fold)
            rest = _without(records, folds == fold)
            if not len(held) or not len(rest.row):
                continue
            table, truth = self._examples(records, rest, held, envelope)
            columns.append(table)
            truths.append(truth)
        data = lightgbm.Dataset(np.concatenate(columns), np.concatenate(truths).astype(np.float64))
        settings = {
            "objective": "binary",
            "learning_rate": self.rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": 20,
            "seed": self.seed,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": 1,
            "verbosity": -1,
        }
        booster = lightgbm.train(settings, data, self.rounds)
        text = np.frombuffer(booster.model_to_string().encode(), dtype=np.uint8)
        return self, {**self._first_stage(records), **envelope, "booster": text}

    def log_ratios(self, arrays: Arrays, points: Points) -> Ratios:
        stages = self._stage_ratios(arrays, points)
        item, code = self._candidates(stages)
        table = _pair_table(arrays, stages, points, item, code)
        raw = _booster(arrays["booster"].tobytes()).predict(table, raw_score=True, num_threads=1)
        log_prior = arrays["log_prior"].astype(np.float64)
        ratios = stages["forest"].astype(np.float64)
        if arrays["survey"][0]:
            ratios[item, code] = raw - log_odds(log_prior)[code]
            return ratios.astype(np.float32)
        logs = log_prior + ratios
        size = np.bincount(item, minlength=len(points))
        edges = np.concatenate([[0], np.cumsum(size)])
        for row in range(len(points)):
            own = slice(edges[row], edges[row + 1])
            mass = logsumexp(logs[row, code[own]])
            logs[row, code[own]] = raw[own] - logsumexp(raw[own]) + mass
        return np.asarray(logs - log_prior, dtype=np.float32)

    def _first_stage(self, records: PlaceRecords) -> Arrays:
        arrays: Arrays = {}
        for name, stage in self._stages.items():
            arrays |= {f"{name}.{key}": one for key, one in stage.learn(records)[1].items()}
        return arrays

    def _stage_ratios(self, arrays: Arrays, points: Points) -> dict[str, Ratios]:
        common = {name: arrays[name] for name in ("log_prior", "survey")}
        found = {}
        for name, stage in self._stages.items():
            prefix = f"{name}."
            own = {key.removeprefix(prefix): one for key, one in arrays.items() if key.startswith(prefix)}
            found[name] = stage.log_ratios({**own, **common}, points)
        return found

    def _candidates(self, stages: Mapping[str, Ratios]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of place and species, in order: the best of each stage by ratio."""
        n_labels = len(stages["forest"].T)
        chosen = np.zeros((len(stages["forest"]), n_labels), dtype=np.bool_)
        number = min(self.candidates, n_labels)
        for ratios in stages.values():
            best = np.argpartition(-ratios, number - 1, axis=1)[:, :number]
            np.put_along_axis(chosen, best, True, axis=1)
        item, code = np.divmod(np.flatnonzero(chosen), n_labels)
        return item, code

    def _examples(
        self, records: PlaceRecords, rest: PlaceRecords, held: NDArray[np.int64], envelope: Arrays
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Pairs of held-out places and candidates that a first stage without them names, and which were found."""
        arrays: Arrays = {
            **self._first_stage(rest),
            **envelope,
            "log_prior": rest.log_prior.astype(np.float32),
            "survey": np.array([records.is_survey]),
        }
        places = np.random.default_rng(self.seed).permutation(held)[: MOST_EXAMPLES // FOLDS]
        found = np.unique(records.row * records.n_labels + records.code)
        columns, truths = [], []
        size = max(2_000_000 // records.n_labels, 1)
        for start in range(0, len(places), size):
            own = places[start : start + size]
            stages = self._stage_ratios(arrays, records.points.take(own))
            item, code = self._candidates(stages)
            columns.append(_pair_table(arrays, stages, records.points.take(own), item, code))
            truths.append(np.isin(own[item] * records.n_labels + code, found))
        return np.concatenate(columns), np.concatenate(truths)


def _pair_table(
    arrays: Arrays, stages: Mapping[str, Ratios], points: Points, item: NDArray[np.int64], code: NDArray[np.int64]
) -> NDArray[np.float32]:
    """What the trees see of pairs of place and species."""
    prior = arrays["log_prior"][code]
    away = np.abs(points.table[item] - arrays["envelope.mean"][code]) / arrays["envelope.spread"][code]
    columns = [prior, *(stages[name][item, code] for name in STAGES)]
    columns += [stages[name][item, code] - stages[name].max(axis=1)[item] for name in STAGES]
    if away.shape[1]:
        columns += [away.mean(axis=1), away.max(axis=1)]
    return np.column_stack([*columns, away]).astype(np.float32)


def _envelope(records: PlaceRecords) -> Arrays:
    """Mean and spread of the covariates of each species, drawn to those of all by as much as five places weigh."""
    table, counts = records.points.table.astype(np.float64), records.counts
    overall, spread = table.mean(axis=0), np.maximum(table.std(axis=0), 1e-6)
    sums = np.zeros((records.n_labels, table.shape[1]))
    squares = np.zeros_like(sums)
    np.add.at(sums, records.code, table[records.row])
    np.add.at(squares, records.code, table[records.row] ** 2)
    weight = counts[:, None] + 5.0
    mean = (sums + 5 * overall) / weight
    variance = np.maximum((squares + 5 * (spread**2 + overall**2)) / weight - mean**2, 1e-3 * spread**2)
    return {"envelope.mean": mean.astype(np.float32), "envelope.spread": np.sqrt(variance).astype(np.float32)}


def _folds(records: PlaceRecords, seed: int) -> NDArray[np.int64]:
    """The fold of each place; those of one square go together."""
    points, rng = records.points, np.random.default_rng(seed)
    there = np.isfinite(points.lat) & np.isfinite(points.lon)
    if not there.any():
        return rng.integers(0, FOLDS, len(points))
    height_m = float(np.ptp(points.lat[there])) * 111_320
    side = min(SQUARE_M, max(height_m / SQUARES, 1.0))
    row, column = square_blocks(np.nan_to_num(points.lat), np.nan_to_num(points.lon), side)
    squares = np.unique(np.column_stack([row, column]), axis=0, return_inverse=True)[1].ravel()
    return np.asarray(rng.integers(0, FOLDS, int(squares.max()) + 1)[squares])


def _without(records: PlaceRecords, left_out: NDArray[np.bool_]) -> PlaceRecords:
    """The records of the other places."""
    kept = np.flatnonzero(~left_out)
    number = np.cumsum(~left_out) - 1
    own = ~left_out[records.row]
    return replace(
        records,
        points=records.points.take(kept),
        row=number[records.row[own]],
        code=records.code[own],
        asked=None if records.asked is None else records.asked[kept],
    )


@lru_cache(maxsize=8)
def _booster(text: bytes) -> Any:
    lightgbm: Any = require("lightgbm", "The method 'boosting'")
    return lightgbm.Booster(model_str=text.decode())
