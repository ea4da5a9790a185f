"""The index of a store: a copy that may be missing, old or broken, and makes opening quick."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from fieldmark.features import key_index
from fieldmark.features.key_index import INDEX_FILE, KeyIndex, as_bytes, open_index
from fieldmark.features.store import FeatureStore, content_key

KEYS = [content_key(bytes([n])) for n in range(40)]


def value(key: bytes) -> np.ndarray:
    return np.array([[KEYS.index(key)]], dtype=np.float32)


@pytest.fixture
def store(tmp_path):
    """A store of twenty blocks with one key each, and its index."""
    store = FeatureStore(tmp_path, "x")
    for key in KEYS[:20]:
        store.add([key], {"features": value(key)})
    open_index(store.folder)
    assert (store.folder / INDEX_FILE).exists()
    return store


def files_read(store: FeatureStore) -> int:
    with patch.object(np, "load", wraps=np.load) as load:
        open_index(store.folder)
    return load.call_count


def stored(store: FeatureStore) -> list[float]:
    again = FeatureStore(store.folder.parent, store.folder.name)
    there = [key for key in KEYS if key in again]
    assert len(there) == len(again) == len(again.stored_keys())
    return again.get(there)[:, 0].tolist() if there else []


def test_a_store_with_an_index_opens_one_file(store):
    assert files_read(store) == 1 and stored(store) == list(range(20))


def test_blocks_that_came_later_are_read_beside_the_index(store):
    store.add([KEYS[20]], {"features": value(KEYS[20])})
    assert files_read(store) == 2 and stored(store) == list(range(21))


def test_blocks_that_are_gone_are_left_out(store):
    gone = open_index(store.folder).blocks[3]
    row = int(np.load(store.folder / f"{gone}.features.npy")[0, 0])
    (store.folder / f"{gone}.keys.npy").unlink()
    assert stored(store) == [number for number in range(20) if number != row]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_an_index_that_was_cut_off_is_passed_over(store, share):
    path = store.folder / INDEX_FILE
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    assert stored(store) == list(range(20))
    assert files_read(store) == 1  # it was written anew


def test_an_index_that_names_blocks_it_does_not_list_is_passed_over(store):
    blocks, index = open_index(store.folder)
    arrays = {"first": index.first, "last": index.last, "block": index.block + 1, "row": index.row}
    with (store.folder / INDEX_FILE).open("wb") as file:
        np.savez(file, blocks=np.array(blocks), **arrays)
    assert stored(store) == list(range(20))


def test_a_store_that_cannot_be_written_to_can_be_opened(store):
    (store.folder / INDEX_FILE).unlink()
    with patch.object(key_index, "appearing_file", side_effect=PermissionError):
        assert stored(store) == list(range(20))
    assert not (store.folder / INDEX_FILE).exists()


def test_a_key_in_two_blocks_counts_once(store):
    other = FeatureStore(store.folder.parent.parent / "other", "x")
    other.add([KEYS[3]], {"features": value(KEYS[3])})
    for path in other.folder.iterdir():
        path.rename(store.folder / path.name)
    assert stored(store) == list(range(20))


def test_keys_that_begin_alike_are_told_apart():
    keys = [b"12345678" + bytes([number] * 8) for number in (5, 3, 9, 3)]
    numbers = np.arange(4, dtype=np.uint32)
    index = KeyIndex.of(as_bytes(keys), numbers, numbers)
    assert len(index) == 3 and index.block[index.find(as_bytes([keys[2], keys[0]]))].tolist() == [2, 0]
    absent = b"12345678" + bytes([4] * 8)
    assert absent not in index and keys[1] in index and index.find(as_bytes([absent])).tolist() == [-1]
