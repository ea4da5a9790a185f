from __future__ import annotations

import shutil

import numpy as np
import pytest
from PIL import Image

from fieldmark.releases.checks import CHECKS
from fieldmark.storage.release import Release


@pytest.fixture
def root(tmp_path):
    """Three photos in train, one in test, each with a mask."""
    rng = np.random.default_rng(0)
    (tmp_path / "masks").mkdir()
    for part, name in (("train", "a"), ("train", "b"), ("train", "c"), ("test", "d")):
        (tmp_path / "images" / part).mkdir(parents=True, exist_ok=True)
        photo = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(photo).save(tmp_path / "images" / part / f"{name}.jpg")
        mask = np.zeros((12, 16), np.uint8)
        mask[2:9, 3:12] = 255
        Image.fromarray(mask).save(tmp_path / "masks" / f"{name}.png")
    return tmp_path


def problems(report):
    return {(problem.severity, problem.what): problem.places for problem in report.problems}


def test_a_sound_folder_is_counted_and_has_no_problems(root):
    report = CHECKS["folder-masks"](Release(root), media=True)
    assert [(one.part, one.found.photos) for one in report.counts] == [("train", 3), ("test", 1)]
    assert report.sound and problems(report) == {}


def test_photos_without_a_mask_and_empty_masks_are_named(root):
    (root / "masks" / "b.png").unlink()
    Image.new("L", (16, 12)).save(root / "masks" / "c.png")
    found = problems(CHECKS["folder-masks"](Release(root), media=True))
    warning = ("warning", "a photo has no mask and is neither learned from nor scored")
    assert found[warning] == ("images/train/b.jpg",)
    assert found[("note", "nothing is drawn in a mask")] == ("masks/c.png",)


def test_a_broken_mask_is_an_error_with_its_file(root):
    (root / "masks" / "c.png").write_bytes(b"no picture")
    report = CHECKS["folder-masks"](Release(root), media=True)
    assert not report.sound
    (place,) = problems(report)[("error", "a mask cannot be read")]
    assert place == "masks/c.png: found something unreadable, expected a picture of a mask."


def test_a_photo_in_two_parts_is_an_error(root):
    shutil.copy(root / "images/train/a.jpg", root / "images/test/e.jpg")
    found = problems(CHECKS["folder-masks"](Release(root)))
    assert found[("error", "the same photo is in two parts")] == ("images/train/a.jpg and images/test/e.jpg",)


def test_parts_that_few_photos_have_are_told(root):
    (root / "masks" / "cap").mkdir()
    shutil.copy(root / "masks/a.png", root / "masks/cap/a.png")
    what = [problem.what for problem in CHECKS["folder-masks"](Release(root)).problems]
    assert "cap is drawn in 1 of 4 photos with masks" in what
