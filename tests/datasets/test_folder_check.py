from __future__ import annotations

import json

import pytest

from fieldmark.datasets.checking import CheckReport
from fieldmark.datasets.folder_check import check_folder
from fieldmark.errors import MisuseError
from fieldmark.release import Release
from tests.cli.test_refusals import run_main
from tests.conftest import COLORS, save_photo

__all__ = ["run_main"]


def problems(report: CheckReport) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {problem.what.partition(",")[0]: (problem.severity, problem.places) for problem in report.problems}


def test_sound_photos_are_counted_by_part_and_have_no_problems(make_release):
    report = check_folder(Release(make_release()), photos=True, near_duplicates=True)
    assert report.sound and not report.problems
    counts = {part.part: (part.found.observations, part.found.photos, part.found.classes) for part in report.counts}
    assert counts == {"train": (12, 12, 3), "val": (6, 6, 3), "test": (6, 6, 3)}


def test_photos_without_parts_are_counted_as_one(make_release):
    report = check_folder(Release(make_release(flat=True)))
    assert [(part.part, part.found.photos) for part in report.counts] == [("all", 24)] and not report.problems


def test_what_is_broken_or_passed_over_or_cannot_be_learned_is_listed(make_release):
    root = make_release()
    save_photo(root / "test" / "Nova nova" / "n.jpg", COLORS["Rubra vera"], 5)
    save_photo(root / "train" / "Sola sola" / "s.jpg", COLORS["Rubra vera"], 6)
    (root / "train" / "Alba alba" / "phone.HEIC").write_bytes(b"x")
    (root / "val" / "Vacua vacua").mkdir()
    (root / "train" / "Alba nigra" / "1-0.jpg").write_bytes(b"torn")
    report = check_folder(Release(root), photos=True)
    assert not report.sound
    assert problems(report) == {
        "a photo cannot be read": ("error", ("train/Alba nigra/1-0.jpg",)),
        "a class has nothing to learn from in train": ("warning", ("Nova nova",)),
        "a file is passed over": ("warning", ("train/Alba alba/phone.HEIC",)),
        "a folder of a class holds nothing that is read": ("warning", ("val/Vacua vacua",)),
        "a class is learned from a single observation": ("note", ("Sola sola",)),
    }


def test_recordings_are_counted_but_not_opened_as_photos(tmp_path):
    (tmp_path / "Alba").mkdir()
    (tmp_path / "Alba" / "a.wav").touch()
    assert check_folder(Release(tmp_path)).counts[0].found.recordings == 1
    with pytest.raises(MisuseError, match="holds recordings"):
        check_folder(Release(tmp_path), photos=True)


def test_the_verb_checks_your_own_photos_and_refuses_what_is_no_release(make_release, run_main):
    code, printed, _ = run_main("check", "folder", make_release(), "--json")
    assert code == 0 and json.loads(printed)["sound"]
    for name in ("fungitastic", "fgvcx-fungi-2018", "birdclef-2020"):
        code, _, said = run_main("check", name, make_release(name=f"no {name}"))
        assert code == 1 and f"no {name}: found no part of {name}, expected the root of a release." in said
