from __future__ import annotations

import polars as pl

from fieldmark.splits import Official, Seeded, cut

RULE = Official(train="train", val="val", test="test", otherwise=Seeded(val=0.2, test=0.25))


def media(parts: list[str | None], photos_each: int = 2, classes: int = 3) -> pl.DataFrame:
    rows = [
        {"observation_id": f"{label}-{number}", "label": f"class {label}", "part": part}
        for label in range(classes)
        for number, part in enumerate(parts)
        for _ in range(photos_each)
    ]
    return pl.DataFrame(rows, schema={"observation_id": pl.String, "label": pl.String, "part": pl.String})


def test_parts_of_the_release_are_kept():
    found = cut(RULE, media(["train", "val", "test"]))
    assert found.part.to_list() == media(["train", "val", "test"])["part"].to_list()
    assert not found.val_is_drawn


def test_photos_of_one_observation_never_lie_on_both_sides():
    table = media([None] * 10)
    parts = table.with_columns(part=cut(RULE, table).part).group_by("observation_id").agg(pl.col("part").n_unique())
    assert parts["part"].to_list() == [1] * 30


def test_each_class_with_enough_observations_is_in_each_part():
    table = media([None] * 4)
    table = table.with_columns(part=cut(RULE, table).part)
    assert table.group_by("label").agg(pl.col("part").n_unique())["part"].to_list() == [3, 3, 3]


def test_a_class_with_one_observation_is_for_training():
    assert set(cut(RULE, media([None])).part) == {"train"}


def test_without_val_it_is_drawn_from_train_and_test_stays_as_it_is():
    table = media(["train"] * 8 + ["test"] * 4)
    found = cut(RULE, table)
    assert found.val_is_drawn
    assert (found.part == "test").to_list() == (table["part"] == "test").to_list()
    assert (found.part == "val").sum() > 0


def test_with_train_alone_both_val_and_test_are_drawn():
    assert set(cut(RULE, media(["train"] * 8)).part) == {"train", "val", "test"}


def test_the_draw_depends_on_the_seed_and_not_on_the_order_of_rows():
    table = media([None] * 20).with_row_index()
    shuffled = table.sample(fraction=1, shuffle=True, seed=1)
    first = table.with_columns(part=cut(RULE, table, seed=5).part)
    again = shuffled.with_columns(part=cut(RULE, shuffled, seed=5).part).sort("index")
    other = table.with_columns(part=cut(RULE, table, seed=6).part)
    assert first.equals(again)
    assert not first.equals(other)
