from __future__ import annotations

import numpy as np
import pytest

from fieldmark.errors import MisuseError
from fieldmark.features import store as stores
from fieldmark.features.store import FeatureStore, content_key
from fieldmark.work.large_arrays import MEMORY_SETTING
from fieldmark_tests.peak_memory import peak_bytes

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


MANY = [content_key(f"{number}".encode()) for number in range(4000)]


def add_in_blocks(store: FeatureStore, numbers: range, size: int = 64, width: int = 1) -> None:
    for start in range(numbers.start, numbers.stop, size):
        rows = range(start, min(start + size, numbers.stop))
        values = np.repeat(np.array(rows, dtype=np.float32)[:, None], width, axis=1)
        store.add_new([MANY[row] for row in rows], {"features": values})


def blocks_in(store: FeatureStore) -> int:
    return len(list(store.folder.glob("*.keys.npy")))


def test_a_long_extraction_writes_fewer_blocks_and_a_killed_one_loses_a_sixteenth_at_most(tmp_path):
    store = FeatureStore(tmp_path, "x")
    with store.gathering():
        for start in range(0, 4000, 64):
            add_in_blocks(store, range(start, min(start + 64, 4000)))
            written = len(FeatureStore(tmp_path, "x"))  # what another process would find after a kill
            assert len(store) - written <= max(64, written / 16) and MANY[start] in store
    assert len(FeatureStore(tmp_path, "x")) == len(store) == 4000
    assert blocks_in(store) < 4000 / 64 * 0.7
    assert store.get(MANY)[:, 0].tolist() == list(range(4000))


def test_what_was_gathered_is_written_when_it_is_interrupted(tmp_path):
    store = FeatureStore(tmp_path, "x")
    with pytest.raises(KeyboardInterrupt), store.gathering():
        add_in_blocks(store, range(5))
        add_in_blocks(store, range(3, 8))  # three of them for the second time
        raise KeyboardInterrupt
    assert FeatureStore(tmp_path, "x").get(MANY[:8])[:, 0].tolist() == list(range(8)) and blocks_in(store) == 1


def add_numbers(store: FeatureStore, numbers: list[int]) -> None:
    store.add_new([MANY[number] for number in numbers], outputs(numbers))


def assert_each_has_its_row(store: FeatureStore, numbers: range) -> None:
    for one in (store, FeatureStore(store.folder.parent, store.folder.name)):
        assert len(one) == len(numbers) == len(one.stored_keys())
        for output in ("features", "logits"):
            assert one.get([MANY[number] for number in numbers], output)[:, 0].tolist() == list(numbers)


def test_a_photo_that_stands_twice_in_a_block_shifts_no_rows(tmp_path):
    store = FeatureStore(tmp_path, "x")
    add_numbers(store, [0, 0, 1, 2, 1])
    add_numbers(store, [2, 3, 3])
    assert_each_has_its_row(store, range(4))


def test_a_photo_that_stands_twice_while_blocks_are_gathered_shifts_no_rows(tmp_path):
    store = FeatureStore(tmp_path, "x")
    with store.gathering():
        add_numbers(store, [0, 0, 1, 2, 1])
        add_numbers(store, [2, 3, 0, 3, 4])
        assert store.get([MANY[2]])[0, 0] == 2  # writes what waits
        add_numbers(store, [4, 4, 5, 5, 6])
        add_numbers(store, [5, 7])
    assert_each_has_its_row(store, range(8))
    for keys in store.folder.glob("*.keys.npy"):
        block = keys.name.removesuffix(".keys.npy")
        assert len(np.load(keys)) == len(np.load(keys.with_name(f"{block}.features.npy")))


def test_a_photo_that_several_processes_store_at_once_keeps_its_row(tmp_path):
    one, other = FeatureStore(tmp_path, "x"), FeatureStore(tmp_path, "x")
    with one.gathering(), other.gathering():
        add_numbers(one, [0, 1, 1, 2])
        add_numbers(other, [3, 2, 2, 1, 4])
    assert_each_has_its_row(FeatureStore(tmp_path, "x"), range(5))


def test_rows_that_do_not_go_with_their_keys_are_never_stored(tmp_path):
    store = FeatureStore(tmp_path, "x")
    for keep in (store.add, store.add_new):
        with pytest.raises(ValueError, match="3 rows of features for 2 keys"):
            keep(KEYS[:2], outputs([0, 1, 2]))
    with store.gathering(), pytest.raises(ValueError, match="1 rows of features for 2 keys"):
        store.add_new(KEYS[:2], outputs([0]))
    assert len(FeatureStore(tmp_path, "x")) == 0


def test_a_store_that_could_not_write_gathers_again(tmp_path, monkeypatch):
    store = FeatureStore(tmp_path, "x")
    with monkeypatch.context() as full:
        full.setattr(np, "save", lambda file, array: (_ for _ in ()).throw(OSError("no space left")))
        with pytest.raises(OSError, match="no space left"), store.gathering():
            add_numbers(store, [0, 1])
    with store.gathering():
        add_numbers(store, [0, 2])
    assert FeatureStore(tmp_path, "x").get([MANY[0], MANY[2]])[:, 0].tolist() == [0, 2]


def test_what_is_gathered_can_be_read_before_the_end(tmp_path):
    store = FeatureStore(tmp_path, "x")
    with store.gathering():
        add_in_blocks(store, range(5))
        assert store.get([MANY[4]]).tolist() == [[4.0]] and MANY[3] in store.stored_keys()


def test_many_new_keys_are_kept_in_the_index_and_none_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "MOST_ADDED", 100)
    store = FeatureStore(tmp_path, "x")
    add_in_blocks(store, range(1000))
    assert len(store) == 1000 and all(key in store for key in MANY[:1000]) and MANY[1000] not in store
    assert store.get(MANY[999::-1])[:, 0].tolist() == list(range(999, -1, -1))


def test_what_does_not_fit_into_memory_lies_in_a_file_and_is_the_same(tmp_path, monkeypatch):
    store, asked = FeatureStore(tmp_path, "x"), [MANY[row] for row in np.random.default_rng(0).integers(0, 1000, 2000)]
    add_in_blocks(store, range(1000), size=500, width=800)
    monkeypatch.setattr(stores, "BYTES_READ_AT_ONCE", 1 << 18)
    expected, files = store.get(asked, dtype=np.float32), set(store.folder.iterdir())
    monkeypatch.setenv(MEMORY_SETTING, "1")
    taken: list[np.ndarray] = []
    peak = peak_bytes(lambda: taken.append(store.get(asked, dtype=np.float32)))
    assert peak < 0.3 * expected.nbytes
    assert np.array_equal(taken[0], expected) and set(store.folder.iterdir()) == files
    taken[0][0] = -1  # changes nothing of what is stored
    assert np.array_equal(store.get(asked[:1]), expected[:1])


def test_a_limit_that_is_no_number_is_refused(tmp_path, monkeypatch):
    store = FeatureStore(tmp_path, "x")
    store.add(KEYS[:1], outputs([1]))
    monkeypatch.setenv(MEMORY_SETTING, "2 GB")
    with pytest.raises(MisuseError, match="FIELDMARK_FEATURES_MIB=2 GB: expected a number of MiB, such as 1024"):
        store.get(KEYS[:1])
