"""Features of several views of a photo, and quantized ones, as methods get them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.features.embeddings import quantized
from fieldmark.features.settings import FeatureSettings
from fieldmark.models.supply import FeatureSource
from fieldmark.releases import open_dataset
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark.views.parts import Part

LITTLE = {"backbone": "resnet10t", "weights": "random", "size": 32}


def train_of(root: Path) -> Part:
    return open_benchmark(BENCHMARKS["folder"], open_dataset("folder", root)).view.train


@pytest.fixture
def train(make_release):
    return train_of(make_release())


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


def test_logits_of_photos_are_refused_instead_of_being_features(train, tmp_path):
    with pytest.raises(MisuseError, match="output=logits is for recordings"):
        features(train, tmp_path / "store", output="logits")


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


def test_a_crop_is_part_of_the_key_and_photos_without_a_box_share_that_of_whole_ones(make_release, tmp_path):
    root = make_release()
    whole = features(train_of(root), tmp_path / "store")
    (root / "boxes.csv").write_text("photo,x,y,width,height\ntrain/Alba alba/0-0.jpg,12,10,12,12\n")
    cropped = features(train_of(root), tmp_path / "store", crop="boxes")
    assert [row for row in range(len(whole)) if not np.allclose(whole[row], cropped[row])] == [0]
    (store,) = (tmp_path / "store").iterdir()
    assert sum(len(np.load(path)) for path in store.glob("*.keys.npy")) == len(whole) + 1
    assert (features(train_of(root), tmp_path / "store", crop="none") == whole).all()
    wider = features(train_of(root), tmp_path / "store", crop="boxes", crop_margin=0.5)
    assert not np.allclose(wider[0], cropped[0])


def test_run_card_and_model_keep_the_crop_and_refuse_photos_that_cannot_have_it(make_release, tmp_path):
    root = make_release()
    (root / "boxes.csv").write_text("photo,x,y,width,height\ntrain/Alba alba/0-0.jpg,12,10,12,12\n")
    settings = {**LITTLE, "crop": "boxes", "crop_margin": 0.2}
    result = fieldmark.fit("folder", root, "centroid", tmp_path / "run", settings=settings)
    assert (result.run.features["crop"], result.run.features["crop_margin"]) == ("boxes", 0.2)
    assert any(remark.startswith("crop=boxes: 23 of 24 photos have no box") for remark in result.run.remarks)
    model = fieldmark.load_model(tmp_path / "run")
    assert "crop=boxes, crop_margin=0.2" in model.card()
    with pytest.raises(MisuseError, match="crop=boxes: there are no boxes of these photos"):
        model.predict_photos([root / "test/Alba alba/0-4.jpg"])


def test_a_loose_photo_is_cropped_by_saliency_as_in_the_release(make_release, tmp_path):
    root = make_release(per_class=4)
    for other in root.glob("*/Rubra vera"):
        shutil.rmtree(other)
    settings = {**LITTLE, "crop": "saliency"}
    result = fieldmark.fit("folder", root, "centroid", tmp_path / "run", settings=settings)
    assert any("U²-Netp" in sentence for sentence in result.run.external_data)
    stored = fieldmark.predict(tmp_path / "run", root).select(["0-2.jpg"]).scores
    again = fieldmark.load_model(tmp_path / "run").predict_photos([root / "test/Alba alba/0-2.jpg"]).scores
    assert again == pytest.approx(stored, rel=1e-4, abs=1e-4)
