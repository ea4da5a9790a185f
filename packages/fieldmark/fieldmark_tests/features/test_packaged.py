"""Packaged backbones: the same numbers and the same fingerprint without torch."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from fieldmark.errors import InputError
from fieldmark.features.backbones import load_torch_backbone
from fieldmark.features.packaged import PackagedBackbone, packaged_weights, runs_without_torch
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.torch_files import read_tensors
from fieldmark.models.supply.sources import load_backbone


@pytest.mark.parametrize("name", ["efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2"])
def test_onnx_runtime_and_torch_agree_on_features_logits_and_the_key_of_the_store(name):
    settings = FeatureSettings(name)
    one, other = load_backbone(settings), load_torch_backbone(settings)
    assert isinstance(one, PackagedBackbone)
    assert one.preprocessing == other.preprocessing
    assert one.digest == other.digest and one.about == other.about
    size = one.preprocessing.size_px
    photos = list(np.random.default_rng(1).integers(0, 255, (2, size, size, 3), dtype=np.uint8))
    outputs, expected = one(photos), other(photos)
    assert outputs["logits"] == pytest.approx(expected["logits"], abs=1e-4)
    # At most a step of half precision, where two numbers of single precision lie on two sides of a rounding.
    given, wanted = (each["features"].astype(np.float64) for each in (outputs, expected))
    steps = np.spacing(np.maximum(outputs["features"], expected["features"])).astype(np.float64)
    assert (abs(given - wanted) <= np.maximum(steps, 2e-5)).all()


def test_sizes_and_the_way_of_resizing_are_those_of_the_network_of_timm():
    settings = FeatureSettings("efficientnet_lite0", size=65, resize="squash")  # odd, so that padding is uneven
    one, other = load_backbone(settings), load_torch_backbone(settings)
    assert one.preprocessing == other.preprocessing and one.digest == other.digest
    photos = list(np.random.default_rng(2).integers(0, 255, (3, 65, 65, 3), dtype=np.uint8))
    assert one(photos)["logits"] == pytest.approx(other(photos)["logits"], abs=1e-4)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "efficientnet_lite2"])
def test_means_of_stages_are_those_of_the_network_of_timm_and_have_a_key_of_their_own(name):
    settings = FeatureSettings(name, size=65, output="stages")
    one, other = load_backbone(settings), load_torch_backbone(settings)
    assert isinstance(one, PackagedBackbone)
    assert one.digest == other.digest != load_backbone(replace(settings, output="features")).digest
    photos = list(np.random.default_rng(3).integers(0, 255, (3, 65, 65, 3), dtype=np.uint8))
    given, expected = one(photos), other(photos)
    assert set(given) == {"features"} and given["features"].shape == expected["features"].shape
    assert given["features"] == pytest.approx(expected["features"], abs=1e-3)
    assert (given["features"].astype(np.float64) ** 2).sum(axis=1) == pytest.approx(2, abs=1e-2)


@pytest.mark.parametrize("name", ["resnet10t", "vit_tiny_patch16_224", "convnext_atto"])
def test_networks_in_layers_blocks_or_stages_have_means_of_stages(name):
    backbone = load_backbone(FeatureSettings(name, size=64, weights="random", output="stages"))
    photos = list(np.random.default_rng(4).integers(0, 255, (2, 64, 64, 3), dtype=np.uint8))
    features = backbone(photos)["features"].astype(np.float64)
    assert (features**2).sum(axis=1) == pytest.approx(2, abs=1e-2)


def test_other_weights_are_left_to_torch():
    assert runs_without_torch(FeatureSettings("efficientnet_lite0"))
    assert not runs_without_torch(FeatureSettings("efficientnet_lite0", weights="random"))
    assert not runs_without_torch(FeatureSettings("resnet10t"))


class Harm:
    def __reduce__(self):
        return (print, ("harm",))


@pytest.mark.parametrize("first", [0, 1], ids=["the magic number", "what follows it"])
def test_a_file_with_anything_but_tensors_is_refused_and_nothing_in_it_runs(tmp_path, capsys, first):
    magic = pickle.dumps(0x1950A86A20F9469CFC6C)
    path = tmp_path / "weights.pth"
    path.write_bytes(magic * first + pickle.dumps(Harm()))
    with pytest.raises(InputError, match=r"builtins.print has no place among tensors"):
        read_tensors(path)
    assert capsys.readouterr().out == ""


def test_a_truncated_file_of_weights_is_refused(tmp_path):
    path = tmp_path / "weights.pth"
    path.write_bytes(packaged_weights("efficientnet_lite0").read_bytes()[:100_000])
    with pytest.raises(InputError, match=r"weights\.pth: found something else"):
        read_tensors(path)
