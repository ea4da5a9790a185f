"""Boxes beside photos: read, joined to the photos, and refused line by line."""

from __future__ import annotations

import pytest

from fieldmark.errors import InputError
from fieldmark.releases import open_dataset

HEADER = "photo,x,y,width,height"
PHOTO = "train/Alba alba/0-0.jpg"


def test_boxes_of_a_folder_are_a_layer_of_its_photos(make_release):
    root = make_release()
    (root / "boxes.csv").write_text(f"{HEADER}\n{PHOTO},1,2,30.5,20\n")
    dataset = open_dataset("folder", root)
    drawn, nothing = dataset.layers["boxes"].read(["0-0.jpg", "0-1.jpg"])
    assert drawn[:4] == (1, 2, 30.5, 20) and drawn.written_in.endswith("boxes.csv, line 2") and nothing is None
    row = dataset.media.filter(media_id="0-0.jpg").row(0, named=True)
    assert [row[f"box_{side}"] for side in ("x", "y", "width", "height")] == [1, 2, 30.5, 20]


def test_a_folder_without_boxes_has_no_such_layer(make_release):
    assert "boxes" not in open_dataset("folder", make_release()).layers


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (f"{PHOTO},1,2,0,20", r"line 3: found width = 0, expected a number of pixels, more than 0"),
        (f"{PHOTO},-1,2,5,20", r"line 3: found x = -1, expected a number of pixels, at least 0"),
        (f"{PHOTO},1,,5,20", r"line 3: found no y"),
        (f"{PHOTO},1,two,5,20", r"line 3: found 'two' as y, expected a number"),
        (f"{PHOTO},nan,2,5,20", r"line 3: found x = nan"),
        ("nowhere.jpg,1,2,5,20", r"line 3: found 'nowhere.jpg', which is not there"),
        ("train/Alba alba/0-1.jpg,1,2,5,20", r"line 3: found 'train/Alba alba/0-1.jpg' again"),
        (",1,2,5,20", r"line 3: found no file, expected the path of a photo"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(make_release, line, sentence):
    root = make_release()
    (root / "boxes.csv").write_text(f"{HEADER}\ntrain/Alba alba/0-1.jpg,1,2,3,4\n{line}\n")
    with pytest.raises(InputError, match=f"boxes.csv, {sentence}"):
        open_dataset("folder", root)


def test_a_table_without_a_column_is_refused(make_release):
    root = make_release()
    (root / "boxes.csv").write_text(f"photo,x,y,width\n{PHOTO},1,2,3\n")
    with pytest.raises(InputError, match="expected a column 'height'"):
        open_dataset("folder", root)


def test_boxes_may_be_a_table_of_tabs_with_names_and_decimal_commas_of_its_own(make_release):
    root = make_release()
    (root / "boxes.tsv").write_text("filename\txmin\tymin\tw\th\n0-0.jpg\t1,5\t2\t30\t20\n")
    dataset = open_dataset("folder", root)
    box = dataset.layers["boxes"]("0-0.jpg")
    assert box[:4] == (1.5, 2, 30, 20) and box.written_in.endswith("boxes.tsv, line 2")
    assert any("photo from `filename`" in remark for remark in dataset.remarks)
