from __future__ import annotations

import json
import shutil

import fieldmark
from tests.cli.test_refusals import run_main

__all__ = ["run_main"]


def test_copies_of_training_photos_in_test_are_called_a_leak_in_run_terminal_and_report(
    make_release, tmp_path, run_main
):
    root = make_release()
    shutil.copy(root / "train/Alba alba/0-0.jpg", root / "test/Alba alba/copy.jpg")
    shutil.copy(root / "train/Alba alba/0-1.jpg", root / "train/Alba nigra/copy.jpg")
    result = fieldmark.fit("folder", root, "frequent", tmp_path / "run")
    assert result.run.leaks == [
        "1 of 7 photos of test have the same bytes as photos of train "
        "(test/Alba alba/copy.jpg and train/Alba alba/0-0.jpg): scores there are too high."
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
