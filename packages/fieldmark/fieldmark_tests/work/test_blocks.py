from __future__ import annotations

import time

import pytest

from fieldmark.work.blocks import LocalExecutor, blocks_of, map_blocks


def slow_square(number: int) -> int:
    time.sleep(0.02 if number == 0 else 0)
    return number * number


@pytest.mark.parametrize("executor", [None, LocalExecutor(2, "thread"), LocalExecutor(2, "process")])
def test_results_come_in_the_order_of_the_blocks_whatever_does_the_work(executor):
    assert list(map_blocks(slow_square, range(20), executor)) == [n * n for n in range(20)]


def test_only_a_few_blocks_are_in_flight():
    taken = []
    results = map_blocks(slow_square, (taken.append(n) or n for n in range(100)), LocalExecutor(2, "thread"))
    next(results)
    assert len(taken) <= 6


def test_an_error_in_a_block_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        list(map_blocks(lambda n: 1 // n, [1, 0], LocalExecutor(2, "thread")))


def test_blocks_cover_everything_once():
    assert [item for block in blocks_of(range(10), 3) for item in block] == list(range(10))
