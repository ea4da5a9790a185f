"""Crops of the photos of a part: by boxes and masks of the release, and for loose photos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.crops import PhotoBoxes
from fieldmark.methods.photo_crops import boxes_of
from fieldmark.questions.items import loose_items
from fieldmark.releases import open_dataset
from fieldmark.tables.media import PHOTO
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark.views.parts import Part, loose_media


def train_of(root: Path) -> Part:
    return open_benchmark(BENCHMARKS["folder"], open_dataset("folder", root)).view.train


def test_boxes_of_the_release_are_cut_and_photos_without_one_are_counted(make_release):
    root = make_release()  # photos of 48 x 40 pixels
    (root / "boxes.csv").write_text("photo,x,y,width,height\ntrain/Alba alba/0-0.jpg,12,10,12,12\n")
    boxes = boxes_of(train_of(root), "boxes", margin=0.0)
    assert boxes.boxes == {"0-0.jpg": pytest.approx((0.25, 0.25, 0.5, 0.55), abs=1e-5)}
    assert boxes.remark == (
        "crop=boxes: 11 of 12 photos have no box, or one that covers nearly everything, and are shown whole."
    )


def test_a_box_beyond_its_photo_is_refused_with_file_and_line(make_release):
    root = make_release()
    (root / "boxes.csv").write_text("photo,x,y,width,height\ntrain/Alba alba/0-0.jpg,12,10,12,31.5\n")
    with pytest.raises(InputError, match=r"boxes.csv, line 2: found a box to x = 24, y = 41.5 .* 48 x 40 pixels"):
        boxes_of(train_of(root), "boxes", margin=0.0)


def test_masks_of_the_release_are_cut(fungi_world):
    dataset = open_dataset("fungitastic", fungi_world, "Mini")
    part = open_benchmark(BENCHMARKS["fungitastic-mini/closed"], dataset).view.train
    boxes = boxes_of(part, "masks", margin=0.1)
    assert boxes.boxes and boxes.photos == len(part)
    media_id, box = next(iter(boxes.boxes.items()))
    mask = np.logical_or.reduce(list(dataset.layers["masks"](media_id).values()))
    left, top, right, bottom = box.pixels(mask.shape[1], mask.shape[0])
    assert mask[top:bottom, left:right].sum() == mask.sum() and (right - left) * (bottom - top) < mask.size


@pytest.mark.parametrize("crop", ["masks", "boxes"])
def test_what_a_release_does_not_have_is_refused_in_a_sentence(make_release, crop):
    photos = [make_release() / "train/Alba alba/0-0.jpg"]
    loose = Part(loose_items(photos), media=loose_media(PHOTO, photos))
    for part in (train_of(photos[0].parents[2]), loose):
        with pytest.raises(MisuseError, match=f"crop={crop}: there are no {crop} of these photos.*crop=saliency"):
            boxes_of(part, crop, 0.1)


def test_without_a_crop_nothing_is_read(make_release):
    part = train_of(make_release())
    assert boxes_of(Part(part.items), "", 0.1) == boxes_of(Part(part.items), "none", 0.1) == PhotoBoxes()


def test_a_loose_photo_is_cropped_as_the_same_photo_of_a_release(make_release, tmp_path):
    photos = [make_release() / "train/Alba alba/0-0.jpg"]
    loose = Part(loose_items(photos), media=loose_media(PHOTO, photos))
    part = train_of(photos[0].parents[2])
    part = part.take(np.flatnonzero(part.items["item_id"] == "0-0.jpg"))
    found = boxes_of(part, "saliency", 0.1, tmp_path)
    again = boxes_of(loose, "saliency", 0.1, tmp_path)
    assert found.photos == again.photos == 1 and list(again.boxes.values()) == list(found.boxes.values())
