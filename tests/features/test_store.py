from __future__ import annotations

import numpy as np
import pytest

from fieldmark.features.store import FeatureStore, content_key

KEYS = [content_key(bytes([n])) for n in range(5)]


def outputs(numbers: list[int]) -> dict[str, np.ndarray]:
    rows = np.array(numbers, dtype=np.float32)[:, None]
    return {"features": np.repeat(rows, 3, axis=1).astype(np.float16), "logits": np.repeat(rows, 2, axis=1)}


def test_rows_come_back_in_the_order_asked_for_across_blocks_and_processes(tmp_path):
    store = FeatureStore(tmp_path, "extractor")
    store.add(KEYS[:2], outputs([0, 1]))
    store.add(KEYS[2:4], outputs([2, 3]))
    reopened = FeatureStore(tmp_path, "extractor")
    assert reopened.get([KEYS[3], KEYS[0], KEYS[3]])[:, 0].tolist() == [3, 0, 3]
    assert reopened.get(KEYS[:1]).dtype == np.float16 and reopened.get(KEYS[:1], "logits").dtype == np.float32


def test_another_extractor_has_a_store_of_its_own(tmp_path):
    FeatureStore(tmp_path, "one").add(KEYS[:1], outputs([1]))
    assert KEYS[0] not in FeatureStore(tmp_path, "two")


def test_a_block_that_was_interrupted_does_not_count(tmp_path):
    FeatureStore(tmp_path, "one").add(KEYS[:1], outputs([1]))
    next((tmp_path / "one").glob("*.keys.npy")).unlink()
    assert len(FeatureStore(tmp_path, "one")) == 0


def test_what_is_not_there_is_not_made_up(tmp_path):
    with pytest.raises(KeyError):
        FeatureStore(tmp_path, "one").get(KEYS[:1])
