from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fieldmark.stats.cell_ranks import CellScores, rank_over_cells
from fieldmark.stats.comparison import compare


def hits(seed: int, skills, units: int = 150) -> CellScores:
    rng = np.random.default_rng(seed)
    luck = rng.random(units)
    right = np.array([luck + 0.1 * rng.normal(size=units) < skill for skill in skills], dtype=float)
    return CellScores(right.mean(axis=1), right)


def ranks(ranked) -> list[tuple[int, int]]:
    return [(one.rank_low, one.rank_high) for one in ranked.standings]


def test_one_cell_is_ranked_as_a_comparison_of_runs_ranks_it():
    cell = hits(0, (0.8, 0.6, 0.58, 0.3))
    assert cell.pseudo is not None
    outcome = compare(cell.values, cell.pseudo)
    assert ranks(rank_over_cells([cell])) == [(1, 4)] * 4  # one cell tells nothing of others
    assert ranks(rank_over_cells([cell], other_cells=False)) == [
        (one.rank_low, one.rank_high) for one in outcome.standings
    ]


def test_two_models_on_other_cells_are_compared_by_the_paired_t_test_over_cells():
    cells = [hits(seed, (0.5 + 0.04 * seed, 0.5), units=4000) for seed in range(6)]
    apart = np.array([cell.values[0] - cell.values[1] for cell in cells])
    ranked = rank_over_cells(cells)
    assert (ranked.standings[0].rank_high == 1) == (stats.ttest_1samp(apart, 0).pvalue < 0.05)
    assert ranks(rank_over_cells(cells, other_cells=False)) == [(1, 1), (2, 2)]


def test_cells_that_happen_to_agree_tell_no_more_than_their_units():
    """Three cells with the same difference by chance: their spread is nothing, that of the units is not."""
    cells = []
    for seed in range(3):
        luck = np.random.default_rng(seed).permutation(20)
        right = np.array([luck < 11, luck >= 10], dtype=float)
        cells.append(CellScores(right.mean(axis=1), right))
    assert ranks(rank_over_cells(cells)) == [(1, 2), (1, 2)]


def test_equal_models_share_a_group_and_the_next_group_begins_with_the_best_of_the_rest():
    ranked = rank_over_cells([hits(seed, (0.3, 0.8, 0.31, 0.8)) for seed in range(10)])
    assert ranked.tiers.tolist() == [2, 1, 2, 1]
    assert ranked.mean_ranks.sum() == pytest.approx(10)


def test_the_interval_of_a_mean_is_that_of_independent_cells():
    cells = [hits(seed, (0.7, 0.4), units=80 + 40 * seed) for seed in range(4)]
    ranked = rank_over_cells(cells)
    errors = [cell.pseudo[0].var(ddof=1) / cell.pseudo.shape[1] for cell in cells if cell.pseudo is not None]
    half = (ranked.highs[0] - ranked.lows[0]) / 2
    assert half == pytest.approx(1.96 * sum(errors) ** 0.5 / 4, rel=0.02)


def test_without_values_by_unit_nothing_is_claimed_on_these_cells():
    cells = [CellScores(np.array([0.9, 0.1]), None) for _ in range(5)]
    ranked = rank_over_cells(cells, other_cells=False)
    assert ranks(ranked) == [(1, 2), (1, 2)] and np.isnan(ranked.lows).all()
