"""The recipe of Semi-iNat: what goes where, and what stays out."""

from __future__ import annotations

import polars as pl
import pytest

from fieldmark.errors import InputError, MisuseError
from fieldmark.splits.semi_supervised import SemiSupervised, draw_semi_supervised
from fieldmark.views.semi_splits import split_semi_supervised

SMALL = SemiSupervised(val=2, public=2, private=3, least_labeled=3, most_out_of_class=6)


def table(photos: int = 40, species: int = 6, groups: tuple[str, ...] = ("moss", "fern")) -> pl.DataFrame:
    rows = [
        (f"{group}-{number}-{photo}", f"{group} {number}", group, f"person {photo}")
        for group in groups
        for number in range(species)
        for photo in range(photos)
    ]
    return pl.DataFrame(rows, schema=["id", "label", "group", "contributor"], orient="row")


def counts(draw, rows, *by: str) -> dict:
    joined = draw.table.join(rows, on="id").join(draw.species.select("label", "membership"), on="label", how="left")
    return {tuple(row[:-1]): row[-1] for row in joined.group_by(*by).len().iter_rows()}


def test_a_third_of_the_species_of_each_group_is_in_class():
    draw = draw_semi_supervised(table(), SMALL, seed=3)
    assert dict(draw.species.group_by("group", "membership").len().rows_by_key(["group", "membership"])) == {
        ("moss", "in-class"): [(2,)], ("moss", "out-of-class"): [(4,)],
        ("fern", "in-class"): [(2,)], ("fern", "out-of-class"): [(4,)],
    }  # fmt: skip


def test_each_in_class_species_has_its_photos_in_every_part_and_a_tenth_of_the_rest_labeled():
    rows = table(photos=57)  # 50 are left after val and tests
    draw = draw_semi_supervised(rows, SMALL, seed=1)
    by_part = counts(draw, rows, "membership", "label", "part", "usage")
    for label in draw.species.filter(pl.col("membership") == "in-class")["label"]:
        own = {key[2:]: number for key, number in by_part.items() if key[1] == label}
        assert own == {
            ("val", None): 2, ("test", "Public"): 2, ("test", "Private"): 3, ("train", None): 5, ("unlabeled", None): 45
        }  # fmt: skip
    outside = [number for key, number in by_part.items() if key[0] == "out-of-class" and key[2] == "unlabeled"]
    assert set(outside) == {6}


def test_at_least_so_many_are_labeled_however_few_there_are():
    rows = table(photos=12)
    draw = draw_semi_supervised(rows, SMALL, seed=1)
    assert counts(draw, rows, "membership", "part")[("in-class", "train")] == 4 * 3


def test_one_photo_of_each_contributor_is_used_of_a_species():
    rows = table(photos=40).with_columns(contributor=pl.col("contributor").str.slice(0, 8))  # ten people
    draw = draw_semi_supervised(rows, SMALL, seed=5)
    used = draw.table.filter(pl.col("part") != "unused").join(rows, on="id")
    assert used.select("label", "contributor").is_duplicated().sum() == 0
    every = draw_semi_supervised(rows, SemiSupervised(val=2, public=2, private=3, one_per_contributor=False), seed=5)
    assert every.table.filter(pl.col("part") != "unused").height > used.height


def test_species_seen_elsewhere_are_dropped_and_rows_without_a_species_are_unlabeled():
    rows = pl.concat([table(), pl.DataFrame({"id": ["x"], "label": [None], "group": [None], "contributor": [None]},
                                            schema=table().schema)])  # fmt: skip
    draw = draw_semi_supervised(rows, SMALL, seed=2, dropped=["moss 0"])
    part_of = dict(draw.table.select("id", "part").iter_rows())
    assert part_of["x"] == "unlabeled" and {part_of[f"moss-0-{n}"] for n in range(40)} == {"unused"}
    assert draw.species.filter(pl.col("label") == "moss 0")["membership"].to_list() == ["dropped"]


def test_the_draw_does_not_depend_on_the_order_of_rows():
    rows = table()
    one, other = (draw_semi_supervised(own, SMALL, seed=9).table.sort("id") for own in (rows, rows.reverse()))
    assert one.equals(other)
    assert not one.equals(draw_semi_supervised(rows, SMALL, seed=10).table.sort("id"))


def test_too_few_photos_are_refused_with_what_would_be_needed():
    with pytest.raises(InputError, match="at most 4 photos of a species, expected 10"):
        draw_semi_supervised(table(photos=4), SMALL)
    with pytest.raises(MisuseError, match=r"in_class=.*: expected a number above 0 and below 1"):
        SemiSupervised(in_class=1.0)


def test_a_table_is_cut_and_the_split_reads_back(tmp_path):
    from fieldmark.splits.files import read_split

    table().rename({"label": "species", "group": "phylum", "contributor": "observer"}).write_csv(tmp_path / "t.csv")
    result = split_semi_supervised(
        tmp_path / "t.csv", label="species", group="phylum", contributor="observer",
        settings={"val": "2", "public": "2", "private": "3", "least_labeled": "3"}, out=tmp_path / "split.csv",
    )  # fmt: skip
    split = read_split(tmp_path / "split.csv")
    assert split.digest == result.split.digest and set(split.table["part"]) == {"train", "val", "test", "unlabeled"}
    assert len(split.about["private_test"]) == 4 * 3 and result.species == {"in-class": 4, "out-of-class": 8}
