from __future__ import annotations

import numpy as np
import pytest

from fieldmark.metrics import blocks
from fieldmark.metrics.blocks import in_blocks


@pytest.mark.parametrize("rows_at_once", [1, 7, 1000])
@pytest.mark.parametrize("n_blocks", [1, 2, 60_000])
def test_rows_of_a_block_lie_together_in_the_order_in_which_they_stood(n_blocks, rows_at_once, monkeypatch):
    monkeypatch.setattr(blocks, "ROWS_AT_ONCE", rows_at_once)
    rng = np.random.default_rng(0)
    block, other = rng.integers(0, n_blocks, 50), rng.random(50)
    before = other.copy()
    ends, rows, values = in_blocks(block, np.arange(50), other)
    order = np.argsort(block, kind="stable")
    assert rows.tolist() == order.tolist() and values.tolist() == other[order].tolist()
    assert ends.tolist() == np.cumsum(np.bincount(block)).tolist()
    values[:] = 0
    assert other.tolist() == before.tolist()


def test_no_rows_are_no_blocks():
    ends, values = in_blocks(np.array([], dtype=np.uint16), np.array([], dtype=np.float32))
    assert len(ends) == len(values) == 0 and values.dtype == np.float32
