"""Embeddings as the organizers store them."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.features.embeddings import quantized


def test_quantized_embeddings_are_what_the_organizers_store_and_read():
    features = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    stored = ((unit + 1) * 127.5).astype(np.uint8)
    assert quantized(features) == pytest.approx(stored / 255 * 2 - 1, abs=1e-6)
    lengths = np.linalg.norm(quantized(features), axis=1)
    assert (np.abs(lengths - 1) > 1e-4).all()  # not scaled to length one again
