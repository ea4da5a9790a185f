"""Engines: the quickest that agrees with the reference is used, and remembered."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fieldmark.errors import MisuseError
from fieldmark.features import engines
from fieldmark.features.backbones import load_torch_backbone
from fieldmark.features.efficientnet_lite import VARIANTS, LiteNetwork
from fieldmark.features.engines import AT_ONCE, FEW_PHOTOS, SETTING, TOLERANCE, QuickestEngine, relative_difference
from fieldmark.features.packaged import packaged_weights
from fieldmark.features.settings import FeatureSettings

SQUARES = np.random.default_rng(0).integers(0, 256, (AT_ONCE, 8, 8, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FIELDMARK_CACHE", str(tmp_path))
    monkeypatch.delenv(SETTING, raising=False)


def sums(squares):
    return [squares.reshape(len(squares), -1).astype(np.float32)]


def shifted(squares):
    return [sums(squares)[0] + 1]


def broken(squares):
    raise RuntimeError("no such operation\nand a long story")


def choosing(seconds, monkeypatch, **makers):
    """An engine whose measurement gives the seconds that the test says."""
    monkeypatch.setattr(engines, "fastest", lambda candidates, squares: {name: seconds[name] for name in candidates})
    return QuickestEngine(lambda: "network", {name: (lambda each=each: each) for name, each in makers.items()})


def seen(engine):
    for _ in range(FEW_PHOTOS // AT_ONCE + 1):
        engine(SQUARES)
    return engine


def test_the_quickest_is_used_after_a_few_blocks_and_remembered(tmp_path, monkeypatch):
    engine = choosing({"torch": 2.0, "openvino": 1.0}, monkeypatch, torch=sums, openvino=sums)
    engine(SQUARES)
    assert engine.name == "torch"
    assert seen(engine).name == "openvino"
    later = choosing({}, monkeypatch, torch=sums, openvino=sums)
    later(SQUARES[:1])
    assert later.name == "openvino"
    kept = json.loads(next((tmp_path / "engines").iterdir()).read_text())
    assert kept["ms_per_photo"] == {"torch": 2000 / AT_ONCE, "openvino": 1000 / AT_ONCE}


def test_an_engine_that_is_settled_first_sees_every_photo(monkeypatch):
    engine = choosing({"torch": 2.0, "openvino": 1.0}, monkeypatch, torch=sums, openvino=sums)
    engine.settle(SQUARES)
    engine(SQUARES)
    assert engine.name == "openvino"
    later = choosing({}, monkeypatch, torch=sums, openvino=sums)
    later.settle(SQUARES)  # remembered: nothing is measured, and nothing starts before there is a photo
    assert later.name == ""
    later(SQUARES)
    assert later.name == "openvino"


def test_an_engine_that_differs_or_fails_is_not_used_and_the_record_says_why(tmp_path, monkeypatch):
    seconds = {"torch": 2.0, "openvino": 1.0, "onnxruntime": 1.0}
    engine = seen(choosing(seconds, monkeypatch, torch=sums, openvino=shifted, onnxruntime=broken))
    assert engine.name == "torch"
    refused = json.loads(next((tmp_path / "engines").iterdir()).read_text())["refused"]
    assert refused["openvino"].startswith("differs by 3.9e-03") and refused["onnxruntime"] == "no such operation"


def test_a_record_that_cannot_be_read_is_measured_again(tmp_path, monkeypatch):
    seconds = {"torch": 1.0, "openvino": 2.0}
    seen(choosing(seconds, monkeypatch, torch=sums, openvino=sums))
    record = next((tmp_path / "engines").iterdir())
    record.write_text('{"engine": ["open')
    assert seen(choosing(seconds, monkeypatch, torch=sums, openvino=sums)).name == "torch"
    assert json.loads(record.read_text())["engine"] == "torch"


def test_a_remembered_engine_that_no_longer_starts_gives_way_to_the_reference(monkeypatch):
    seen(choosing({"torch": 2.0, "openvino": 1.0}, monkeypatch, torch=sums, openvino=sums))
    engine = QuickestEngine(lambda: "network", {"torch": lambda: sums, "openvino": lambda: broken(SQUARES)})
    assert engine(SQUARES)[0].shape == (AT_ONCE, 192) and engine.name == "torch"


def test_an_engine_can_be_named_and_an_unknown_one_is_refused(monkeypatch):
    monkeypatch.setenv(SETTING, "openvino")
    engine = choosing({}, monkeypatch, torch=shifted, openvino=sums)
    assert np.array_equal(engine(SQUARES)[0], sums(SQUARES)[0])
    monkeypatch.setenv(SETTING, "openvno")
    with pytest.raises(MisuseError, match="FIELDMARK_ENGINE=openvno: expected one of openvino, onnxruntime, torch"):
        choosing({}, monkeypatch, torch=sums)(SQUARES)


def test_openvino_agrees_with_onnx_runtime_on_a_packaged_network_for_few_photos_and_for_many():
    pytest.importorskip("openvino")
    engine = LiteNetwork(VARIANTS["efficientnet_lite0"], packaged_weights("efficientnet_lite0")).engine(65)
    squares = np.random.default_rng(1).integers(0, 256, (2 * AT_ONCE + 3, 65, 65, 3), dtype=np.uint8)
    expected, other = engine.makers["onnxruntime"]()(squares), engine.makers["openvino"]()
    assert relative_difference(other(squares), expected) <= TOLERANCE
    assert relative_difference(other(squares[:3]), [each[:3] for each in expected]) <= TOLERANCE


def test_openvino_agrees_with_torch_on_a_network_of_timm_and_they_share_a_store():
    pytest.importorskip("openvino")
    backbone = load_torch_backbone(FeatureSettings("resnet10t", size=64, weights="random"))
    assert backbone.engine is not None
    squares = np.random.default_rng(2).integers(0, 256, (AT_ONCE + 1, 64, 64, 3), dtype=np.uint8)
    expected = backbone.engine.makers["torch"]()(squares)
    assert relative_difference(backbone.engine.makers["openvino"]()(squares), expected) <= TOLERANCE
    assert np.array_equal(backbone(list(squares))["features"], expected[0].astype(np.float16))
