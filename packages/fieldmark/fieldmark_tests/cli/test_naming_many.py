"""From the shell: naming a folder, reviewing, searching, and labels in doubt."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from fieldmark.identification.review.session import Review
from fieldmark_tests.fixtures import COLORS, save_photo


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for number, color in enumerate(list(COLORS.values()) * 2):
        save_photo(tmp_path / "photos" / f"{number}.jpg", color, 400 + number)
    return tmp_path / "photos"


def test_a_folder_is_named_reviewed_and_written(photos, color_model, tmp_path, run_main):
    out = tmp_path / "answers"
    code, said, _ = run_main("identify", photos, "--model", color_model, "--out", out, "--format", "csv", "--json")
    told = json.loads(said)
    assert code == 0 and told["observations"] == 6 and Path(told["written"][0]).is_file()
    code, said, _ = run_main("identify", photos, "--model", color_model, "--out", out)
    assert code == 0 and "6 had been answered before" in said and "fieldmark review" in said
    Review(out).decide("0.jpg", "Rubra vera")
    code, said, _ = run_main("review", out, "--status", "--json")
    assert code == 0 and json.loads(said)["looked"] == 1
    code, said, _ = run_main("review", out, "--out", tmp_path / "list.csv", "--format", "parquet")
    checked = pl.read_csv(tmp_path / "list.csv").filter(pl.col("by") == "person")
    assert code == 0 and checked["name"].to_list() == ["Rubra vera"]
    assert (out / "list.parquet").is_file()


def test_what_cannot_be_done_is_said(photos, color_model, tmp_path, run_main):
    assert "add --out" in run_main("identify", photos, "--model", color_model)[2]
    code, _, said = run_main("identify", photos, "--model", color_model, "--out", tmp_path / "a", "--format", "camtrap")
    assert code == 1 and "no date and time" in said
    assert "Did you mean parquet?" in run_main("review", tmp_path / "a", "--format", "parket")[2]
    assert "no answers" in run_main("review", photos, "--status")[2]
    assert "go with --labels" in run_main("check", "folder", photos, "--out", tmp_path / "b")[2]
    assert "Nothing to identify" in run_main("identify")[2]


def test_labels_in_doubt_are_listed_and_kept_for_the_review(make_release, tmp_path, run_main):
    root = make_release(per_class=12)
    for name in ("Alba alba", "Alba nigra"):  # two photos in the wrong folder
        other = next(one for one in COLORS if one != name)
        save_photo(root / "train" / name / f"wrong-{name[-2:]}.jpg", COLORS[other], 999)
    out = tmp_path / "doubts"
    code, said, _ = run_main("check", "folder", root, "--labels", "--out", out, "--set", "size=32", "--set", "l2=0.01")
    assert code == 0 and "labels are doubted" in said and "fieldmark review" in said
    doubted = [entry.observation_id for entry in Review(out).answers.entries()]
    assert doubted[0] in ("wrong-ba.jpg", "wrong-ra.jpg")  # the strongest doubt is a planted one


def test_photos_are_found_by_example(photos, run_main):
    code, said, _ = run_main("search", photos / "0.jpg", "--in", photos, "--set", "size=32", "--top", 1, "--json")
    assert code == 0 and Path(json.loads(said)["found"][0]["file"]).name == "3.jpg"
