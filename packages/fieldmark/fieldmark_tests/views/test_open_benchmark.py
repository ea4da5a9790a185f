from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.releases import open_dataset
from fieldmark.views.open_benchmark import ALWAYS_VISIBLE, open_benchmark, open_release

TABLE = """file,observation,date,latitude,longitude,habitat,genus,poisonous,notes
train/Alba alba/0-0.jpg,o1,2021-09-30,55.5,9.5,bog,Alba,1,looks like Alba alba
"""


def test_a_method_sees_only_the_inputs_the_task_allows(make_release):
    root = make_release()
    (root / "observations.csv").write_text(TABLE)
    view = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", root)).view
    assert set(view.train.items.columns) == {*ALWAYS_VISIBLE, "date", "lat", "lon", "habitat"}


def test_a_benchmark_whose_release_nothing_reads_is_scored_against_tables(tmp_path):
    unread = replace(BENCHMARKS["folder"], name="meadows", dataset="meadows")
    with pytest.raises(MisuseError, match=r"The release of meadows cannot be opened .* fieldmark score meadows RUN"):
        open_release(unread, tmp_path)


def test_labels_of_test_are_not_in_the_view_but_kept_for_the_scorer(make_release):
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", make_release()))
    assert opened.view.test.truth is None and opened.view.train.truth is not None
    assert set(opened.truth) == {"val", "test"}
    assert opened.truth["test"].items == opened.view.test.item_ids


def test_copies_of_training_photos_in_test_are_called_a_leak_in_run_terminal_and_report(
    make_release, tmp_path, run_main
):
    root = make_release()
    shutil.copy(root / "train/Alba alba/0-0.jpg", root / "test/Alba alba/copy.jpg")
    shutil.copy(root / "train/Alba alba/0-1.jpg", root / "train/Alba nigra/copy.jpg")
    result = fieldmark.fit("folder", root, "frequent", tmp_path / "run")
    assert result.run.leaks == [
        "1 of 7 photos of test have the same bytes as photos of train "
        "(test/Alba alba/copy.jpg and train/Alba alba/0-0.jpg): scores on them are too high."
    ]
    assert any("copies with the same bytes in another class" in remark for remark in result.run.remarks)
    page = fieldmark.report([tmp_path / "run"], tmp_path / "page.html")
    assert "<strong>Leakage.</strong> frequent: 1 of 7 photos of test" in page.read_text(encoding="utf-8")
    asked = ("fit", "folder", "--data", root, "--method", "frequent", "--out", tmp_path / "run", "--overwrite")
    code, printed, _ = run_main(*asked)
    assert code == 0 and "note: LEAKAGE: 1 of 7 photos of test have the same bytes" in printed
    code, printed, said = run_main(*asked, "--json")
    assert json.loads(printed) and "LEAKAGE: 1 of 7 photos of test have the same bytes" in said


def test_drawn_parts_keep_copies_together_so_that_nothing_leaks(make_release, tmp_path):
    root = make_release(flat=True)
    for folder in root.iterdir():
        for photo in sorted(folder.iterdir()):
            shutil.copy(photo, folder / f"copy-of-{photo.name}")
    for seed in range(3):
        result = fieldmark.fit("folder", root, "frequent", tmp_path / f"run-{seed}", seed=seed)
        assert result.run.leaks == []
