"""Logistic regression on splines of the covariates, species by species."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fieldmark.methods.base import Arrays
from fieldmark.methods.places.base import Ratios
from fieldmark.methods.places.by_species import BySpecies, Table, Weights
from fieldmark.methods.places.records import PlaceRecords, Points
from fieldmark.settings import setting

STEPS, TOLERANCE = 50, 1e-8
# The weight of all presences together, so that penalties mean the same for common and rare species.
TOTAL = 100.0


@dataclass(frozen=True, kw_only=True)
class SplineLogistic(BySpecies):
    """An additive model (GAM): the log-odds are a sum of natural cubic splines, one for each covariate.

    Natural splines (Hastie, Tibshirani and Friedman, section 5.2.1) go on as straight lines beyond the outer knots,
    which stand at quantiles of the background. Columns are standardized; bends are penalized by `penalty`, slopes
    by a tenth of it. The background weighs as much as the places of a species.

    Args:
        knots: How many knots each covariate has.
        penalty: Of the sum of squared coefficients.
    """

    knots: int = setting(5, least=3)
    penalty: float = setting(1.0, above=0)

    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {"penalty": (1.0, 10.0, 0.1)}

    def prepare(self, records: PlaceRecords) -> Arrays:
        table = (records.points if records.background is None else records.background).table.astype(np.float64)
        knots = np.quantile(table, np.linspace(0.02, 0.98, self.knots), axis=0).T  # one row per covariate
        shared = {"knots": knots, "low": table.min(axis=0), "high": table.max(axis=0)}
        basis, slopes = _basis(shared, table)
        spread = basis.std(axis=0)
        return {
            **shared,
            "center": basis.mean(axis=0),
            "spread": np.where(spread > 1e-9, spread, np.inf),
            "penalties": np.where(slopes, 0.1, 1.0) * self.penalty,
        }

    def learn_species(self, shared: Arrays, present: Table, others: Table, weights: Weights) -> NDArray[Any]:
        columns = _standardized(shared, np.concatenate([present, others]))
        truth = np.concatenate([np.ones(len(present)), np.zeros(len(others))])
        if len(np.unique(weights)) > 1:
            weights = weights * TOTAL / weights[: len(present)].sum()
        return penalized_logistic(columns, truth, weights, shared["penalties"])

    def species_ratios(self, arrays: Arrays, points: Points, models: list[NDArray[Any]]) -> Ratios:
        columns = _standardized(arrays, points.table)
        return np.asarray(columns @ np.stack(models, axis=1)[1:] + np.array([m[0] for m in models]), dtype=np.float32)


def penalized_logistic(
    columns: NDArray[np.float64], truth: NDArray[np.float64], weights: Weights, penalties: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Coefficients of lowest weighted log loss plus half the penalized sum of squares, the intercept first and free.

    Newton's method with halved steps; the loss is convex.
    """
    design = np.column_stack([np.ones(len(columns)), columns])
    ridge = np.concatenate([[1e-9], penalties])
    coefficients = np.zeros(design.shape[1])

    def loss(at: NDArray[np.float64]) -> float:
        level = design @ at
        return float(weights @ (np.logaddexp(0, level) - truth * level) + 0.5 * ridge @ at**2)

    now = loss(coefficients)
    for _ in range(STEPS):
        chance = expit(design @ coefficients)
        slope = design.T @ (weights * (chance - truth)) + ridge * coefficients
        curve = (design * (weights * np.maximum(chance * (1 - chance), 1e-6))[:, None]).T @ design + np.diag(ridge)
        step = np.linalg.solve(curve, slope)
        scale = 1.0
        while loss(coefficients - scale * step) > now and scale > 1e-6:
            scale /= 2
        coefficients = coefficients - scale * step
        before, now = now, loss(coefficients)
        if before - now < TOLERANCE * (1 + abs(now)):
            break
    return coefficients


def _standardized(shared: Arrays, table: Table) -> NDArray[np.float64]:
    clamped = np.clip(table.astype(np.float64), shared["low"], shared["high"])
    return np.asarray((_basis(shared, clamped)[0] - shared["center"]) / shared["spread"])


def _basis(shared: Arrays, table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The value of each covariate and its truncated cubes, and which columns are plain values."""
    columns, slopes = [], []
    for number, row in enumerate(shared["knots"]):
        value, knots = table[:, number], np.unique(row)
        columns.append(value)
        slopes.append(True)
        if len(knots) < 3:
            continue
        scale = (knots[-1] - knots[0]) ** 2
        last, before = knots[-1], knots[-2]

        def cubes(knot: float, value: NDArray[np.float64] = value, last: float = last) -> NDArray[np.float64]:
            return np.asarray((np.maximum(value - knot, 0) ** 3 - np.maximum(value - last, 0) ** 3) / (last - knot))

        for knot in knots[:-2]:
            columns.append((cubes(knot) - cubes(before)) / scale)
            slopes.append(False)
    return np.column_stack(columns), np.array(slopes, dtype=np.bool_)
