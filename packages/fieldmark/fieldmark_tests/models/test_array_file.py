"""The arrays of a model in a file, whether they fit into memory or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load_file

from fieldmark.models.array_file import load_arrays, save_arrays
from fieldmark.work import large_arrays
from fieldmark.work.large_arrays import MEMORY_SETTING
from fieldmark_tests.peak_memory import peak_bytes

ARRAYS = {
    "features": np.random.default_rng(0).normal(size=(700, 9)).astype(np.float32),
    "across": np.asfortranarray(np.arange(12, dtype=np.float64).reshape(3, 4)),
    "codes": np.arange(-3, 4, dtype=np.int32),
    "halves": np.array([[0.5, 1.5]], dtype=np.float16),
    "learned": np.array([True, False, True]),
    "bytes": np.frombuffer(b"names", dtype=np.uint8),
    "number": np.array(7),
    "nothing": np.zeros((0, 4), dtype=np.float32),
    "no columns": np.zeros((4, 0), dtype=np.float32),
}


@pytest.fixture
def file(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(MEMORY_SETTING, "0")
    monkeypatch.setattr(large_arrays, "BYTES_AT_ONCE", 1000)
    path = tmp_path / "arrays.safetensors"
    save_arrays(ARRAYS, path)
    return path


def test_what_was_written_block_by_block_is_read_by_safetensors_and_by_mapping(file):
    for found in (load_file(file), load_arrays(file)):
        assert found.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            assert found[name].dtype == array.dtype and found[name].shape == array.shape
            assert np.array_equal(found[name], array)


def test_what_fits_into_memory_is_written_and_read_by_safetensors(file, monkeypatch):
    monkeypatch.delenv(MEMORY_SETTING)
    assert all(np.array_equal(array, ARRAYS[name]) for name, array in load_arrays(file).items())
    save_arrays(ARRAYS, file)
    assert load_file(file).keys() == ARRAYS.keys()


def test_a_mapped_array_can_be_changed_and_outlives_a_file_that_is_written_over(file):
    loaded = load_arrays(file)
    loaded["features"][0] = 5
    save_arrays({"features": np.zeros((1, 9), dtype=np.float32)}, file)
    assert (loaded["features"][0] == 5).all() and np.array_equal(loaded["features"][1:], ARRAYS["features"][1:])
    assert load_arrays(file)["features"].shape == (1, 9)


def test_neither_saving_nor_loading_copies_a_large_array(file, monkeypatch):
    monkeypatch.setattr(large_arrays, "BYTES_AT_ONCE", 1 << 16)
    features = np.ones((20_000, 64), dtype=np.float32)
    assert peak_bytes(lambda: save_arrays({"features": features}, file)) < 0.1 * features.nbytes
    assert peak_bytes(lambda: load_arrays(file)) < 0.1 * features.nbytes


@pytest.mark.parametrize("content", [b"", b"something else", (1 << 63).to_bytes(8, "little") + b"{}"])
def test_a_file_of_another_format_is_refused(file, content):
    file.write_bytes(content + b" " * (1 if content else 0))
    with pytest.raises(SafetensorError):
        load_arrays(file)
