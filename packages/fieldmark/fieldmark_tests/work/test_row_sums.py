"""Sums over rows, block by block."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.work import large_arrays
from fieldmark.work.large_arrays import class_sums, column_means, column_products, matrix_blocks


@pytest.fixture(params=[1, 1 << 11, 1 << 22], ids=["row by row", "in blocks", "at once"])
def rows(request, monkeypatch) -> np.ndarray:
    monkeypatch.setattr(large_arrays, "BYTES_MULTIPLIED_AT_ONCE", request.param)
    return np.random.default_rng(0).normal(3, 2, (999, 40)).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_classes_are_those_of_adding_row_after_row(rows, dtype):
    classes = np.random.default_rng(1).integers(0, 6, len(rows))
    expected = np.zeros((7, rows.shape[1]), dtype=dtype)
    for one, row in zip(classes, rows, strict=True):
        expected[one] += row / np.float32(3)
    assert np.array_equal(class_sums(lambda some: some / np.float32(3), rows, classes, 7, dtype), expected)


def test_means_are_those_of_numpy_to_the_last_bit(rows):
    assert np.array_equal(column_means(np.square, rows), np.square(rows).mean(axis=0))


def test_products_of_columns_are_those_of_all_rows(rows):
    doubles = rows.astype(np.float64)
    products = column_products((doubles[block] for block in matrix_blocks(*rows.shape)), rows.shape[1])
    assert products == pytest.approx(doubles.T @ doubles, rel=1e-13)
