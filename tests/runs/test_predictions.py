from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldmark.errors import InputError
from fieldmark.labels import Labels
from fieldmark.runs.predictions import Predictions, read_prediction_blocks, read_predictions, write_predictions

LABELS = Labels(tuple("abcdefghijklmnopqrst"))


def made(n: int = 10, seed: int = 0) -> Predictions:
    scores = np.random.default_rng(seed).normal(size=(n, len(LABELS))).astype(np.float32)
    return Predictions(tuple(f"i{row}" for row in range(n)), LABELS, scores, "logit")


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 25))
def test_among_equal_scores_the_lower_code_comes_first(seed, k):
    scores = np.random.default_rng(seed).integers(0, 4, (6, 20)).astype(np.float32)
    scores[scores == 0] = -np.inf
    best = Predictions(tuple("uvwxyz"), LABELS, scores, "score").top(k)
    for row in range(6):
        expected = sorted(range(20), key=lambda code: (-scores[row, code], code))[:k]
        assert best[row].tolist() == expected + [-1] * (k - len(expected))


def test_not_a_number_is_refused_with_the_item():
    with pytest.raises(ValueError, match="'i0' contain NaN"):
        Predictions(("i0",), Labels(("a",)), np.array([[np.nan]], dtype=np.float32), "logit")


def test_predictions_survive_the_disk_block_by_block(tmp_path):
    path = tmp_path / "p.parquet"
    predictions = made(10)
    write_predictions(path, predictions.blocks(4))
    assert [len(block.items) for block in read_prediction_blocks(path)] == [4, 4, 2]
    back = read_predictions(path)
    assert back.items == predictions.items and back.labels == LABELS and back.scale == "logit"
    assert (back.scores == predictions.scores).all() and back.dense


def test_sparse_predictions_and_strangeness_survive_the_disk(tmp_path):
    codes = np.array([[3, 1], [2, -1]], dtype=np.int32)
    scores = np.array([[0.5, 0.7], [0.1, -np.inf]], dtype=np.float32)
    unknown = np.array([0.2, 0.9], dtype=np.float32)
    write_predictions(tmp_path / "p.parquet", [Predictions(("x", "y"), LABELS, scores, "score", codes, unknown)])
    back = read_predictions(tmp_path / "p.parquet")
    assert back.top(2).tolist() == [[1, 3], [2, -1]]
    assert back.unknown.tolist() == unknown.tolist()


def test_selected_items_come_in_the_order_asked_for():
    assert made().select(["i3", "i1"]).scores.tolist() == made().scores[[3, 1]].tolist()


def test_a_file_of_another_make_is_refused(tmp_path):
    (tmp_path / "p.parquet").write_text("no")
    with pytest.raises(InputError, match="expected predictions written by Fieldmark"):
        read_predictions(tmp_path / "p.parquet")
