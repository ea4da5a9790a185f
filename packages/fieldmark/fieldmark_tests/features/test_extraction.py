from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image

from fieldmark.errors import InputError
from fieldmark.features import extraction
from fieldmark.features import store as stores
from fieldmark.features.extraction import extract, fill_store
from fieldmark.features.photos import Preprocessing, decode_square
from fieldmark.features.store import FeatureStore
from fieldmark_tests.peak_memory import peak_bytes


class MeanColor:
    """An extractor that costs nothing and counts what it is asked to do."""

    def __init__(self, fail_after: int | None = None) -> None:
        self.photos, self.fail_after = 0, fail_after

    def decode(self, data: bytes) -> np.ndarray:
        return decode_square(data, Preprocessing(8, 1.0, (0.5,) * 3, (0.5,) * 3))

    def __call__(self, squares: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        if self.fail_after is not None and self.photos >= self.fail_after:
            raise KeyboardInterrupt
        self.photos += len(squares)
        means = np.stack([square.mean(axis=(0, 1)) for square in squares])
        return {"features": means.astype(np.float16), "logits": means.astype(np.float32)}


def photo(shade: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (20, 20), (shade, shade, shade)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def photos() -> dict[str, bytes]:
    return {f"p{shade}": photo(shade) for shade in range(10)}


def test_features_come_in_the_order_of_the_photos(photos, tmp_path):
    ids = sorted(photos, reverse=True)
    features = extract(ids, photos.__getitem__, MeanColor(), FeatureStore(tmp_path, "x"))
    assert features[:, 0].tolist() == list(range(9, -1, -1)) and features.dtype == np.float32


def test_nothing_is_computed_twice_even_under_another_name(photos, tmp_path):
    extractor = MeanColor()
    extract(list(photos), photos.__getitem__, extractor, FeatureStore(tmp_path, "x"))
    renamed = {f"renamed-{name}": data for name, data in photos.items()}
    extract(list(renamed), renamed.__getitem__, extractor, FeatureStore(tmp_path, "x"))
    assert extractor.photos == 10


def test_an_interrupted_extraction_goes_on_where_it_stopped(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(extraction, "BLOCK_PHOTOS", 3)
    with pytest.raises(KeyboardInterrupt):
        extract(list(photos), photos.__getitem__, MeanColor(fail_after=6), FeatureStore(tmp_path, "x"))
    second = MeanColor()
    extract(list(photos), photos.__getitem__, second, FeatureStore(tmp_path, "x"))
    assert second.photos == 4


def test_broken_photos_are_all_found_and_the_good_ones_kept(photos, tmp_path):
    broken = {**photos, "bad": photo(3)[:40], "worse": b""}
    with pytest.raises(InputError, match=r"^at bad: found 40 bytes that are not a photo.*1 more cannot be read"):
        extract(
            list(broken), broken.__getitem__, MeanColor(), FeatureStore(tmp_path, "x"), where=lambda name: f"at {name}"
        )
    assert len(FeatureStore(tmp_path, "x")) == 10


class WideFeatures:
    """An extractor of many features that costs nothing."""

    def decode(self, data: bytes) -> bytes:
        return data

    def __call__(self, pixels: Sequence[bytes]) -> dict[str, np.ndarray]:
        return {"features": np.zeros((len(pixels), 20_000), dtype=np.float16)}


def test_filling_a_store_takes_no_more_memory_for_more_photos(tmp_path, monkeypatch):
    monkeypatch.setattr(extraction, "BLOCK_PHOTOS", 8)
    monkeypatch.setattr(stores, "LEAST_IN_BLOCK", 16)
    monkeypatch.setattr(stores, "MOST_IN_BLOCK", 16)

    def peak(photos: int) -> int:
        names = [str(number) for number in range(photos)]
        store = FeatureStore(tmp_path / names[-1], "x")
        return peak_bytes(lambda: fill_store(names, str.encode, WideFeatures(), store))

    few, many = peak(100), peak(400)
    all_features = 2 * 20_000 * 400
    assert many < 1.5 * few and many < 0.3 * all_features
