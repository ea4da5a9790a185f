"""Second-order pooling: the formula, the same numbers by every library, and axes that come from train alone."""

from __future__ import annotations

import gc
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.features.backbones import load_torch_backbone
from fieldmark.features.packaged import PackagedBackbone
from fieldmark.features.second_order import AXES, TURNS, axes_of, pooled, pooled_rows, triangle
from fieldmark.features.settings import FeatureSettings
from fieldmark.models import load_model
from fieldmark.models.supply import FeatureSource
from fieldmark.models.supply.sources import load_backbone
from fieldmark.views.open_benchmark import open_benchmark, open_release
from fieldmark_tests.fixtures import write_release

SETTINGS = FeatureSettings("efficientnet_lite0", size=65, output="second-order")


def noise(number, size=65, seed=0):
    return list(np.random.default_rng(seed).integers(0, 255, (number, size, size, 3), dtype=np.uint8))


def maps_of(photos, channels, positions, seed=1):
    """Channels that go together in part."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(channels, channels)) @ np.diag(np.geomspace(1, 0.05, channels))
    return (np.einsum("ck,nkp->ncp", mixed, rng.normal(size=(photos, channels, positions))) + 0.3).astype(np.float32)


def test_axes_are_principal_axes_divided_by_the_fourth_root_of_their_variance():
    maps = maps_of(40, 12, 9)
    axes = axes_of([maps[:7], maps[7:]])
    positions = maps.transpose(0, 2, 1).reshape(-1, 12)
    turned = np.cov(positions @ axes, rowvar=False, bias=True)
    variances = np.linalg.eigvalsh(np.cov(positions, rowvar=False, bias=True))[::-1]
    assert axes.shape == (12, 12)
    np.testing.assert_allclose(turned, np.diag(np.sqrt(variances)), atol=1e-4 * variances[0])


def test_no_more_axes_than_asked_and_none_that_hold_noise():
    assert axes_of([maps_of(30, 100, 16)]).shape == (100, AXES)
    flat = maps_of(30, 10, 16)
    flat[:, 6:] = 0
    assert axes_of([flat]).shape == (10, 6)


def test_pooling_is_the_root_of_the_mean_products_by_so_many_turns_of_newton_and_schulz():
    maps = maps_of(3, 12, 9, seed=2).astype(np.float64)
    axes = axes_of([maps.astype(np.float32)])
    plain = np.random.default_rng(3).normal(size=(3, 5))
    upper = tuple(torch.from_numpy(array) for array in triangle(12))
    given = pooled(torch.from_numpy(maps), torch.from_numpy(plain), torch.from_numpy(axes), upper).numpy()
    np.testing.assert_allclose(given[:, 78:], plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-6)
    for row, one in zip(given[:, :78], maps, strict=True):
        turned = axes.T.astype(np.float64) @ one
        matrix = turned @ turned.T
        root, inverse = matrix / np.trace(matrix), np.eye(12)
        for _ in range(TURNS):
            step = (3 * np.eye(12) - inverse @ root) / 2
            root, inverse = root @ step, step @ inverse
        values, vectors = np.linalg.eigh(matrix / np.trace(matrix))
        exact = vectors @ np.diag(np.sqrt(values.clip(0))) @ vectors.T
        assert abs(root - exact).max() < 0.06  # five turns are not the end of it
        upper = np.concatenate([np.diag(root), np.sqrt(2) * root[np.triu_indices(12, 1)]])
        assert np.sort(row) == pytest.approx(np.sort(upper / np.linalg.norm(root)), abs=1e-5)
        assert row @ row == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("positions", [9, 25])
def test_maps_that_are_held_are_pooled_as_the_network_pools_them(positions):
    maps = maps_of(5, 12, positions, seed=4)
    axes, plain = axes_of([maps]), np.random.default_rng(3).normal(size=(5, 6)).astype(np.float32)
    upper = tuple(torch.from_numpy(array) for array in triangle(12))
    expected = pooled(*(torch.from_numpy(one) for one in (maps, plain, axes)), upper).numpy()
    np.testing.assert_allclose(pooled_rows(maps, plain, axes), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "efficientnet_lite2"])
def test_packaged_networks_and_those_of_timm_agree_on_maps_features_and_the_key_of_the_store(name):
    settings = replace(SETTINGS, backbone=name)
    plain, of_timm = load_backbone(settings), load_torch_backbone(settings)
    photos = noise(12)
    maps, features = plain.last_maps(photos)
    assert isinstance(plain, PackagedBackbone) and maps.shape == (12, len(maps[0]), 9)
    np.testing.assert_allclose(maps, of_timm.last_maps(photos)[0], atol=2e-5 * abs(maps).max())
    np.testing.assert_allclose(features, of_timm.last_maps(photos)[1], atol=2e-5 * features.max())
    axes = axes_of([maps])
    one, other = load_backbone(settings, axes), load_torch_backbone(settings, axes)
    assert one.digest == other.digest
    assert len({one.digest, plain.digest, load_backbone(settings, 2 * axes).digest}) == 3
    given, expected = one(photos), other(photos)
    assert set(given) == {"features"} and given["features"].shape == (12, AXES * (AXES + 1) // 2 + 1280)
    np.testing.assert_allclose(given["features"], expected["features"], atol=2e-4)


@pytest.mark.parametrize(
    "name", ["resnet10t", "vit_tiny_patch16_224", "convnext_atto", "swin_tiny_patch4_window7_224.ms_in1k"]
)
def test_networks_with_maps_or_tokens_in_whatever_order_are_pooled(name):
    settings = FeatureSettings(name, size=64, weights="random", output="second-order")
    plain = load_backbone(settings)
    maps, _ = plain.last_maps(noise(4, 64))
    assert maps.shape[1] == plain.network.num_features and maps.shape[2] < maps.shape[1]
    features = load_backbone(settings, axes_of([maps]))(noise(2, 64, seed=5))["features"].astype(np.float64)
    assert (features**2).sum(axis=1) == pytest.approx(2, abs=2e-2)
    before = tensors_alive()
    plain.network(plain.inputs(noise(2, 64)))
    assert tensors_alive() == before  # it is left as it was: nothing keeps its maps


def test_a_gpu_may_compile_it_whole_and_a_copy_keeps_maps_of_its_own():
    settings = FeatureSettings("resnet10t", size=64, weights="random", output="second-order")
    plain = load_backbone(settings)
    backbone = load_backbone(settings, axes_of([plain.last_maps(noise(4, 64))[0]]))
    batch = backbone.inputs(noise(2, 64))
    expected = backbone.network.forward_features(batch)
    compiled = torch.compile(backbone.network.forward_features, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(batch), expected)
    half = deepcopy(backbone.network).half()
    torch.testing.assert_close(half.forward_features(batch.half()), expected, atol=5e-3, rtol=0)
    before = tensors_alive()
    backbone.network.forward_features(batch)
    half.forward_features(batch.half())
    assert tensors_alive() == before


def tensors_alive():
    """How many tensors something holds."""
    gc.collect()
    return sum(type(one) is torch.Tensor for one in gc.get_objects())


def opened(release):
    return open_benchmark(BENCHMARKS["folder"], open_release(BENCHMARKS["folder"], release))


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return write_release(tmp_path_factory.mktemp("second-order") / "photos")


def test_a_model_keeps_its_axes_and_answers_alike_when_it_is_loaded(release, tmp_path):
    settings = {"size": 32, "output": "second-order", "shrinkage": 0.5}
    result = fieldmark.fit("folder", release, "lda", tmp_path / "run", settings=settings, steps=[])
    model = load_model(tmp_path / "run")
    (axes,) = model.axes.values()
    assert axes.shape[0] == 320 and result.run.features["output"] == "second-order"
    assert any("axes" in remark for remark in result.run.remarks)
    photos = sorted(release.rglob("*.jpg"))[:3]
    assert model.predict_photos(photos).scores == pytest.approx(result.model.predict_photos(photos).scores)
    assert "axes." not in model.fitted.arrays


def test_axes_come_from_train_alone_and_are_found_once(release, tmp_path):
    view = opened(release).view
    made = FeatureSource(SETTINGS, tmp_path).fit(view.train)
    assert FeatureSource(SETTINGS, tmp_path).fit(view.val).axes.tobytes() != made.axes.tobytes()
    (one, other) = (tmp_path / "axes").iterdir()
    for file in (one, other):
        np.save(file, 3 * np.load(file))
    assert FeatureSource(SETTINGS, tmp_path).fit(view.train).axes.tobytes() == (3 * made.axes).tobytes()
    assert made.fit(view.val) is made


def test_what_cannot_be_pooled_so_says_so(release, tmp_path):
    view = opened(release).view
    with pytest.raises(MisuseError, match="for the photos of a release"):
        FeatureSource(SETTINGS, tmp_path).fit(view.train, "satellite")
    with pytest.raises(ValueError, match="fitted to train"):
        FeatureSource(SETTINGS, tmp_path).supply(view.val)
    with pytest.raises(MisuseError, match="birdnet has features and no second-order"):
        FeatureSource(FeatureSettings("birdnet", output="second-order")).backbone  # noqa: B018
