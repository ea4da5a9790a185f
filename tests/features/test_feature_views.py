"""Features of several views of a photo, and quantized ones, as methods get them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.datasets import open_dataset
from fieldmark.features.embeddings import quantized
from fieldmark.features.settings import FeatureSettings
from fieldmark.opening import open_benchmark
from fieldmark.supply import FeatureSource

LITTLE = {"backbone": "resnet10t", "weights": "random", "size": 32}


@pytest.fixture
def train(make_release):
    return open_benchmark(BENCHMARKS["folder"], open_dataset("folder", make_release())).view.train


def features(part, store: Path, **settings) -> np.ndarray:
    return FeatureSource(FeatureSettings(**{**LITTLE, **settings}), store).supply(part).features["photo"]


def test_features_are_the_mean_over_views_each_of_which_is_stored_once(train, tmp_path):
    plain = features(train, tmp_path / "store")
    both = features(train, tmp_path / "store", views="flips")
    stores = sorted((tmp_path / "store").iterdir())
    assert len(stores) == 2 and all(len(list(store.glob("*.keys.npy"))) == 1 for store in stores)
    mirrored = 2 * both - plain
    assert not np.allclose(mirrored, plain, atol=1e-3)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*.npy")}
    assert (features(train, tmp_path / "store", views="flips") == both).all()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*.npy")} == before


def test_quantized_features_share_the_store_with_plain_ones(train, tmp_path):
    plain = features(train, tmp_path / "store")
    few_bits = features(train, tmp_path / "store", embeddings="quantized")
    assert (few_bits == quantized(plain)).all() and len(list((tmp_path / "store").iterdir())) == 1


def test_a_run_says_how_its_photos_were_seen_and_its_model_sees_them_again_so(make_release, tmp_path):
    root = make_release()
    settings = {**LITTLE, "resize": "squash", "views": "flips", "embeddings": "quantized", "lengths": "given"}
    result = fieldmark.fit("folder", root, "centroid", tmp_path / "run", settings=settings)
    recorded = result.run.features
    assert (recorded["resize"], recorded["views"], recorded["embeddings"]) == ("squash", "flips", "quantized")
    photo = root / "test/Alba alba/0-4.jpg"
    stored = fieldmark.predict(tmp_path / "run", root).select(["0-4.jpg"]).scores
    again = fieldmark.load_model(tmp_path / "run").predict_photos([photo]).scores
    assert again == pytest.approx(stored, rel=1e-4, abs=1e-4)
