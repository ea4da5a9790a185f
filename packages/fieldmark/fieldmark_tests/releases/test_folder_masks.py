from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import fieldmark
from fieldmark.errors import InputError


def save(path, value=0, size=(8, 6)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((size[1], size[0]), value, dtype=np.uint8)).save(path)


@pytest.fixture
def root(tmp_path):
    for name in ("a", "b_1", "c"):
        save(tmp_path / f"images/{name}.jpg")
    save(tmp_path / "masks/a.png", 255)
    save(tmp_path / "masks/b_1_seg0.png", 255, (16, 12))
    save(tmp_path / "masks/cap/a.jpg.png", 200)
    return tmp_path


def test_masks_are_found_by_the_name_of_the_photo(root):
    dataset = fieldmark.dataset("folder-masks", root)
    masks = dict(zip("abc", dataset.layers["masks"].read(["a.jpg", "b_1.jpg", "c.jpg"]), strict=True))
    assert set(masks["a"]) == {"fruiting_body", "cap"} and masks["b"]["fruiting_body"].shape == (12, 16)
    assert masks["c"] is None
    assert dataset.remarks == ()


def test_a_mask_without_a_photo_is_counted(root):
    save(root / "masks/z.png", 255)
    assert "1 mask(s) belong to no photo and are skipped." in fieldmark.dataset("folder-masks", root).remarks


def test_a_table_says_what_belongs_together_and_which_part(root):
    (root / "observations.csv").write_text("file,observation,part\na.jpg,1,train\nb_1.jpg,1,train\nc.jpg,2,test\n")
    dataset = fieldmark.dataset("folder-masks", root)
    assert dataset.media["observation_id"].to_list() == ["1", "1", "2"]
    assert dataset.media["parts"].to_list() == [["train"], ["train"], ["test"]]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("file\nx.jpg\n", "line 2: found 'x.jpg', which is not there"),
        ("file,part\na.jpg,spare\n", "line 2: found the part 'spare', expected train, val or test"),
    ],
)
def test_a_table_with_mistakes_is_refused_with_its_line(root, table, sentence):
    (root / "observations.csv").write_text(table)
    with pytest.raises(InputError, match=sentence):
        fieldmark.dataset("folder-masks", root)


def test_a_second_mask_of_a_part_is_refused(root):
    save(root / "masks/a_seg1.png", 255)
    with pytest.raises(InputError, match=r"a_seg1.png: found a second mask of a.jpg \(the other is masks/a.png\)"):
        fieldmark.dataset("folder-masks", root)


def test_two_photos_of_one_name_are_refused(root):
    for part in ("train", "val"):
        save(root / f"images/{part}/a.jpg")
    with pytest.raises(InputError, match=r"two photos called a.jpg"):
        fieldmark.dataset("folder-masks", root)


def test_a_folder_without_masks_says_what_is_expected(tmp_path):
    save(tmp_path / "images/a.jpg")
    with pytest.raises(InputError, match="no folder masks/, expected photos in images/ and their masks in masks/"):
        fieldmark.dataset("folder-masks", tmp_path)


def test_masks_of_zeros_and_ones_are_read_and_that_is_said(root):
    for path in root.glob("masks/**/*.png"):
        save(path, 1)
    dataset = fieldmark.dataset("folder-masks", root)
    assert dataset.layers["masks"]("a.jpg")["cap"].all()
    assert (
        "Read 3 of 3 masks, such as `masks/a.png`, by the values 0 and 1, of which 1 is the object." in dataset.remarks
    )


def test_parts_by_other_names_and_what_is_not_read_are_said(tmp_path):
    for part, name in (("Train", "a"), ("valid", "b")):
        save(tmp_path / f"images/{part}/{name}.JPG")
        save(tmp_path / f"masks/{name}.png", 255)
    (tmp_path / "images/Train/notes.txt").touch()
    save(tmp_path / "images/c.jpg")
    (tmp_path / "table.xlsx").touch()
    dataset = fieldmark.dataset("folder-masks", tmp_path)
    assert dataset.media["parts"].to_list() == [["train"], ["val"]]
    said = " ".join(dataset.remarks)
    assert "Read `Train/` as train, `valid/` as val." in said and "`table.xlsx` is not read" in said
    assert "Not read in `images/`: images/Train/notes.txt, images/c.jpg." in said


def test_a_table_of_semicolons_names_photos_without_their_ending(root):
    (root / "labels.csv").write_text("id;specimen\na;1\nb_1;1\n")
    assert fieldmark.dataset("folder-masks", root).media["observation_id"].to_list() == ["1", "1", "c.jpg"]
