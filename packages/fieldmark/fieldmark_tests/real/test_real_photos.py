"""Promises about real files."""

from __future__ import annotations

import numpy as np
import pytest

import fieldmark
from fieldmark.features.photos import decode_square
from fieldmark.features.settings import FeatureSettings
from fieldmark.models.supply.sources import load_backbone


@pytest.mark.parametrize("name", ["efficientnet_lite0", "efficientnet_lite2"])
@pytest.mark.parametrize(("folder", "imagenet"), [("047.American_Goldfinch", 11), ("001.Black_footed_Albatross", 146)])
def test_packaged_backbones_name_birds_that_imagenet_knows(real_data, name, folder, imagenet):
    backbone = load_backbone(FeatureSettings(name))
    photos = sorted((real_data / "birds_cub_odd" / "test" / folder).glob("*.jpg"))[:12]
    logits = backbone([decode_square(photo.read_bytes(), backbone.preprocessing) for photo in photos])["logits"]
    assert np.mean(logits.argmax(axis=1) == imagenet) >= 0.7


def test_linear_tells_genera_of_fungi_apart_on_real_photos(real_data, tmp_path):
    result = fieldmark.fit("folder", real_data / "fungi_genera", "linear", tmp_path / "run", settings={"size": 128})
    top_1 = result.scorecard.metrics["top_1"]
    assert top_1.low > 2 / 9  # twice chance, and far from it
    assert not result.run.simulated
