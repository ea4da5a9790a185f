"""A table of pairs that is renewed says what a comparison from scratch says."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.stats.comparison import compare
from fieldmark.stats.pair_table import PairTable

UNITS = 60


def drawn(count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Runs of all kinds: alike, far apart, equal, different on one unit, undefined without one, and of real numbers."""
    luck = rng.random(UNITS)
    runs = {f"r{n}": (luck < rng.random()).astype(float) for n in range(count)}
    runs["again"] = runs["r0"].copy()
    runs["nearly"] = runs["r0"].copy()
    runs["nearly"][3] = 1 - runs["nearly"][3]
    runs["shifted"] = runs["r1"] + 0.25
    runs["undefined"] = np.where(np.arange(UNITS) == 5, np.nan, runs["r2"])
    runs["real"] = rng.normal(0.5, 0.3, UNITS)
    return runs


def value_of(run: np.ndarray) -> float:
    return float(np.nanmean(run))


def assert_ranked_as_by_compare(table: PairTable, runs: dict[str, np.ndarray], higher: bool) -> None:
    order = sorted(runs, key=lambda name: value_of(runs[name]), reverse=higher)
    ranked = table.rank(order, {name: (value_of(runs[name]), runs[name]) for name in table.missing(order)})
    values = np.array([value_of(runs[name]) for name in order])
    whole = compare(values, np.stack([runs[name] for name in order]), higher_is_better=higher)
    assert ranked.standings == whole.standings
    assert sorted(ranked.best_group) == sorted(whole.best_group)
    expected = [pair for pair in whole.differences if pair.first == 0]
    assert [pair.second for pair in ranked.behind] == [pair.second for pair in expected]
    for mine, theirs in zip(ranked.behind, expected, strict=True):
        assert mine.value == theirs.value and mine.interval == theirs.interval and mine.better == theirs.better
        assert mine.p_adjusted == pytest.approx(theirs.p_adjusted, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("higher", [True, False])
def test_runs_that_come_and_go_are_ranked_as_if_all_were_compared_again(higher):
    rng = np.random.default_rng(3)
    runs = drawn(12, rng)
    table = PairTable(higher_is_better=higher)
    assert_ranked_as_by_compare(table, runs, higher)
    for step in range(12):
        if step % 3 == 0:
            runs.pop(sorted(runs)[step % len(runs)])
        elif step % 3 == 1:
            runs |= {f"n{step}-{n}": (rng.random(UNITS) < rng.random()).astype(float) for n in range(1 + step // 2)}
        else:
            runs[f"n{step}"] = runs.pop(sorted(runs)[0])[::-1].copy()
        assert_ranked_as_by_compare(table, runs, higher)
    assert_ranked_as_by_compare(table, {name: runs[name] for name in sorted(runs)[:2]}, higher)


@pytest.mark.parametrize("kind", ["hits", "real", "alike"])
def test_many_that_come_at_once_are_ranked_as_if_they_came_one_by_one(kind):
    rng = np.random.default_rng(5)
    runs, table = drawn(8, rng), PairTable()
    assert_ranked_as_by_compare(table, runs, True)
    if kind == "hits":  # few values: equal ones are counted in another way
        runs = {name: run for name, run in runs.items() if set(run) <= {0.0, 1.0}}
        table = PairTable()
    first = rng.normal(0.5, 0.3, UNITS)
    for number in range(70):  # more than one block
        if kind == "hits":
            runs[f"m{number}"] = (rng.random(UNITS) < rng.random()).astype(float)
        elif kind == "real":
            runs[f"m{number}"] = rng.normal(rng.random(), 0.3, UNITS)
        else:  # so alike that rounding would show, in scores that are large
            runs[f"m{number}"] = 1e6 + first + 1e-5 * rng.normal(0, 1, UNITS) * (rng.random(UNITS) < 0.2)
    assert_ranked_as_by_compare(table, runs, True)
    runs.pop("m3")
    runs["late"] = rng.normal(0.6, 0.3, UNITS)
    assert_ranked_as_by_compare(table, runs, True)
