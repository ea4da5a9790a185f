from __future__ import annotations

import json
import shutil

import numpy as np
import polars as pl
import soundfile
from PIL import Image

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.releases import open_dataset
from fieldmark.releases.checks import CHECKS, CheckReport
from fieldmark.storage.release import Release
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark_tests.fixtures import COLORS, save_photo


def problems(report: CheckReport) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {problem.what.partition(",")[0]: (problem.severity, problem.places) for problem in report.problems}


def test_sound_photos_are_counted_by_part_and_have_no_problems(make_release):
    report = CHECKS["folder"](Release(make_release()), media=True, near_duplicates=True)
    assert report.sound and not report.problems
    counts = {part.part: (part.found.observations, part.found.photos, part.found.classes) for part in report.counts}
    assert counts == {"train": (12, 12, 3), "val": (6, 6, 3), "test": (6, 6, 3)}


def test_photos_without_parts_are_counted_as_one(make_release):
    report = CHECKS["folder"](Release(make_release(flat=True)))
    assert [(part.part, part.found.photos) for part in report.counts] == [("all", 24)] and not report.problems


def test_what_is_broken_or_passed_over_or_cannot_be_learned_is_listed(make_release):
    root = make_release()
    save_photo(root / "test" / "Nova nova" / "n.jpg", COLORS["Rubra vera"], 5)
    save_photo(root / "train" / "Sola sola" / "s.jpg", COLORS["Rubra vera"], 6)
    (root / "train" / "Alba alba" / "phone.gif").write_bytes(b"x")
    (root / "val" / "Vacua vacua").mkdir()
    (root / "train" / "Alba nigra" / "1-0.jpg").write_bytes(b"torn")
    report = CHECKS["folder"](Release(root), media=True)
    assert not report.sound
    assert problems(report) == {
        "a photo cannot be read": ("error", ("train/Alba nigra/1-0.jpg: 4 bytes that are not a photo",)),
        "a class has nothing to learn from in train": ("warning", ("Nova nova",)),
        "a file is skipped": ("warning", ("train/Alba alba/phone.gif",)),
        "a folder of a class holds nothing that is read": ("warning", ("val/Vacua vacua",)),
        "a class is learned from a single observation": ("note", ("Sola sola",)),
    }


def write_tone(path, seed: int = 0, seconds: float = 25.0) -> None:
    rng = np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, rng.normal(0, 0.1, int(8000 * seconds)).astype(np.float32), 8000)


def test_recordings_that_are_text_or_were_cut_are_named_with_the_reason(tmp_path, run_main):
    for number in range(3):
        write_tone(tmp_path / "Alba" / f"{number}.flac", number)
    (tmp_path / "Alba" / "a.wav").write_text("not a recording")
    cut = tmp_path / "Alba" / "1.flac"
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    assert problems(CHECKS["folder"](Release(tmp_path)))["a recording cannot be read"] == (
        "error",
        ("Alba/a.wav: 15 bytes that are not a recording",),
    )
    report = CHECKS["folder"](Release(tmp_path), media=True)
    severity, places = problems(report)["a recording cannot be read"]
    assert severity == "error" and len(places) == 2
    assert places[0].startswith("Alba/1.flac: The recording was cut: ") and "of the 25.0 s" in places[0]
    assert places[1] == "Alba/a.wav: 15 bytes that are not a recording"
    for option in ("--media", "--photos"):
        code, printed, _ = run_main("check", "folder", tmp_path, option)
        assert code == 1 and "Alba/a.wav: 15 bytes" in printed


def test_recordings_are_compared_by_bytes_and_that_is_said(tmp_path, run_main):
    for number in range(3):
        write_tone(tmp_path / "Alba" / f"{number}.wav", number)
    shutil.copy(tmp_path / "Alba" / "0.wav", tmp_path / "Alba" / "copy.wav")
    found = problems(CHECKS["folder"](Release(tmp_path), near_duplicates=True))
    assert "recordings that sound the same: their bytes alone" in run_main("check", "folder", tmp_path)[1]
    assert found["the same recording is there twice (parts that are drawn keep copies together)"][0] == "note"


def test_copies_in_two_classes_are_found_without_parts_and_without_an_option(make_release):
    root = make_release(flat=True)
    shutil.copy(root / "Alba alba" / "0-0.jpg", root / "Alba nigra" / "copy.jpg")
    place = ("Alba alba/0-0.jpg and Alba nigra/copy.jpg",)
    assert problems(CHECKS["folder"](Release(root)))["the same photo is in two classes"] == ("warning", place)
    found = problems(CHECKS["folder"](Release(root), media=True, near_duplicates=True))
    assert found["photos in two classes look the same"] == ("warning", place)


def test_copies_in_two_parts_are_an_error(make_release):
    root = make_release()
    shutil.copy(root / "train" / "Alba alba" / "0-0.jpg", root / "test" / "Alba alba" / "copy.jpg")
    report = CHECKS["folder"](Release(root))
    place = ("train/Alba alba/0-0.jpg and test/Alba alba/copy.jpg",)
    assert problems(report)["the same photo is in two parts"] == ("error", place) and not report.sound


def test_photos_that_look_the_same_are_found_across_the_parts_that_fit_would_draw(make_release):
    root = make_release(flat=True)
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", root))
    train, test = (opened.items[part].filter(pl.col("label") == "Alba alba")["item_id"] for part in ("train", "test"))
    # Written over two photos, so that the draw stays as it is.
    blobs = Image.fromarray(np.random.default_rng(5).integers(0, 255, (6, 8, 3), np.uint8)).resize((160, 120))
    blobs.save(root / "Alba alba" / train[0], quality=95)
    blobs.save(root / "Alba alba" / test[0], quality=70)
    found = problems(CHECKS["folder"](Release(root), near_duplicates=True))
    severity, places = found["photos look the same in two parts that fit would draw (seed 0)"]
    assert severity == "error" and {train[0], test[0]} == {one.rpartition("/")[2] for one in places[0].split(" and ")}
    blobs.save(root / "Alba alba" / train[1], quality=70)
    save_photo(root / "Alba alba" / test[0], COLORS["Alba alba"], 77)
    assert (
        problems(CHECKS["folder"](Release(root), near_duplicates=True))[
            "photos of two observations look the same; with another seed fit may part them"
        ][0]
        == "note"
    )


def test_the_verb_checks_your_own_photos_and_refuses_what_is_no_release(make_release, run_main):
    code, printed, _ = run_main("check", "folder", make_release(), "--json")
    assert code == 0 and json.loads(printed)["sound"]
    for name in ("fungitastic", "fgvcx-fungi-2018", "birdclef-2020"):
        code, _, said = run_main("check", name, make_release(name=f"no {name}"))
        assert code == 1 and f"no {name}: found no part of {name}, expected the root of a release." in said
