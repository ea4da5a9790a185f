"""Ranks of models over many cells: the mean score over benchmarks, and the ranks that a model may really have.

Let d_c be the difference of two models in cell c, with the variance v_c over its units (from pseudo-values, paired),
and D the mean of d_c over C cells. Two questions have two answers:

- *On these cells*, with other units: Var D = mean(v_c) / C, with Satterthwaite's degrees of freedom.
- *On other cells like them*, with other units: cells are a sample too, and the spread of d_c over cells holds what
  units and cells add together. Var D = max(mean(v_c), s^2) / C, where s^2 is the variance of d_c over cells; C - 1
  degrees of freedom. The spread between few cells may come out small by chance, never below what the units alone say.

P-values of all pairs are adjusted by Holm's method; a rank interval counts the models that are better or worse beyond
doubt after that, and therefore holds for all models at once, as in `comparison.compare`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from fieldmark.stats.comparison import ROUNDING, Standing, holm

Values = NDArray[np.float64]


@dataclass(frozen=True)
class CellScores:
    """The scores of all models in one cell, higher being better.

    Args:
        values: One per model.
        pseudo: One row per model, one column per unit; None for a metric that has no values by unit.
        rests_on: On how many units the metric rests.
    """

    values: Values
    pseudo: Values | None
    rests_on: float = math.inf


@dataclass(frozen=True)
class CellRanks:
    """Where models stand over all cells.

    Args:
        means: The mean score of each model over cells.
        lows, highs: The interval of each mean, on these cells with other units; NaN where the units cannot tell.
        mean_ranks: The mean over cells of a model's rank in the cell; equal scores share theirs.
        standings: The place by mean score, and the ranks a model may have.
        tiers: The group of each model, from 1: those that cannot be told apart from the best; then from the best of the
            rest; and so on.
    """

    means: Values
    lows: Values
    highs: Values
    mean_ranks: Values
    standings: tuple[Standing, ...]
    tiers: NDArray[np.int64]


def rank_over_cells(cells: Sequence[CellScores], *, other_cells: bool = True, level: float = 0.95) -> CellRanks:
    """Ranks models by their mean over cells.

    Args:
        cells: At least one; all with the same models in the same order, and no unit in two of them: cells that share
            their units are averaged first, scores and pseudo-values alike.
        other_cells: Whether ranks are meant on other cells like these; otherwise on these cells alone. One cell by
            itself tells nothing of others.
        level: The nominal coverage of the intervals, and of all rank intervals together.

    >>> rng = np.random.default_rng(0)
    >>> cells = []
    >>> for _ in range(8):
    ...     luck = rng.random(200)
    ...     hits = np.array([luck < skill for skill in (0.8, 0.5, 0.5)], dtype=float)
    ...     cells.append(CellScores(hits.mean(axis=1), hits))
    >>> ranked = rank_over_cells(cells)
    >>> [(one.rank_low, one.rank_high) for one in ranked.standings], ranked.tiers.tolist()
    ([(1, 1), (2, 3), (2, 3)], [1, 2, 2])
    """
    from scipy.stats import rankdata  # takes long to import

    values = np.stack([cell.values for cell in cells])
    n_cells, n_models = values.shape
    own, paired, freedom = _unit_variances(cells)
    means = values.mean(axis=0)
    pair_freedom: Values | float
    if other_cells and n_cells == 1:
        variance, pair_freedom = np.full((n_models, n_models), np.nan), 1.0
    elif other_cells:
        between = _spread_of_differences(np.cov(values, rowvar=False, ddof=1).reshape(n_models, n_models))
        variance = np.maximum(np.nan_to_num(paired, nan=0.0), between) / n_cells
        pair_freedom = n_cells - 1.0
    else:
        variance, pair_freedom = paired / n_cells, freedom
    apart = means[:, None] - means[None, :]
    surely = _separated(apart, variance, pair_freedom, n_cells, 1 - level, np.abs(values).max(initial=0.0))
    half = stdtrit(_diagonal_freedom(cells), 0.5 + level / 2) * np.sqrt(own / n_cells)
    return CellRanks(
        means=means,
        lows=means - half,
        highs=means + half,
        mean_ranks=np.stack([rankdata(-row, method="average") for row in values]).mean(axis=0),
        standings=tuple(
            Standing(
                run=model,
                place=1 + int((means > means[model]).sum()),
                rank_low=1 + int(surely[:, model].sum()),
                rank_high=n_models - int(surely[model].sum()),
            )
            for model in range(n_models)
        ),
        tiers=_tiers(means, surely),
    )


def _unit_variances(cells: Sequence[CellScores]) -> tuple[Values, Values, Values]:
    """The mean over cells of the variance over units: of each model, of each pair; and the freedom of the latter.

    NaN where a cell has no values by unit.
    """
    n_models = len(cells[0].values)
    total, squares = np.zeros((n_models, n_models)), np.zeros((n_models, n_models))
    own = np.zeros(n_models)
    for cell in cells:
        covariance = _covariance(cell)
        own = own + np.diagonal(covariance)
        spread = _spread_of_differences(covariance)
        total = total + spread
        squares = squares + spread**2 / _freedom(cell)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.where(squares > 0, total**2 / squares, 1.0)
    return own / len(cells), total / len(cells), np.maximum(freedom, 1.0)


def _diagonal_freedom(cells: Sequence[CellScores]) -> Values:
    """Satterthwaite's degrees of freedom of each model's own mean."""
    each = np.stack([np.diagonal(_covariance(cell)) for cell in cells])
    squares = (each**2 / np.array([_freedom(cell) for cell in cells])[:, None]).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(squares > 0, np.maximum(each.sum(axis=0) ** 2 / squares, 1.0), 1.0))


def _covariance(cell: CellScores) -> Values:
    """The covariances of the models' scores over units; NaN where a score has no values by unit."""
    n_models = len(cell.values)
    if cell.pseudo is None or cell.pseudo.shape[1] < 2:
        return np.full((n_models, n_models), np.nan)
    units = cell.pseudo.shape[1]
    return np.asarray(np.cov(cell.pseudo, ddof=1).reshape(n_models, n_models) / units)


def _freedom(cell: CellScores) -> float:
    units = 2 if cell.pseudo is None else cell.pseudo.shape[1]
    return max(min(units, cell.rests_on) - 1.0, 1.0)


def _spread_of_differences(covariance: Values) -> Values:
    own = np.diagonal(covariance)
    return np.asarray(np.maximum(own[:, None] + own[None, :] - 2 * covariance, 0.0))


def _separated(
    apart: Values, variance: Values, freedom: Values | float, n_cells: int, alpha: float, scale: float
) -> NDArray[np.bool_]:
    """Whether the model of the row is better than that of the column beyond doubt, after Holm's adjustment."""
    n_models = len(apart)
    first, second = np.triu_indices(n_models, k=1)
    value, spread = apart[first, second], variance[first, second]
    degrees = freedom[first, second] if isinstance(freedom, np.ndarray) else np.full(len(value), freedom)
    rounding = (ROUNDING * scale) ** 2
    p_values = np.ones(len(value))
    told = spread > rounding  # NaN is not: nothing is known of the spread
    p_values[told] = 2 * stdtr(degrees[told], -np.abs(value[told]) / np.sqrt(spread[told]))
    # Every cell gives the same difference: the sign test over cells.
    same = (spread <= rounding) & (value**2 > rounding)
    p_values[same] = 2.0 ** (1 - n_cells)
    better = np.zeros((n_models, n_models), dtype=np.bool_)
    sure = holm(p_values) < alpha
    better[first, second] = sure & (value > 0)
    better[second, first] = sure & (value < 0)
    return better


def _tiers(means: Values, surely: NDArray[np.bool_]) -> NDArray[np.int64]:
    tiers = np.zeros(len(means), dtype=np.int64)
    left = [int(model) for model in np.argsort(-means, kind="stable")]
    tier = 0
    while left:
        tier += 1
        leader = left[0]
        tiers[[model for model in left if not surely[leader, model]]] = tier
        left = [model for model in left if surely[leader, model]]
    return tiers
