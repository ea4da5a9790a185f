"""What methods learn from: rows may be taken in any order, and more than once."""

from __future__ import annotations

import numpy as np

from fieldmark.questions.targets import PairTargets


def test_pairs_that_are_taken_twice_come_twice():
    pairs = PairTargets(
        np.array([0, 0, 2], dtype=np.int32),
        np.array([1, 0, 2], dtype=np.int32),
        np.array([True, False, True]),
        np.array([1, -1, 2], dtype=np.int32),
        3,
    )
    taken = pairs.take(np.array([2, 0, 0]))
    np.testing.assert_array_equal(taken.holds(3), pairs.holds(3)[[2, 0, 0]])
    assert taken.codes.tolist() == [2, 1, 1]
    together = PairTargets.concat([pairs, taken])
    np.testing.assert_array_equal(together.holds(3), np.vstack([pairs.holds(3), taken.holds(3)]))
