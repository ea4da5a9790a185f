from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldmark.errors import InputError, MisuseError
from fieldmark.splits.division import divide, divide_into_folds, row_by_row, shared_between
from fieldmark.splits.groups import grouped, links_of, links_of_files


@st.composite
def tables(draw):
    """Rows with units, sites and files, some of them copies; sites and units may be missing."""
    n = draw(st.integers(6, 40))
    units = draw(st.lists(st.sampled_from([None, *"abcdefghij"]), min_size=n, max_size=n))
    sites = draw(st.lists(st.sampled_from([None, "p", "q", "r", "s", "t"]), min_size=n, max_size=n))
    copies = draw(st.lists(st.sets(st.integers(0, n - 1), min_size=2, max_size=3), max_size=3))
    labels = draw(st.lists(st.sampled_from("xyz"), min_size=n, max_size=n))
    table = pl.DataFrame(
        {"id": [f"i{row:02}" for row in range(n)], "unit": units, "site": sites, "label": labels},
        schema_overrides={"unit": pl.String, "site": pl.String},
    )
    return table, [[f"f{row}" for row in sorted(group)] for group in copies]


def links(table: pl.DataFrame, copies: list[list[str]]):
    files = [[f"f{int(one[1:])}"] for one in table["id"]]
    return [links_of(table["unit"]), links_of(table["site"]), *(links_of_files(files, [group]) for group in copies)]


@given(tables(), st.integers(0, 5), st.integers(2, 4))
@settings(deadline=None)
def test_folds_never_share_a_unit_a_site_or_an_identical_photo(drawn, seed, number):
    table, copies = drawn
    own = links(table, copies)
    if grouped(table["id"].to_list(), own).max() + 1 < number:
        with pytest.raises(MisuseError, match="must not be parted"):
            divide_into_folds(table["id"].to_list(), own, number=number, seed=seed)
        return
    parts = divide_into_folds(table["id"].to_list(), own, number=number, classes=table["label"], seed=seed).parts
    assert parts.n_unique() == number
    for link in own:
        assert shared_between(parts, link, table["id"].to_list(), "thing").shared == 0
    part_of = dict(zip(table["id"], parts, strict=True))
    for group in copies:
        assert len({part_of[f"i{int(file[1:]):02}"] for file in group}) == 1


@given(tables(), st.integers(0, 5))
@settings(deadline=None)
def test_a_cut_depends_on_the_seed_and_not_on_the_order_of_rows(drawn, seed):
    table, copies = drawn
    shuffled = table.sample(fraction=1, shuffle=True, seed=seed + 1)
    cuts = []
    for rows in (table, shuffled):
        groups = grouped(rows["id"].to_list(), links(rows, copies))
        if groups.max() < 3:
            return
        found = divide_into_folds(rows["id"].to_list(), links(rows, copies), number=3, classes=rows["label"], seed=seed)
        cuts.append(dict(zip(rows["id"], found.parts, strict=True)))
    assert cuts[0] == cuts[1]


def test_another_seed_gives_another_cut():
    ids = [f"{row}" for row in range(60)]
    first, second = (divide(ids, [], shares={"val": 0.2, "test": 0.2}, seed=seed).parts for seed in (0, 1))
    assert first.to_list() != second.to_list()


def test_every_fold_gets_its_share_of_every_class():
    rng = np.random.default_rng(0)
    labels = pl.Series(rng.choice(["a", "b", "c"], 300, p=[0.7, 0.2, 0.1]))
    units = pl.Series([f"u{row // 2}" for row in range(300)])
    ids = [f"{row:03}" for row in range(300)]
    parts = divide_into_folds(ids, [links_of(units)], number=5, classes=labels).parts
    table = pl.DataFrame({"label": labels, "part": parts}).group_by("label", "part").len()
    for label, share in (("a", 210), ("b", 60), ("c", 30)):
        counts = table.filter(pl.col("label") == label)["len"]
        assert len(counts) == 5 and counts.max() - counts.min() <= max(3, 0.15 * share / 5)


def test_the_largest_group_and_a_class_with_one_row_go_to_train():
    sites = pl.Series(["big"] * 50 + [f"s{row}" for row in range(50)])
    labels = pl.Series(["common"] * 99 + ["single"])
    ids = [f"{row:03}" for row in range(100)]
    for seed in range(10):
        found = divide(ids, [links_of(sites)], shares={"val": 0.1, "test": 0.2}, classes=labels, seed=seed)
        assert found.parts[0] == "train" and found.parts[99] == "train"
        assert found.rows() == {"test": pytest.approx(20, abs=1), "train": pytest.approx(70, abs=1), "val": 10}


def test_shares_may_count_groups_in_place_of_rows():
    blocks = pl.Series([f"b{row % 200}" for row in range(1000)])
    found = divide(
        [f"{row:04}" for row in range(1000)], [links_of(blocks)], shares={"test": 0.025}, counted="groups", seed=1949
    )
    assert found.group_counts() == {"test": 5, "train": 195}


def test_a_part_that_would_be_empty_is_refused():
    sites = pl.Series(["a"] * 10)
    with pytest.raises(InputError, match=r"t.csv: found 1 group\(s\) that must not be parted, none of them for val"):
        divide([f"{row}" for row in range(10)], [links_of(sites)], shares={"val": 0.1, "test": 0.2}, where="t.csv")


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        ({"val": 0.5, "test": 0.5}, "leave a share"),
        ({"val": 1.5}, "share of val is 1.5"),
        ({"val": 0}, "nothing to cut"),
    ],
)
def test_shares_that_cannot_be_are_refused(shares, sentence):
    with pytest.raises(MisuseError, match=sentence):
        divide(["a", "b"], [], shares=shares)


def test_a_draw_row_by_row_has_the_same_sizes_and_parts_what_belongs_together():
    units = links_of(pl.Series([f"u{row // 10}" for row in range(100)]))
    ids = [f"{row:03}" for row in range(100)]
    found = divide(ids, [units], shares={"test": 0.3})
    plain = row_by_row(ids, found, seed=0)
    assert plain.value_counts().sort("part").equals(found.parts.value_counts().sort("part"))
    assert shared_between(found.parts, units, ids, "unit").shared == 0
    assert shared_between(plain, units, ids, "unit").shared > 5


def test_rows_that_are_left_out_share_nothing():
    parts, sites = pl.Series(["train", "unused", "test"]), links_of(pl.Series(["a", "a", "b"]))
    assert shared_between(parts, sites, ["1", "2", "3"], "site").shared == 0
