from __future__ import annotations

import numpy as np
import polars as pl

from fieldmark.splits import InGroups, Official, Seeded, cut

RULE = Official(train="train", val="val", test="test", otherwise=Seeded(val=0.2, test=0.25))


def parts_of(table: pl.DataFrame, seed: int = 0) -> list[str | None]:
    """The part each medium went to."""
    members = cut(RULE, table, seed=seed).members
    return [next((part for part in members if members[part][row]), None) for row in range(len(table))]


def media(parts: list[str | None], photos_each: int = 2, classes: int = 3) -> pl.DataFrame:
    rows = [
        {"observation_id": f"{label}-{number}", "label": f"class {label}", "parts": [part] if part else []}
        for label in range(classes)
        for number, part in enumerate(parts)
        for _ in range(photos_each)
    ]
    return pl.DataFrame(rows, schema={"observation_id": pl.String, "label": pl.String, "parts": pl.List(pl.String)})


def test_parts_of_the_release_are_kept():
    found = cut(RULE, media(["train", "val", "test"]))
    assert parts_of(media(["train", "val", "test"])) == ["train", "train", "val", "val", "test", "test"] * 3
    assert not found.val_is_drawn


def test_photos_of_one_observation_never_lie_on_both_sides():
    table = media([None] * 10)
    parts = (
        table.with_columns(part=pl.Series(parts_of(table))).group_by("observation_id").agg(pl.col("part").n_unique())
    )
    assert parts["part"].to_list() == [1] * 30


def test_each_class_with_enough_observations_is_in_each_part():
    table = media([None] * 4)
    table = table.with_columns(part=pl.Series(parts_of(table)))
    assert table.group_by("label").agg(pl.col("part").n_unique())["part"].to_list() == [3, 3, 3]


def test_a_class_with_one_observation_is_for_training():
    assert set(parts_of(media([None]))) == {"train"}


def test_without_val_it_is_drawn_from_train_and_test_stays_as_it_is():
    table = media(["train"] * 8 + ["test"] * 4)
    found = cut(RULE, table)
    assert found.val_is_drawn
    assert found.members["test"].to_list() == table["parts"].list.contains("test").to_list()
    assert found.members["val"].any() and not (found.members["val"] & found.members["train"]).any()


def test_with_train_alone_both_val_and_test_are_drawn():
    assert set(parts_of(media(["train"] * 8))) == {"train", "val", "test"}


def test_the_draw_depends_on_the_seed_and_not_on_the_order_of_rows():
    table = media([None] * 20).with_row_index()
    shuffled = table.sample(fraction=1, shuffle=True, seed=1)
    first = table.with_columns(part=pl.Series(parts_of(table, 5)))
    again = shuffled.with_columns(part=pl.Series(parts_of(shuffled, 5))).sort("index")
    other = table.with_columns(part=pl.Series(parts_of(table, 6)))
    assert first.equals(again)
    assert not first.equals(other)


def test_a_photo_may_belong_to_several_parts_of_a_release():
    table = media(["train", "test"]).with_columns(parts=pl.concat_list("parts", pl.lit("dna")))
    rule = Official(train="train", test="dna")
    assert cut(rule, table).members["test"].all()
    assert cut(rule, table).members["train"].sum() == 6


def test_observations_that_belong_together_are_never_drawn_apart():
    table = media([None] * 12, photos_each=1)
    first_of = {f"{label}-{number}": f"{label}-{number % 4}" for label in range(3) for number in range(12)}
    for seed in range(20):
        members = cut(RULE, table, seed=seed, together=lambda _: first_of).members
        part_of = {one: part for part, member in members.items() for one in table["observation_id"].filter(member)}
        assert len(part_of) == 36 and all(part_of[one] == part_of[first] for one, first in first_of.items())
        assert set(part_of.values()) == {"train", "val", "test"}


def test_copies_of_two_classes_are_for_training_and_nothing_else_changes_without_copies():
    table = media([None] * 12, photos_each=1)
    mixed = {"0-3": "0-3", "1-7": "0-3"}
    for seed in range(20):
        members = cut(RULE, table, seed=seed, together=lambda _: mixed).members
        assert {"0-3", "1-7"} <= set(table["observation_id"].filter(members["train"]))
        plain, asked = cut(RULE, table, seed=seed), cut(RULE, table, seed=seed, together=lambda _: {})
        assert all(plain.members[part].equals(asked.members[part]) for part in plain.members)


def regions(images: int = 60) -> pl.DataFrame:
    """Animals of four classes in photos, one to five in each; the rarest is in one photo alone."""
    rng = np.random.default_rng(3)
    rows = [
        (f"r{image}-{number}", f"i{image}", "rare" if image == 7 else f"c{rng.integers(0, 3)}")
        for image in range(images)
        for number in range(rng.integers(1, 6))
    ]
    table = pl.DataFrame(rows, schema=["observation_id", "image", "label"], orient="row")
    return table.with_columns(parts=pl.lit(["train"]))


def test_regions_of_one_photo_never_lie_on_both_sides_and_every_class_can_be_learned():
    rule = Official(train="train", val="val", test="test", otherwise=InGroups(val=0.2, test=0.0, by="image"))
    table = regions()
    for seed in range(5):
        members = cut(rule, table, seed=seed).members
        train, val = table.filter(members["train"]), table.filter(members["val"])
        assert len(train) + len(val) == len(table)
        assert not set(train["image"]) & set(val["image"])
        assert set(train["label"]) == set(table["label"])
        assert 0.15 < len(val) / len(table) < 0.25
        share = (val["label"] == "c0").sum() / (table["label"] == "c0").sum()
        assert 0.1 < share < 0.3  # photos with several classes are drawn as well
    assert not cut(rule, table, seed=0).members["val"].equals(cut(rule, table, seed=1).members["val"])
    again = cut(rule, table.reverse(), seed=0).members["val"].reverse()
    assert again.equals(cut(rule, table, seed=0).members["val"])


def test_copies_join_groups_and_test_is_drawn_where_the_release_has_none():
    rule = Official(train="train", otherwise=InGroups(val=0.2, test=0.2, by="image"))
    table = regions()
    twins = dict.fromkeys(("r1-0", "r2-0", "r3-0"), "r1-0")
    for seed in range(5):
        members = cut(rule, table, seed=seed, together=lambda _: twins).members
        parts = ("train", "val", "test")
        assert all(members[name].any() for name in parts)
        together = table["image"].is_in(["i1", "i2", "i3"])
        assert sum(bool((members[name] & together).any()) for name in parts) == 1
