from __future__ import annotations

import polars as pl
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.scoring.score_parts import draw_parts, read_parts, score_parts, truth_files
from fieldmark_tests.parted_truths import write_run, write_truth


def test_a_part_scores_as_if_it_were_the_whole_test_set(tmp_path):
    folder = write_truth(tmp_path / "truth")
    run = write_run(tmp_path / "run.csv", folder, skill=0.7)
    cards = score_parts("folder", run, truth_files(folder))
    assert list(cards) == ["public", "private"] and sum(card.items for card in cards.values()) == 120
    private = pl.read_csv(folder / "parts.csv").filter(pl.col("part") == "private")["unit"]
    truth = pl.read_csv(folder / "truth.csv").filter(pl.col("unit").is_in(private.implode()))
    lines = run.read_text().splitlines()
    kept = set(truth["id"])
    (tmp_path / "some.csv").write_text("\n".join([lines[0], *(line for line in lines if line[:4] in kept)]))
    alone = fieldmark.score("folder", tmp_path / "some.csv", truth=truth, classes=folder / "classes.csv")
    assert cards["private"].metrics == alone.metrics and cards["private"].unit_ids == alone.unit_ids


def test_photos_of_one_observation_are_on_one_side(tmp_path):
    folder = write_truth(tmp_path / "truth", photos_per_unit=4)
    cards = score_parts("folder", write_run(tmp_path / "r.csv", folder, skill=0.5), truth_files(folder))
    assert not set(cards["public"].unit_ids) & set(cards["private"].unit_ids)


def test_without_parts_everything_is_public(tmp_path):
    folder = write_truth(tmp_path / "truth", public=None)
    cards = score_parts("folder", write_run(tmp_path / "r.csv", folder, skill=0.5), truth_files(folder))
    assert list(cards) == ["public"] and cards["public"].items == 120


def test_the_drawn_part_does_not_depend_on_the_order_of_units():
    units = [f"u{number}" for number in range(50)]
    assert draw_parts(units, public=0.3, seed=5).equals(draw_parts(units[::-1] * 2, public=0.3, seed=5))
    assert not draw_parts(units, public=0.3, seed=5).equals(draw_parts(units, public=0.3, seed=6))
    assert (draw_parts(units, public=0.3, seed=5)["part"] == "public").sum() == 15


@pytest.mark.parametrize("public", [0.0, 1.0, 0.01])
def test_a_part_too_small_for_an_interval_is_refused(public):
    with pytest.raises(MisuseError, match="both parts need at least 2"):
        draw_parts([f"u{number}" for number in range(20)], public=public, seed=0)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("a,public\nb,privat\n", "line 3: found the part 'privat', expected public or private"),
        ("a,public\na,public\n", "line 3: found the unit 'a' again, expected each unit of the truth once"),
        ("a,public\nc,public\n", "line 3: found the unit 'c', expected each unit of the truth once"),
        ("a,public\n", r"found no line for 1 of 2 units \(b, ...\)"),
    ],
)
def test_parts_that_do_not_fit_the_truth_are_named(tmp_path, rows, sentence):
    (tmp_path / "parts.csv").write_text("unit,part\n" + rows)
    with pytest.raises(InputError, match=sentence):
        read_parts(tmp_path / "parts.csv", ["a", "b"])
