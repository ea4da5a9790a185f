from __future__ import annotations

import shutil

import pytest

from fieldmark.releases.checks import CHECKS, CheckReport
from fieldmark.releases.fgvcx_fungi_check import FINAL, PUBLISHED
from fieldmark.storage.release import Release
from fieldmark_tests.fixtures import save_photo
from fieldmark_tests.releases.fgvcx_by_hand import edit_json, folder_of, write_fgvcx


@pytest.fixture
def root(tmp_path):
    return write_fgvcx(tmp_path / "release")


def check(root, **options) -> CheckReport:
    return CHECKS["fgvcx-fungi-2018"](Release(root), **options)


def problems(report: CheckReport, severity: str) -> dict[str, tuple[str, ...]]:
    return {problem.what: problem.places for problem in report.problems if problem.severity == severity}


def test_a_sound_release_has_no_errors_and_names_what_is_double(root):
    report = check(root, media=True)
    assert report.sound and problems(report, "error") == {}
    notes = problems(report, "note")
    assert notes["a name stands for several category ids (two names do as released)"] == ("Inocybe rimosa: 0 and 1",)
    assert [(part.part, part.found.photos, part.found.classes) for part in report.counts] == [
        ("train", 20, 5), ("val", 10, 5), ("test", 10, None),
    ]  # fmt: skip
    assert report.counts[1].published[FINAL].photos == 4182


def test_counts_that_nobody_published_are_a_warning(root):
    what = "the counts are neither those of the draft nor those of the final release: "
    counted = "5 species, 20 photos of train, 10 photos of val, 10 photos of test"
    assert what + counted in problems(check(root), "warning")


@pytest.mark.parametrize(("species", "edition"), [(1394, "the final release"), (3000, "the draft")])
def test_the_edition_is_told_by_its_counts(tmp_path, species, edition):
    root = write_fgvcx(tmp_path / "release", solution=False, photos=False)
    for part in ("train.json", "test.json"):
        (root / part).unlink()

    def grow(data):
        data["categories"] = [{"id": number, "name": f"Genus epithet{number}"} for number in range(species)]
        final = PUBLISHED["val"][FINAL].photos
        data["images"] = [{"id": number, "file_name": f"images/x/{number}.JPG"} for number in range(final)]
        data["annotations"] = [{"image_id": number, "category_id": number % species} for number in range(final)]

    edit_json(root / "val.json", grow)
    notes = problems(check(root), "note")
    assert any(what.startswith(f"the counts are those of {edition}") for what in notes), notes


@pytest.mark.parametrize(
    ("file", "change", "what", "place"),
    [
        ("train.json", lambda d: d["annotations"].pop(0), "an image has no annotation", "train.json: image 8229"),
        (
            "train.json",
            lambda d: d["images"][1].update(id=8229),
            "an image id is listed more than once",
            "train.json: 8229",
        ),
        (
            "train.json",
            lambda d: d["annotations"].append({"image_id": 8229, "category_id": 3}),
            "an image is in several categories",
            "train.json: image 8229",
        ),
        (
            "val.json",
            lambda d: d["annotations"][0].update(category_id=9),
            "an annotation with a category that is not listed",
            "val.json: 9",
        ),
        (
            "val.json",
            lambda d: d["images"][0].update(file_name=f"images/{folder_of(0)}/train-0.JPG"),
            "a photo is in two parts",
            f"images/{folder_of(0)}/train-0.JPG: train.json and val.json",
        ),
        ("val.json", lambda d: d["categories"][0].update(name="X y"), "a category id has several names", "category 0"),
    ],
)
def test_what_does_not_fit_is_named_with_its_file(root, file, change, what, place):
    edit_json(root / file, change)
    report = check(root)
    assert not report.sound
    assert any(found.startswith(place) for found in problems(report, "error")[what])


def test_ids_without_a_photo_and_photos_without_an_entry_are_named(root):
    (root / "images" / folder_of(3) / "val-0.JPG").unlink()
    save_photo(root / "test" / "stray.JPG", (1, 2, 3), 0)
    report = check(root)
    assert problems(report, "error")["an id has no photo"][0].endswith(f"images/{folder_of(3)}/val-0.JPG")
    assert problems(report, "warning")["a photo has no entry"] == ("test/stray.JPG",)


def test_a_folder_that_lost_its_space_is_a_note_and_no_missing_photos(root):
    folder = root / "images" / folder_of(2)
    folder.rename(folder.with_name(folder.name.rstrip()))
    report = check(root)
    assert report.sound and any("lost the end of its name" in what for what in problems(report, "note"))


def test_missing_parts_are_warnings_and_nothing_else_is_made_of_them(root):
    shutil.rmtree(root / "images")
    (root / "train.json").unlink()
    report = check(root)
    assert report.sound
    assert problems(report, "warning")["a file of annotations is missing"] == ("train.json",)
    assert problems(report, "warning")["a folder of photos is missing"] == ("images/",)


def test_a_solution_is_checked_against_the_photos_and_categories(root):
    lines = (root / "solution.csv").read_text().splitlines()
    (root / "solution.csv").write_text("\n".join([*lines[:-2], lines[-2].replace(",4,", ",44,"), ""]))
    report = check(root)
    assert problems(report, "error")["the solution has a category that is not listed"] == ("solution.csv, line 10: 44",)
    assert len(problems(report, "warning")["a photo of test is not in the solution"]) == 1


def test_broken_photos_and_copies_across_parts_are_found(root):
    first, second = (root / "images" / folder_of(0) / name for name in ("train-0.JPG", "val-0.JPG"))
    shutil.copy(first, second)
    (root / "images" / folder_of(1) / "train-0.JPG").write_bytes(b"no photo")
    report = check(root, near_duplicates=True)
    assert problems(report, "error")["a photo cannot be read"] == (
        f"images/{folder_of(1)}/train-0.JPG: 8 bytes that are not a photo",
    )
    pair = f"images/{folder_of(0)}/train-0.JPG and images/{folder_of(0)}/val-0.JPG"
    assert pair in problems(report, "error")["photos in two splits look the same"]
