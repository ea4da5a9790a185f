"""People's own folders as they come: what is unambiguous is read with a remark, the rest refused, nothing lost."""

from __future__ import annotations

import shutil
import unicodedata
import zipfile
from pathlib import Path

import polars as pl
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.models import find_photos
from fieldmark.releases import Dataset, open_dataset, release_of
from fieldmark.releases.checks import CHECKS
from fieldmark.views.open_benchmark import open_benchmark

NAMES = ("Alba alba", "Alba nigra", "Rubra vera")


def touch(root: Path, *paths: str) -> Path:
    """Empty files: nothing here opens a photo."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    return root


def classes(dataset: Dataset) -> dict[str, list[str]]:
    """The labels of each part, in order."""
    table = dataset.to_frame().sort("path").with_columns(part=pl.col("parts").list.first())
    return {str(part): group["label"].to_list() for (part,), group in table.group_by("part", maintain_order=True)}


def remarks(dataset: Dataset) -> str:
    return " ".join(dataset.remarks)


@pytest.mark.parametrize(
    ("train", "val", "test"),
    [("train", "valid", "test"), ("Training", "Validation", "Testing"), ("train_set", "dev", "TEST")],
)
def test_parts_go_by_other_names_and_capitals_and_that_is_said(tmp_path, train, val, test):
    touch(tmp_path, *(f"{part}/{name}/{part}-{name}.jpg" for part in (train, val, test) for name in "ab"))
    dataset = open_dataset("folder", tmp_path)
    assert classes(dataset) == {"train": ["a", "b"], "val": ["a", "b"], "test": ["a", "b"]}
    assert f"`{val}/` as val" in remarks(dataset)


def test_two_folders_for_one_part_are_refused(tmp_path):
    touch(tmp_path, "train/a/1.jpg", "val/a/2.jpg", "valid/a/3.jpg")
    with pytest.raises(InputError, match=r"found the folders val/ and valid/, expected one for val"):
        open_dataset("folder", tmp_path)


def test_names_of_parts_are_classes_where_nothing_is_called_train(tmp_path):
    touch(tmp_path, "valid/1.jpg", "invalid/2.jpg")
    assert open_dataset("folder", tmp_path).taxa["label"].to_list() == ["invalid", "valid"]


def test_a_folder_beside_the_parts_is_named_with_what_it_holds(tmp_path):
    touch(tmp_path, "train/a/1.jpg", "train/b/2.jpg", "holdout/a/3.jpg", "holdout/a/4.jpg")
    assert "(train, val, test) are not read: holdout/ (2 files)." in remarks(open_dataset("folder", tmp_path))
    problems = {problem.what: problem for problem in CHECKS["folder"](release_of("folder", tmp_path)).problems}
    assert problems["a folder is no part (train, val, test) and is skipped"].severity == "warning"


@pytest.mark.parametrize(
    ("folders", "labels", "how"),
    [
        (
            ["Amanita/muscaria", "Russula/alba", "Amanita/alba", "Russula/vesca"],
            "Amanita alba|Amanita muscaria|Russula alba|Russula vesca",
            "genus and",
        ),
        (["Amanita/Amanita muscaria", "Russula/Russula_alba"], "Amanita muscaria|Russula_alba", "a group and a class"),
        (["herbarium/1355", "photo/1355", "photo/1356"], "1355|1356", "domain and class"),
        (["Alba alba/specimen 1", "Rubra vera/specimen 2"], "Alba alba|Rubra vera", "a class and something in it"),
        (["photos/fox", "photos/lynx"], "fox|lynx", "the only folder there"),
    ],
)
def test_folders_in_folders_are_read_where_only_one_reading_is_left(tmp_path, folders, labels, how):
    touch(tmp_path, *(f"{folder}/{number}.jpg" for number, folder in enumerate(folders)))
    dataset = open_dataset("folder", tmp_path)
    assert "|".join(dataset.taxa["label"]) == labels and how in remarks(dataset)
    assert ("domain" in dataset.media.columns) == (how == "domain and class")


def test_groups_of_classes_are_known_by_the_same_classes_in_test(tmp_path):
    pairs = ("mammals/fox", "mammals/lynx", "birds/owl")
    touch(tmp_path, *(f"{part}/{pair}/{part}.jpg" for part in ("train", "test") for pair in pairs))
    dataset = open_dataset("folder", tmp_path)
    assert dataset.taxa["label"].to_list() == ["fox", "lynx", "owl"] and "domain" not in dataset.media.columns


def test_folders_that_may_be_classes_or_specimens_are_refused(tmp_path):
    touch(tmp_path, "fox/17/1.jpg", "fox/18/2.jpg", "lynx/19/3.jpg")
    with pytest.raises(InputError, match=r"found photos 2 folders deep \(fox/17/1.jpg\), .*Which folder is the class"):
        open_dataset("folder", tmp_path)


def test_photos_below_a_class_belong_to_it(tmp_path):
    touch(tmp_path, "fox/1.jpg", "fox/night/2.jpg", "lynx/3.jpg")
    dataset = open_dataset("folder", tmp_path)
    assert classes(dataset) == {"None": ["fox", "fox", "lynx"]} and "fox/night/2.jpg" in remarks(dataset)


def test_photos_beside_the_classes_are_named_and_not_read(tmp_path):
    touch(tmp_path, "fox/1.jpg", "lynx/2.jpg", "map.png", "train.txt")
    dataset = open_dataset("folder", tmp_path)
    assert len(dataset.media) == 2 and "beside the folders of classes and are not read: map.png" in remarks(dataset)


@pytest.mark.parametrize("part", ["", "train/"])
def test_photos_without_any_class_are_refused_with_a_way_out(tmp_path, part):
    touch(tmp_path, f"{part}1.jpg", f"{part}2.jpg")
    with pytest.raises(InputError, match=r"found 2 photos without a class, .* or write labels.csv \(file,label\)"):
        open_dataset("folder", tmp_path)


@pytest.mark.parametrize("inner", ["", "images/"])
def test_a_test_without_labels_is_answered_and_not_scored(tmp_path, inner):
    touch(tmp_path, *(f"{part}/{name}/{part}{name}.jpg" for part in ("train", "val") for name in "ab"))
    touch(tmp_path, f"test/{inner}1.jpg", f"test/{inner}2.jpg")
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", tmp_path))
    assert len(opened.items["test"]) == 2 and set(opened.truth) == {"val"}
    assert opened.view.labels.names == ("a", "b")
    assert "2 photos of test have no labels" in remarks(opened.dataset)


def test_what_systems_leave_behind_is_no_photo_and_no_class(tmp_path):
    touch(tmp_path, "fox/1.JPG", "fox/._1.jpg", "fox/Thumbs.db", "lynx/2.Jpeg", "lynx/.DS_Store", "desktop.ini")
    touch(tmp_path, "__MACOSX/fox/._1.jpg", "__MACOSX/fox/1.jpg")
    dataset = open_dataset("folder", tmp_path)
    assert dataset.media["path"].to_list() == ["fox/1.JPG", "lynx/2.Jpeg"] and not dataset.remarks
    assert [path.name for path in find_photos([tmp_path])] == ["1.JPG", "2.Jpeg"]


def test_other_files_are_counted_and_named(tmp_path):
    touch(tmp_path, "fox/1.jpg", "fox/1.CR2", "lynx/2.jpg", "lynx/2.gif")
    assert "2 file(s) are no photos or recordings and are not read: fox/1.CR2, lynx/2.gif." in remarks(
        open_dataset("folder", tmp_path)
    )


def test_links_to_folders_are_followed_and_circles_refused(tmp_path):
    touch(tmp_path / "elsewhere", "1.jpg")
    root = touch(tmp_path / "root", "lynx/2.jpg")
    (root / "fox").symlink_to(tmp_path / "elsewhere")
    assert open_dataset("folder", root).media["path"].to_list() == ["fox/1.jpg", "lynx/2.jpg"]
    (root / "lynx" / "back").symlink_to("..")
    with pytest.raises(InputError, match=r"folders nested too deep, .* Does a link lead back"):
        open_dataset("folder", root)


def test_one_class_in_two_spellings_is_one_class(tmp_path):
    touch(tmp_path, "train/Bolet doré/1.jpg", "train/Rubra vera/2.jpg", "train/Fox/3.jpg")
    touch(
        tmp_path, f"test/{unicodedata.normalize('NFD', 'Bolet doré')}/4.jpg", "test/rubra_vera/5.jpg", "test/fox/6.jpg"
    )
    dataset = open_dataset("folder", tmp_path)
    assert dataset.taxa["label"].to_list() == ["Bolet doré", "Fox", "Rubra vera"]
    assert "`fox` as `Fox`" in remarks(dataset) and "`rubra_vera` as `Rubra vera`" in remarks(dataset)


def test_two_spellings_in_one_part_are_two_classes(tmp_path):
    touch(tmp_path, "train/a/1.jpg", "train/A/2.jpg", "test/a/3.jpg")
    dataset = open_dataset("folder", tmp_path)
    assert dataset.taxa["label"].to_list() == ["A", "a"] and "count as two: `A` and `a`" in remarks(dataset)


def test_a_zip_is_read_where_it_lies_and_its_only_folder_is_the_root(make_release, tmp_path):
    root = make_release()
    (root / "observations.csv").write_text("file,observation\ntrain/Alba alba/0-0.jpg,o\ntrain/Alba alba/0-1.jpg,o\n")
    for inner in ("", "my photos/"):
        packed = tmp_path / f"photos{len(inner)}.zip"
        with zipfile.ZipFile(packed, "w") as archive:
            for path in sorted(root.rglob("*.*")):
                archive.write(path, f"{inner}{path.relative_to(root)}")
            archive.writestr(f"__MACOSX/{inner}train/Alba alba/._0-0.jpg", b"")
        dataset, plain = open_dataset("folder", packed), open_dataset("folder", root)
        assert dataset.media.equals(plain.media) and dataset.observations.equals(plain.observations)
        assert dataset.media_files.read("0-0.jpg") == plain.media_files.read("0-0.jpg")
        assert remarks(dataset) == ("Read `my photos/`, the only folder there." if inner else "")


def test_a_file_that_is_no_zip_is_refused_as_a_root(tmp_path):
    touch(tmp_path, "fox/1.jpg", "photos.tar")
    with pytest.raises(
        InputError, match=r"photos.tar: found a file, expected the folder of a release, or a .zip of it"
    ):
        open_dataset("folder", tmp_path / "photos.tar")


def test_a_real_folder_with_a_part_called_valid_is_read_whole(real_data):
    root = real_data / "camera_traps_jura"
    dataset = open_dataset("folder", root)
    assert len(dataset.media) == len(list(root.rglob("*.jpg"))) == 165
    assert set(dataset.media["parts"].explode()) == {"train", "val"}
    assert remarks(dataset).count(".csv.gz` is not read") == 2


def test_the_verb_says_how_a_folder_was_read(make_release, run_main):
    root = make_release()
    shutil.move(root / "val", root / "Valid")
    code, printed, _ = run_main("check", "folder", root)
    assert code == 0 and "note: Read `Valid/` as val." in printed
