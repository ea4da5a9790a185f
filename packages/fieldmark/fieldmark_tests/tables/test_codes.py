from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.tables import codes
from fieldmark.tables.codes import all_different, numbered_names


def same_for_some(names: pl.Series) -> pl.Series:
    """Numbers that many names share."""
    return names.hash() % 3 * 2**62


HASHES = [pytest.param(pl.Series.hash, id="usual"), pytest.param(same_for_some, id="shared")]


@pytest.mark.parametrize("hashed", HASHES)
@pytest.mark.parametrize("names", [[], ["a"], ["a"] * 9, [f"name {number % 700}" for number in range(2000)]])
def test_numbers_are_places_among_the_sorted_names(names, hashed, monkeypatch):
    monkeypatch.setattr(codes, "BLOCK_BITS", 6)
    monkeypatch.setattr(codes, "NAMES_AT_ONCE", 100)
    distinct, numbers = numbered_names(pl.Series(names, dtype=pl.String), hashed=hashed)
    expected, places = np.unique(np.array(names, dtype=object), return_inverse=True)
    assert distinct.to_list() == expected.tolist()
    assert numbers.dtype == np.int32 and numbers.tolist() == places.tolist()


@pytest.mark.parametrize("hashed", HASHES)
def test_a_name_that_stands_twice_is_noticed_and_names_of_one_hash_are_not_confused(hashed, monkeypatch):
    monkeypatch.setattr(codes, "BLOCK_BITS", 6)
    names = [f"name {number}" for number in range(2000)]
    assert all_different(pl.Series(names), hashed=hashed)
    assert not all_different(pl.Series([*names, "name 7"]), hashed=hashed)
    assert not all_different(pl.Series([None, "a", None]), hashed=hashed)


def test_names_of_one_hash_are_told_apart_also_where_two_lots_meet(monkeypatch):
    names, lots = ["a", "a", "b", "b", "c"], [1, 2, 3]
    for lot in lots:
        monkeypatch.setattr(codes, "NAMES_AT_ONCE", lot)
        distinct, numbers = numbered_names(pl.Series(names), hashed=lambda series: series.hash() * 0)
        assert (distinct.to_list(), numbers.tolist()) == (["a", "b", "c"], [0, 0, 1, 1, 2])
