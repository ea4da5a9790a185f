from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from fieldmark.releases.checks import CHECKS, CheckReport, Count
from fieldmark.releases.fungitastic_check import TABLE_2, TABLE_9
from fieldmark.storage.release import Release
from fieldmark_tests.places import GOLDEN

TRAIN = "metadata/FungiTastic/FungiTastic-Train.csv"
VAL = "metadata/FungiTastic/FungiTastic-ClosedSet-Val.csv"


@pytest.fixture
def root(tmp_path) -> Path:
    return Path(shutil.copytree(GOLDEN / "fungitastic-2025", tmp_path / "fungitastic"))


def check(root: Path, **options) -> CheckReport:
    return CHECKS["fungitastic"](Release(root), **options)


def problems(report: CheckReport, severity: str = "error") -> dict[str, tuple[str, ...]]:
    return {problem.what: problem.places for problem in report.problems if problem.severity == severity}


def test_counts_stand_beside_both_published_tables(root):
    counts = {part.part: part for part in check(root).counts}
    assert counts["FungiTastic-OpenSet-Val"].found == Count(observations=3, photos=3, classes=3, unknown_classes=1)
    published = counts["FungiTastic-DNA-Test"].published
    assert (published[TABLE_2].photos, published[TABLE_9].photos) == (5117, 5105)


def test_a_sound_release_has_no_errors_and_repeated_dna_rows_are_a_note(root):
    report = check(root)
    assert report.sound and problems(report) == {}
    assert any("DNA-Test is also in ClosedSet-Test" in what for what in problems(report, "note"))


@pytest.mark.parametrize(
    ("path", "old", "new", "what", "place"),
    [
        (VAL, "3900000001", "2238000003", "an observation is in two splits", f"{VAL}, line 2: observation 2238000003"),
        (VAL, "JPG,2,jord", "JPG,-1,jord", "an unknown species (-1) in a closed set", f"{VAL}, line 2"),
        (VAL, "JPG,2,jord", "JPG,7,jord", "class ids do not count from 0 without gaps", TRAIN),
        (VAL, "JPG,2,jord", "JPG,1,jord", "a class id has several names", "id 1: Amanita muscaria var. formosa Pers."),
        (TRAIN, "3-2238000001", "0-2238000001", "a photo is listed more than once in a file", f"{TRAIN}, line 2"),
    ],
)
def test_what_is_broken_or_leaks_is_named_with_file_and_line(root, path, old, new, what, place):
    text = (root / path).read_text()
    (root / path).write_text(text.replace(old, new))
    found = problems(check(root))
    assert what in found and any(listed.startswith(place) for listed in found[what])


def save(path: Path, seed: int, quality: int = 90) -> None:
    rng = np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    coarse = Image.fromarray(rng.integers(0, 255, (9, 9, 3), dtype=np.uint8))
    coarse.resize((160, 120), Image.Resampling.BICUBIC).save(path, "JPEG", quality=quality)


def add_photos(root: Path) -> None:
    for split, names in {
        "train": ["0-2238000001", "3-2238000001", "0-2238000002", "0-2238000003"],
        "val": ["0-3900000001", "0-3900000002", "0-3900000003"],
        "test": ["0-4200000001", "0-4200000002"],
    }.items():
        for name in names:
            save(root / "FungiTastic" / split / "300p" / f"{name}.JPG", seed=int(name[2:]) + int(name[0]))


def test_photos_that_are_absent_or_broken_are_listed(root):
    add_photos(root)
    (root / "FungiTastic/val/300p/0-3900000002.JPG").unlink()
    broken = root / "FungiTastic/train/300p/0-2238000002.JPG"
    broken.write_bytes(broken.read_bytes()[:300])
    found = problems(check(root, media=True))
    assert found["a photo is listed but absent"] == ("FungiTastic/val/300p/0-3900000002.JPG",)
    assert found["a photo cannot be read"] == ("FungiTastic/train/300p/0-2238000002.JPG: a truncated photo",)


def test_a_recompressed_copy_in_another_split_is_found(root):
    add_photos(root)
    original = Image.open(root / "FungiTastic/train/300p/0-2238000003.JPG")
    original.resize((120, 90)).save(root / "FungiTastic/test/300p/0-4200000002.JPG", quality=60)
    found = problems(check(root, near_duplicates=True), "error")
    assert found["photos in two splits look the same"] == (
        "FungiTastic/train/300p/0-2238000003.JPG and FungiTastic/test/300p/0-4200000002.JPG",
    )


def test_a_mask_that_does_not_fit_is_named(root):
    (root / "masks").mkdir()
    rows = {"file_name": ["0-2238000001.JPG"], "label": ["cap"], "width": [2], "height": [2], "rle": [[9, 0, 0, 1, 1]]}
    pl.DataFrame(rows).write_parquet(root / "masks/FungiTastic-Mini-TrainMasks.parquet")
    assert "a mask does not fit its photo" in problems(check(root))
