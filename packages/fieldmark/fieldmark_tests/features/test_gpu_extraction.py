"""Extraction as a GPU does it, rehearsed on the CPU: the same photos, keys and problems, in order."""

from __future__ import annotations

import io
import threading

import numpy as np
import pytest
import torch
from PIL import Image

from fieldmark.errors import InputError
from fieldmark.features import gpu_extraction
from fieldmark.features.backbones import Backbone
from fieldmark.features.extraction import LOOKS, extract
from fieldmark.features.gpu_extraction import GpuExtraction
from fieldmark.features.gpu_photos import decoded, looks_of, resized_squares
from fieldmark.features.jpegs import fits_gpu
from fieldmark.features.photo_blocks import PhotoBlock, look_of
from fieldmark.features.photos import Preprocessing, decode_square
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.store import FeatureStore, content_key
from fieldmark.work.blocks import blocks_of
from fieldmark_tests.features.test_square_readers import FilesBelow

HOW = Preprocessing(32, 0.875, (0.5,) * 3, (0.5,) * 3)


class Colors(torch.nn.Module):
    """A network whose features are the mean of each color."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward_features(self, batch):
        return batch

    def forward_head(self, batch, pre_logits):
        return batch.mean((2, 3)) * self.weight

    def get_classifier(self):
        return torch.nn.Identity()


def photo(number: int, size=(50, 40), form: str = "JPEG", **options) -> bytes:
    y, x = np.mgrid[: size[1], : size[0]] / 50
    pixels = 127 + 120 * np.stack([np.sin(x * 3 + number), np.cos(y * 2 + number), np.sin(x + y)], axis=2)
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, form, **options)
    return file.getvalue()


def turned(number: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return photo(number, exif=exif)


PHOTOS = {f"{number:03}": photo(number, (50, 40) if number % 3 else (38, 61)) for number in range(150)} | {
    "png": photo(1, form="PNG"),
    "turned": turned(2),
    "progressive": photo(3, progressive=True),
    "again": photo(0, (38, 61)),
}


@pytest.fixture
def backbone() -> Backbone:
    return Backbone("colors", "random", Colors(), HOW, decoder="gpu")


def test_only_complete_upright_baseline_jpegs_are_left_to_a_gpu():
    assert fits_gpu(PHOTOS["001"]) and fits_gpu(PHOTOS["001"] + b"what cameras add")
    assert not any(fits_gpu(PHOTOS[name]) for name in ("png", "turned", "progressive"))
    assert not fits_gpu(PHOTOS["001"][:-300]) and not fits_gpu(b"\xff\xd8\xff") and not fits_gpu(b"")
    assert not fits_gpu(photo(1, subsampling=0, quality=90)[:200])


@pytest.mark.parametrize("how", [HOW, Preprocessing(32, 1.0, (0.5,) * 3, (0.5,) * 3, "squash", mirrored=True)])
def test_squares_of_a_device_are_those_of_pillow_within_rounding(how):
    contents = [PHOTOS["000"], PHOTOS["001"], PHOTOS["003"]]
    squares = (
        resized_squares(decoded([np.frombuffer(bytearray(one), np.uint8) for one in contents], "cpu"), how)
        .permute(0, 2, 3, 1)
        .numpy()
        .astype(int)
    )
    expected = np.stack([decode_square(one, how) for one in contents]).astype(int)
    assert abs(squares - expected).max() <= 2
    looks = looks_of(torch.from_numpy(expected.astype(np.uint8)).permute(0, 3, 1, 2)).numpy().astype(int)
    assert abs(looks - np.stack([look_of(one) for one in expected.astype(np.uint8)])).max() <= 1


def test_features_looks_and_keys_are_those_of_an_extraction_by_the_cpu(tmp_path, backbone, monkeypatch):
    monkeypatch.setattr(gpu_extraction, "BATCH", 100)
    ids = list(PHOTOS)
    store = FeatureStore(tmp_path, backbone.digest)
    by_cpu = FeatureStore(tmp_path, "cpu")
    expected = extract(ids, PHOTOS.__getitem__, Backbone("colors", "random", Colors(), HOW), by_cpu)
    features = extract(ids, PHOTOS.__getitem__, backbone, store)
    assert abs(features - expected).max() < 0.01 and len(store) == len(ids) - 1
    keys = [content_key(PHOTOS[one]) for one in ids]
    difference = store.get(keys, LOOKS).astype(int) - by_cpu.get(keys, LOOKS).astype(int)
    assert abs(difference).max() <= 2
    again = extract(ids, PHOTOS.__getitem__, backbone, FeatureStore(tmp_path, backbone.digest))
    assert np.array_equal(again, features)


def test_damaged_photos_are_named_and_the_others_stored(tmp_path, backbone):
    inside = bytearray(PHOTOS["004"])
    middle = PHOTOS["004"].index(b"\xff\xda") + 40
    inside[middle : middle + 2] = b"\xff\xd8"  # the decoder of the device gives up; Pillow has the last word
    photos = {**PHOTOS, "004": bytes(inside), "005": PHOTOS["005"][:-300], "006": b"no photo"}
    store = FeatureStore(tmp_path, backbone.digest)
    with pytest.raises(InputError, match=r"00[456]: found .* more cannot be read either"):
        extract(list(photos), photos.__getitem__, backbone, store)
    assert len(store) >= len(photos) - 4


def test_an_error_of_the_network_or_an_interruption_ends_all_threads(tmp_path, backbone):
    def fails(squares):
        raise RuntimeError("the device is lost")

    before = threading.active_count()
    backbone.__dict__["on_device"] = fails
    with pytest.raises(RuntimeError, match="the device is lost"):
        extract(list(PHOTOS), PHOTOS.__getitem__, backbone, FeatureStore(tmp_path, backbone.digest))
    assert threading.active_count() == before


def test_precision_and_decoder_have_stores_of_their_own_and_the_plain_ones_that_of_before(backbone):
    plain = Backbone("colors", "random", Colors(), HOW)
    half = Backbone("colors", "random", Colors(), HOW, precision="half")
    assert len({plain.digest, half.digest, backbone.digest}) == 3
    assert plain.recipe == [1, plain.recipe[1]] and "precision" not in plain.about
    assert half.about["precision"] == "half" and backbone.about["decoder"] == "gpu"
    assert "precision" not in FeatureSettings().to_data()
    assert FeatureSettings(precision="half").to_data()["precision"] == "half"


def test_features_too_large_for_half_precision_are_computed_in_single(backbone):
    half = Backbone("colors", "random", Colors(), HOW, precision="half")
    square = decode_square(PHOTOS["001"], HOW)
    expected = Backbone("colors", "random", Colors(), HOW)([square])["features"]
    lost = {"features": np.full((1, 3), np.inf, np.float16)}
    assert np.array_equal(half.checked(lost, lambda: [square])["features"], expected)


def test_processes_read_for_the_device_and_decode_beside_it(tmp_path, backbone):
    folder = tmp_path / "photos"
    folder.mkdir()
    for name, data in PHOTOS.items():
        (folder / name).write_bytes(data)
    ids = list(PHOTOS)
    blocks = [PhotoBlock(block, [None] * len(block), FilesBelow(folder).read) for block in blocks_of(ids, 10)]
    work = GpuExtraction(backbone.on_device, HOW, set(), "cpu", processes=2, folder=tmp_path / "store")
    finished = list(work(iter(blocks), len(ids)))
    assert [photo.media_id for each in finished for photo in each.photos] == ids
    assert [photo.key for each in finished for photo in each.photos] == [content_key(one) for one in PHOTOS.values()]
    features = np.concatenate([each.outputs["features"] for each in finished])
    expected = Backbone("colors", "random", Colors(), HOW)([decode_square(one, HOW) for one in PHOTOS.values()])
    assert abs(features - expected["features"]).max() < 0.01
