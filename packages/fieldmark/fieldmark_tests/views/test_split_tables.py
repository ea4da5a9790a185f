from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from fieldmark.errors import InputError, MisuseError
from fieldmark.splits.files import read_split
from fieldmark.splits.grids import organizers_quadrats, quadrat_names
from fieldmark.splits.quadrats import organizers_draw
from fieldmark.splits.rules import rule_from_data
from fieldmark.views.split_tables import Columns, split_table


@pytest.fixture
def table(tmp_path):
    """Sixty photos of thirty finds at ten sites, two of them the same file under two names."""
    rows = []
    for number in range(60):
        (tmp_path / f"{number}.jpg").write_bytes(b"twin" if number in (0, 59) else f"photo {number}".encode())
        rows.append(
            {
                "id": f"p{number}",
                "file": f"{number}.jpg",
                "find": f"f{number // 2}",
                "site": f"s{number // 6}",
                "species": "ab"[number % 2],
                "date": f"2021-09-{1 + number % 28:02}",
                "lat": 50 + 0.3 * (number // 6),
                "lon": 14.0,
            }
        )
    pl.DataFrame(rows).write_csv(tmp_path / "finds.csv")
    pl.DataFrame(rows).write_parquet(tmp_path / "finds.parquet")
    return tmp_path / "finds.csv"


@pytest.mark.parametrize("by", ["site", "unit", "block:5000", "cells:5000", "quadrats"])
def test_parts_share_neither_groups_nor_units_nor_copies(table, tmp_path, by):
    columns = Columns(unit="find", label="species", file="file")
    result = split_table(table, by, val=0.2, test=0.2, columns=columns, out=tmp_path / "split.csv")
    assert all(one.shared == 0 for one in result.shared) and len(result.shared) >= 2
    assert set(result.rows) == {"train", "val", "test"} and sum(result.rows.values()) == 60
    part_of = dict(read_split(tmp_path / "split.csv").table.iter_rows())
    assert part_of["p0"] == part_of["p59"]
    assert sum(one.shared for one in result.by_rows) > 0


def test_what_a_split_was_made_by_stands_beside_it_and_makes_it_again(table, tmp_path):
    first = split_table(table, "block:7000", test=0.3, seed=4, out=tmp_path / "split.csv")
    about = json.loads((tmp_path / "split.json").read_text())
    assert about["table"] == "finds.csv" and len(about["table_digest"]) == 32 and about["digest"] == first.split.digest
    again = split_table(table, rule_from_data(about["rule"]), test=about["shares"]["test"], seed=about["seed"])
    assert again.split.digest == first.split.digest
    assert split_table(table, "block:7000", test=0.3, seed=5).split.digest != first.split.digest


def test_quadrats_are_drawn_as_the_organizers_do_it_and_the_parts_lie_apart(tmp_path):
    rng = np.random.default_rng(0)
    places = {"id": [f"o{row}" for row in range(800)], "lat": rng.uniform(44, 46, 800), "lon": rng.uniform(1, 4, 800)}
    table = tmp_path / "places.csv"
    pl.DataFrame(places).write_csv(table)
    result = split_table(table, "quadrats", val=0.05, test=0.1, out=tmp_path / "split.csv")
    about = json.loads((tmp_path / "split.json").read_text())
    assert (about["seed"], about["counted"], about["rule"]["rule"]) == (1949, "groups", "quadrats")
    names = quadrat_names(*organizers_quadrats(places["lat"], places["lon"], 5000.0))
    part_of = dict(result.split.table.iter_rows())
    assert [part_of[one] == "test" for one in places["id"]] == organizers_draw(names, 0.1).tolist()
    total = len(set(names))
    assert result.groups["test"] == total - int(np.floor(0.9 * total))
    assert abs(result.groups["val"] - 0.05 * total) <= 1 and all(one.shared == 0 for one in result.shared)
    wider = split_table(table, "quadrats:50000", test=0.1)
    assert wider.apart["test"].median_m > 1.5 * wider.apart_by_rows["test"].median_m
    assert wider.to_json()["apart"]["test"]["places"] == wider.rows["test"]


def test_parquet_and_csv_are_cut_alike(table):
    cuts = [split_table(table.with_suffix(suffix), "site", test=0.3).split.digest for suffix in (".csv", ".parquet")]
    assert cuts[0] == cuts[1]


def test_folds_and_further_columns_to_look_at(table):
    result = split_table(table, "site", folds=5, check=["day", "class"], columns=Columns(label="species"))
    assert set(result.rows.values()) == {12} and len(result.rows) == 5
    shared = {one.what: one.shared for one in result.shared}
    assert shared["site"] == 0 and shared["day"] > 0 and shared["class"] == 2


def test_classes_can_be_left_out_as_a_whole(table):
    result = split_table(table, "class", test=0.5, columns=Columns(label="species"))
    assert {one.what: one.shared for one in result.shared} == {"class": 0}


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"by": "habitat", "test": 0.2}, "expected a column 'habitat'"),
        ({"columns": Columns(id="site"), "test": 0.2}, "line 3: found 's0' again as site, expected each once"),
        ({"columns": Columns(label="kind"), "test": 0.2}, "expected a column 'kind'"),
    ],
)
def test_bad_tables_are_refused_with_file_and_line(table, tmp_path, how, sentence):
    with pytest.raises(InputError, match=sentence):
        split_table(table, **how, out=tmp_path / "split.csv")
    assert not (tmp_path / "split.csv").exists()


def test_neither_parts_nor_folds_and_both_are_refused(table):
    for how in ({}, {"test": 0.2, "folds": 3}):
        with pytest.raises(MisuseError, match="into parts or into folds"):
            split_table(table, **how)
