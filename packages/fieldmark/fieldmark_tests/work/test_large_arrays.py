from __future__ import annotations

import numpy as np
import pytest

from fieldmark.work import large_arrays
from fieldmark.work.large_arrays import (
    MEMORY_SETTING,
    array_in_file,
    joined_rows,
    matrix_blocks,
    mean_and_spread,
    row_by_row,
    scored_rows,
    standardized,
    taken_rows,
)
from fieldmark_tests.peak_memory import peak_bytes


def drawn(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(0).normal(3, 2, shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(1, 5), (7, 3), (1000, 1), (1000, 2), (999, 640)])
@pytest.mark.parametrize("bytes_at_once", [1, 1 << 13, 1 << 20])
def test_mean_and_spread_are_those_of_numpy_to_the_last_bit(shape, bytes_at_once, monkeypatch):
    monkeypatch.setattr(large_arrays, "BYTES_AT_ONCE", bytes_at_once)
    for rows in (drawn(shape), np.asfortranarray(drawn(shape))):
        mean, spread = mean_and_spread(rows)
        assert np.array_equal(mean, rows.mean(axis=0)) and np.array_equal(spread, rows.std(axis=0))


def test_rows_are_standardized_with_one_copy_or_with_none_in_memory(monkeypatch, tmp_path):
    rows = drawn((20_000, 100))
    mean, spread = mean_and_spread(rows)
    expected = (rows - mean) / spread
    assert peak_bytes(lambda: mean_and_spread(rows)) < 0.5 * rows.nbytes
    assert peak_bytes(lambda: standardized(rows, mean, spread)) < 1.2 * rows.nbytes
    monkeypatch.setenv(MEMORY_SETTING, "1")
    monkeypatch.setenv("FIELDMARK_CACHE", str(tmp_path))
    made: list[np.ndarray] = []
    assert peak_bytes(lambda: made.append(standardized(rows, mean, spread))) < 0.5 * rows.nbytes
    assert np.array_equal(made[0], expected) and made[0].dtype == np.float32 and not list(tmp_path.iterdir())


def test_the_file_of_an_array_stays_as_long_as_the_array_and_is_not_changed_by_it(tmp_path):
    blocks = [np.arange(6).reshape(3, 2), np.arange(2).reshape(1, 2)]
    array = array_in_file(blocks, tmp_path)
    assert array.tolist() == [[0, 1], [2, 3], [4, 5], [0, 1]] and not list(tmp_path.iterdir())
    array += 1
    assert array[3].tolist() == [1, 2]


def test_rows_are_joined_and_computed_in_a_file_as_in_memory(monkeypatch, tmp_path):
    parts = [drawn((3, 4)), drawn((0, 4)), drawn((5, 4))]
    expected = np.concatenate(parts)
    assert np.array_equal(joined_rows(parts), expected)
    monkeypatch.setenv(MEMORY_SETTING, "0")
    monkeypatch.setenv("FIELDMARK_CACHE", str(tmp_path))
    joined, doubled = joined_rows(parts), row_by_row(np.add, expected, expected)
    assert np.array_equal(doubled, 2 * expected) and isinstance(doubled.base, np.memmap)
    assert np.array_equal(joined, expected) and isinstance(joined.base, np.memmap)


def test_rows_are_taken_in_any_order_into_a_file_as_into_memory(monkeypatch, tmp_path):
    array, order = drawn((500, 4)), np.random.default_rng(1).integers(0, 500, 700)
    in_memory = taken_rows(array, order, np.square)
    assert np.array_equal(in_memory, np.square(array[order]))
    monkeypatch.setenv(MEMORY_SETTING, "0")
    monkeypatch.setenv("FIELDMARK_CACHE", str(tmp_path))
    monkeypatch.setattr(large_arrays, "BYTES_AT_ONCE", 1000)
    taken = taken_rows(array, order, np.square)
    assert np.array_equal(taken, in_memory) and isinstance(taken.base, np.memmap)
    assert taken_rows(array, order[:0]).shape == (0, 4)


@pytest.mark.parametrize(("rows", "columns", "expected"), [(5, 2, [2, 4, 5]), (4, 100, [1, 2, 3, 4]), (0, 3, [])])
def test_blocks_of_a_matrix_hold_so_many_bytes_or_one_row(rows, columns, expected, monkeypatch):
    monkeypatch.setattr(large_arrays, "BYTES_MULTIPLIED_AT_ONCE", 16)
    assert [block.stop for block in matrix_blocks(rows, columns)] == expected


def test_scores_of_rows_need_no_copy_of_them_however_many_scores_there_are(monkeypatch):
    monkeypatch.setattr(large_arrays, "BYTES_MULTIPLIED_AT_ONCE", 1 << 14)
    rows, weights = drawn((20_000, 50)), drawn((50, 60))
    made: list[np.ndarray] = []
    assert peak_bytes(lambda: made.append(scored_rows(lambda some: some @ weights, rows, 60))) < 1.1 * 20_000 * 60 * 4
    assert np.allclose(made[0], rows @ weights, rtol=1e-5) and made[0].dtype == np.float32
