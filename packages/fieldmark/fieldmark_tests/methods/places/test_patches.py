"""Patches of maps on the training engine."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import fieldmark
from fieldmark.training.draws import Draws, example_seeds
from fieldmark.training.networks import make_network, with_channels
from fieldmark.training.patches import PatchSource, PatchTransform, band_moments, pack_patches, shrunk


def as_file(patch: np.ndarray) -> bytes:
    import io

    file = io.BytesIO()
    np.save(file, patch)
    return file.getvalue()


def test_patches_are_averaged_and_packed_band_after_band(tmp_path):
    rng = np.random.default_rng(0)
    imagery = {one: rng.integers(0, 255, (8, 8, 3)).astype(np.uint8) for one in ("a", "b")}
    heights = {"a": rng.normal(size=(8, 8)).astype(np.float32)}
    readers = [
        lambda ids: [as_file(imagery[one]) for one in ids],
        lambda ids: [as_file(heights[one]) if one in heights else None for one in ids],
    ]
    packed = pack_patches(["a", "b"], readers, 4, tmp_path / "pack.npy")
    assert packed.shape == (2, 4, 4, 4) and np.isnan(packed[1, 3]).all()
    expected = imagery["a"][:2, 2:4, 1].mean()
    assert packed[0, 1, 0, 1] == pytest.approx(expected, rel=1e-3)
    assert shrunk(heights["a"][None], 3).shape == (1, 3, 3)
    mean, spread = band_moments(packed)
    inputs = PatchTransform(tuple(mean), tuple(spread))([torch.from_numpy(np.array(packed)), torch.zeros(2)], None)
    assert (inputs[1, 3] == 0).all() and abs(float(inputs[:, 0].mean())) < 0.05


def test_land_cover_has_a_channel_for_each_class_and_is_never_averaged(tmp_path):
    cover = np.array([[1, 1, 3, 3], [1, 1, 3, 3], [2, 2, 0, 0], [2, 2, 0, 0]], dtype=np.uint8)
    heights = np.arange(16, dtype=np.float32).reshape(4, 4)
    readers = [lambda ids: [as_file(heights) for _ in ids], lambda ids: [as_file(cover), None]]
    packed = pack_patches(["a", "b"], readers, 2, tmp_path / "pack.npy", coded=[False, True])
    assert packed[0, 0].tolist() == [[2.5, 4.5], [10.5, 12.5]] and packed[0, 1].tolist() == [[1, 3], [2, 0]]
    inputs = PatchTransform((0.0, 0.0), (1.0, 1.0), (0, 4))([torch.from_numpy(np.array(packed)), torch.zeros(2)], None)
    assert inputs.shape == (2, 4, 2, 2)  # heights, and classes 1, 2 and 3; 0 is unknown
    assert inputs[0, 1:].argmax(dim=0).tolist() == [[0, 2], [1, 0]] and inputs[0, 1:, 1, 1].sum() == 0
    assert set(inputs[0, 1:].unique().tolist()) == {0.0, 1.0} and (inputs[1, 1:] == 0).all()


def test_training_sees_a_patch_from_all_eight_sides():
    patches = np.arange(9, dtype=np.float16).reshape(1, 1, 3, 3).repeat(64, axis=0)
    source = PatchSource(patches, np.zeros(64, dtype=np.int32))
    draws = Draws(example_seeds(0, 0, np.arange(64)))
    raw = source.read(np.arange(64), draws)
    turned = PatchTransform((0.0,), (1.0,))([torch.from_numpy(one) for one in raw], draws)
    assert len({tuple(one.ravel().tolist()) for one in turned.numpy()}) == 8
    assert (np.sort(turned.numpy().reshape(64, 9), axis=1) == np.arange(9)).all()


def test_a_network_of_three_channels_sees_more_of_them_as_strongly():
    network = make_network("test_resnet", "random", classes=2, size=32).eval()
    gray = torch.rand(2, 1, 32, 32)
    before = network(gray.repeat(1, 3, 1, 1))
    np.testing.assert_allclose(with_channels(network, 5)(gray.repeat(1, 5, 1, 1)).detach(), before.detach(), atol=1e-5)


def test_cnn_looks_at_patches_where_a_release_has_places_and_answers_again_from_its_folder(land_world, tmp_path):
    settings = {"network": "test_resnet", "weights": "random", "size": "32", "epochs": "1", "batch": "32"}
    made = fieldmark.fit("geolifeclef-2020", land_world, "cnn", tmp_path / "run", settings=settings)
    assert made.run.modalities == ["landcover", "elevation", "satellite"] and made.model.fitted.method.patches
    codes = made.model.fitted.arrays["patches.codes"]
    assert codes.tolist() == [0] * (len(codes) - 1) + [34]
    again = fieldmark.predict(tmp_path / "run", land_world)
    assert np.isfinite(again.scores).all() and again.scores.shape[1] == 40
