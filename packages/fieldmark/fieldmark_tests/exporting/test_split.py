"""The split that was drawn, as a file: it says what a fit uses, and a fit that uses it comes out the same."""

from __future__ import annotations

import json

import polars as pl

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.releases import open_dataset
from fieldmark.splits.files import read_split
from fieldmark.views.open_benchmark import open_benchmark


def test_the_exported_split_is_the_drawn_one_and_a_fit_with_it_is_the_same(make_release, run_main, tmp_path):
    root, file = make_release(flat=True), tmp_path / "split.csv"
    code, shown, _ = run_main("export", "split", "folder", "--data", root, "--out", file, "--seed", 3)
    assert code == 0 and "train" in shown
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", root), seed=3)
    drawn = {one: part for part, table in opened.items.items() for one in table["media_ids"].explode()}
    assert dict(read_split(file).table.iter_rows()) == drawn
    plain = fieldmark.fit("folder", root, "frequent", tmp_path / "plain", seed=3)
    again = fieldmark.fit("folder", root, "frequent", tmp_path / "again", seed=3, split=file)
    assert again.scorecard.metrics == plain.scorecard.metrics and again.run.trained_on == plain.run.trained_on
    assert not any("cannot be compared" in remark for remark in again.run.remarks)


def test_coco_shows_the_part_of_each_photo(make_release, run_main, tmp_path):
    root, file = make_release(flat=True), tmp_path / "split.csv"
    run_main("export", "split", "folder", "--data", root, "--out", file)
    parts = dict(read_split(file).table.iter_rows())
    for part, chosen in (("all", []), ("val", ["--part", "val"])):
        out = tmp_path / f"{part}.json"
        assert run_main("export", "coco", "folder", "--data", root, "--split", file, "--out", out, *chosen)[0] == 0
        images = json.loads(out.read_text())["images"]
        wanted = [name for name in parts if part in ("all", parts[name])]
        assert sorted(one["file_name"].rpartition("/")[2] for one in images) == sorted(wanted)
        assert all(one["part"] == parts[one["file_name"].rpartition("/")[2]] for one in images)


def test_another_split_than_that_of_the_benchmark_is_still_called_so(make_release, tmp_path):
    root = make_release(flat=True)
    media = open_dataset("folder", root).media["media_id"]
    parts = pl.Series([("train", "val", "test")[place % 3] for place in range(len(media))])
    pl.DataFrame({"id": media, "part": parts}).write_csv(tmp_path / "mine.csv")
    run = fieldmark.fit("folder", root, "frequent", tmp_path / "mine", split=tmp_path / "mine.csv").run
    assert any("cannot be compared" in remark for remark in run.remarks)
