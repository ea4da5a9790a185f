from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.exporting.coco import box_of, export_coco
from fieldmark.masks.coco_runlengths import coco_rle
from fieldmark_tests.releases.fgvcx_by_hand import write_fgvcx

OBSERVATIONS = """file,observation,date,latitude,longitude
train/Alba alba/0-0.jpg,o1,2021-09-30,55.5,9.5
"""


def exported(dataset, tmp_path, **options):
    export_coco(dataset, tmp_path / "out.json", **options)
    return json.loads((tmp_path / "out.json").read_text())


@settings(max_examples=60, deadline=None)
@given(arrays(np.bool_, st.tuples(st.integers(1, 7), st.integers(1, 7))))
def test_run_lengths_are_column_major_and_begin_with_background(mask):
    """Decoded pixel by pixel as the format is described: counts alternate from 0, down each column in turn."""
    rle = coco_rle(mask)
    height, width = rle["size"]
    pixels = [value for place, count in enumerate(rle["counts"]) for value in [place % 2] * count]
    assert len(pixels) == height * width
    decoded = [[pixels[column * height + row] for column in range(width)] for row in range(height)]
    assert decoded == mask.astype(int).tolist()
    assert all(count > 0 for count in rle["counts"][1:])


@settings(max_examples=40, deadline=None)
@given(arrays(np.bool_, st.tuples(st.integers(1, 6), st.integers(1, 6))))
def test_the_box_holds_the_mask_and_nothing_smaller_does(mask):
    left, top, width, height = (int(number) for number in box_of(mask))
    assert mask[top : top + height, left : left + width].sum() == mask.sum()
    inside = mask[top : top + height, left : left + width]
    assert not mask.any() or (inside[0].any() and inside[-1].any() and inside[:, 0].any() and inside[:, -1].any())


def test_a_folder_of_photos_keeps_observation_date_and_place(make_release, tmp_path):
    root = make_release()
    (root / "observations.csv").write_text(OBSERVATIONS)
    data = exported(fieldmark.dataset("folder", root), tmp_path)
    image = next(image for image in data["images"] if image["file_name"] == "train/Alba alba/0-0.jpg")
    assert image.items() >= {"observation_id": "o1", "date": "2021-09-30", "lat": 55.5, "lon": 9.5}.items()
    assert (image["width"], image["height"]) == (48, 40)
    assert data["categories"][0] == {"id": 1, "name": "Alba alba", "supercategory": "Alba", "genus": "Alba"}
    assert len(data["annotations"]) == len(data["images"]) == 24 and data["info"]["simulated"] is False
    ids = {image["id"] for image in data["images"]}
    assert len(ids) == 24 and {annotation["image_id"] for annotation in data["annotations"]} == ids


def test_ids_are_the_same_in_the_file_of_a_part_and_in_that_of_everything(make_release, tmp_path):
    dataset = fieldmark.dataset("folder", make_release())
    everything = {image["file_name"]: image["id"] for image in exported(dataset, tmp_path)["images"]}
    val = exported(dataset, tmp_path, part="val")
    assert val["images"] and all(everything[image["file_name"]] == image["id"] for image in val["images"])
    assert all(image["file_name"].startswith("val/") for image in val["images"])


def test_the_same_dataset_gives_the_same_bytes(make_release, tmp_path):
    dataset = fieldmark.dataset("folder", make_release())
    for name in ("a.json", "b.json"):
        export_coco(dataset, tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_a_part_that_is_not_there_is_misuse(make_release, tmp_path):
    with pytest.raises(MisuseError, match=r"no part called 'valid'\. Did you mean val\?"):
        export_coco(fieldmark.dataset("folder", make_release()), tmp_path / "out.json", part="valid")
    with pytest.raises(MisuseError, match="It has no parts"):
        export_coco(fieldmark.dataset("folder", make_release(flat=True, name="flat")), tmp_path / "x", part="val")


def test_masks_come_at_the_size_of_the_photo_with_their_parts(make_release, tmp_path):
    """A mask of the full size (twice the photo's) shrinks with it; photos of spores alone have no mask."""
    dataset = fieldmark.dataset("folder", make_release())
    body = np.zeros((80, 96), dtype=np.bool_)
    body[20:60, 10:50] = True
    cap = body & (np.arange(80) < 40)[:, None]
    masks = {"0-0.jpg": {"fruiting_body": body, "cap": cap}, "0-1.jpg": {"microscopic": body}}
    dataset = replace(dataset, layers={"masks": masks.get})
    data = exported(dataset, tmp_path, part="train")
    name_of = {image["id"]: image["file_name"].rpartition("/")[2] for image in data["images"]}
    drawn = {name_of[entry["image_id"]]: entry for entry in data["annotations"] if "segmentation" in entry}
    assert set(drawn) == {"0-0.jpg"}
    entry = drawn["0-0.jpg"]
    assert entry["segmentation"]["size"] == [40, 48] and sum(entry["segmentation"]["counts"]) == 40 * 48
    assert (entry["area"], entry["bbox"], entry["iscrowd"]) == (400, [5.0, 10.0, 20.0, 20.0], 0)
    assert [(part["name"], part["area"]) for part in entry["parts"]] == [("cap", 200)]


def test_photos_that_are_not_there_keep_the_size_that_the_release_tells(tmp_path):
    root = write_fgvcx(tmp_path / "release", photos=False, solution=False)
    written = export_coco(fieldmark.dataset("fgvcx-fungi-2018", root), tmp_path / "out.json")
    assert (written.images, written.annotations, written.without_size) == (40, 30, 10)
    data = json.loads((tmp_path / "out.json").read_text())
    assert all(("width" in image) == (not image["file_name"].startswith("test/")) for image in data["images"])


def test_a_release_opens_the_same_from_what_was_exported(tmp_path):
    root = write_fgvcx(tmp_path / "release")
    before = fieldmark.dataset("fgvcx-fungi-2018", root)
    for part in ("train", "val", "test"):
        export_coco(before, root / f"{part}.json", part=part)
    after = fieldmark.dataset("fgvcx-fungi-2018", root)
    assert after.taxa.equals(before.taxa) and after.observations.equals(before.observations)
    sizes = ("width_px", "height_px")  # which the photos of test did not have before
    assert after.media.drop(sizes).equals(before.media.drop(sizes)) and after.media["width_px"].null_count() == 0


def test_an_unknown_species_is_marked_and_has_no_annotation(make_release, tmp_path):
    dataset = fieldmark.dataset("folder", make_release())
    labels = pl.Series("label", ["-1", *dataset.observations["label"][1:]])
    data = exported(replace(dataset, observations=dataset.observations.with_columns(labels)), tmp_path)
    assert sum(image.get("unknown", False) for image in data["images"]) == 1
    assert len(data["annotations"]) == len(data["images"]) - 1
