"""The index of a store: a copy that may be missing, old or broken, and makes opening quick."""

from __future__ import annotations

import subprocess
import sys
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


@pytest.mark.parametrize(("step", "seen"), [("read_index", 22), ("blocks_in", 21)])
def test_a_block_and_an_index_that_appear_while_a_store_is_opened_lose_nothing(store, monkeypatch, step, seen):
    """Right after one of the two was reviewed, another process adds block 21 and writes an index without block 20.

    A listing need not show a block that is added while it is made, and may show a later one.
    """
    monkeypatch.setattr(key_index, "MANY_NEW", 1)
    monkeypatch.setattr(key_index, "NEW_SHARE", 0.0)
    store.add([KEYS[20]], {"features": value(KEYS[20])})
    original, appeared = getattr(key_index, step), []

    def followed_by_another_process(*arguments):
        result = original(*arguments)
        if not appeared:
            appeared.append(step)
            store.add([KEYS[21]], {"features": value(KEYS[21])})
            blocks, index = open_index(store.folder)
            hidden = int(index.block[index.find(as_bytes([KEYS[20]]))[0]])
            index = index.take(index.block != hidden)
            index.block[index.block > hidden] -= 1
            del blocks[hidden]
            key_index.write_index(store.folder / INDEX_FILE, blocks, index)
        return result

    monkeypatch.setattr(key_index, step, followed_by_another_process)
    opened = FeatureStore(store.folder.parent, store.folder.name)
    assert appeared and [key for key in KEYS if key in opened] == KEYS[:seen]
    assert opened.get(KEYS[:seen])[:, 0].tolist() == list(range(seen))
    assert stored(store) == list(range(22))


def test_a_block_that_comes_back_is_found_again(store, monkeypatch):
    monkeypatch.setattr(key_index, "MANY_NEW", 1)
    monkeypatch.setattr(key_index, "NEW_SHARE", 0.0)
    keys = store.folder / f"{open_index(store.folder).blocks[3]}.keys.npy"
    moved = keys.rename(store.folder.parent / keys.name)
    store.add([KEYS[20]], {"features": value(KEYS[20])})
    assert len(stored(store)) == 20  # and the index was written without it
    moved.rename(keys)
    assert stored(store) == list(range(21))


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00"])
def test_a_block_whose_keys_a_crash_has_cut_off_does_not_count(store, content):
    (store.folder / "block.keys.npy").write_bytes(content)
    assert stored(store) == list(range(20))


def test_a_block_that_is_removed_while_a_store_is_opened_is_left_out(store, monkeypatch):
    (store.folder / INDEX_FILE).unlink()
    gone = sorted(store.folder.glob("*.keys.npy"))[5]
    row = int(np.load(gone.with_name(gone.name.replace(".keys.", ".features.")))[0, 0])
    original = key_index.blocks_in

    def followed_by_removing(folder):
        found = original(folder)
        gone.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(key_index, "blocks_in", followed_by_removing)
    assert stored(store) == [number for number in range(20) if number != row]


BUSY_PROCESS = """
import sys
from pathlib import Path
import numpy as np
from fieldmark.features import key_index
from fieldmark.features.store import FeatureStore, content_key

key_index.MANY_NEW, key_index.NEW_SHARE = 2, 0.0
folder, seed, turns = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(seed)
print("ready", flush=True)
sys.stdin.readline()
for turn in range(turns):
    store = FeatureStore(folder, "x")
    with store.gathering():
        for _ in range(3):
            numbers = rng.integers(0, 2000, 7)  # some of them twice, some of them stored by others
            keys = [content_key(str(number).encode()) for number in numbers]
            store.add_new(keys, {"features": numbers.astype(np.float32)[:, None]})
            assert store.get(keys)[:, 0].tolist() == numbers.tolist()
    print(*numbers, flush=True)
"""


def test_processes_that_open_and_write_one_store_at_once_lose_nothing_even_when_one_is_killed(tmp_path):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", BUSY_PROCESS, str(tmp_path), str(seed), str(turns)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed, turns in enumerate((10**6, 15, 15))  # the first goes on until it is killed
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    stored = {int(number) for _ in range(3) for number in started[0].stdout.readline().split()}
    started[0].kill()
    for process in started:
        said, _ = process.communicate()
        stored |= {
            int(number) for line in said.splitlines(keepends=True) if line.endswith("\n") for number in line.split()
        }
    assert [process.returncode for process in started] == [-9, 0, 0]
    for _ in range(2):  # the second time from the index that the first one may have written
        store = FeatureStore(tmp_path, "x")
        keys = [content_key(str(number).encode()) for number in sorted(stored)]
        assert store.get(keys)[:, 0].tolist() == sorted(stored)
    blocks, index = key_index.read_index(store.folder / INDEX_FILE)
    assert blocks
    for block in blocks:  # what the index lists, it lists completely
        assert (index.find(np.load(store.folder / f"{block}.keys.npy")) >= 0).all()


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
