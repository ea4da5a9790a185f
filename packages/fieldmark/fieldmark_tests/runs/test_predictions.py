from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldmark.errors import InputError
from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.predictions import BLOCK_ITEMS, read_predictions
from fieldmark.tables.labels import Labels

LABELS = Labels(tuple("abcdefghijklmnopqrst"))


def made(n: int = 10, seed: int = 0) -> LabelScores:
    scores = np.random.default_rng(seed).normal(size=(n, len(LABELS))).astype(np.float32)
    return LabelScores(tuple(f"i{row}" for row in range(n)), LABELS, scores, "logit")


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 25))
def test_among_equal_scores_the_lower_code_comes_first(seed, k):
    scores = np.random.default_rng(seed).integers(0, 4, (6, 20)).astype(np.float32)
    scores[scores == 0] = -np.inf
    best = LabelScores(tuple("uvwxyz"), LABELS, scores, "score").top(k)
    for row in range(6):
        expected = sorted(range(20), key=lambda code: (-scores[row, code], code))[:k]
        assert best[row].tolist() == expected + [-2] * (k - len(expected))


def test_not_a_number_is_refused_with_the_item():
    with pytest.raises(ValueError, match="'i0' contain NaN"):
        LabelScores(("i0",), Labels(("a",)), np.array([[np.nan]], dtype=np.float32), "logit")
    with pytest.raises(ValueError, match="'i1' contain NaN"):
        LabelScores.listed(("i0", "i1"), LABELS, CodeSets.of_lists([[1], [2]]), np.array([0.5, np.nan]))


def test_predictions_survive_the_disk_block_by_block(tmp_path):
    path = tmp_path / "p.parquet"
    predictions = made(2 * BLOCK_ITEMS + 2)
    predictions.write(path)
    groups = pq.ParquetFile(path).metadata
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [BLOCK_ITEMS, BLOCK_ITEMS, 2]
    back = read_predictions(path)
    assert back.items == predictions.items and back.labels == LABELS and back.scale == "logit"
    assert (back.scores == predictions.scores).all() and back.dense


def test_lists_and_strangeness_survive_the_disk(tmp_path):
    unknown = np.array([0.2, 0.9], dtype=np.float32)
    lists = CodeSets.of_lists([[3, 1], [2]])
    LabelScores.listed(("x", "y"), LABELS, lists, np.array([0.5, 0.7, 0.1]), unknown).write(tmp_path / "p.parquet")
    back = read_predictions(tmp_path / "p.parquet")
    assert back.top(2).tolist() == [[1, 3], [2, -2]]
    assert back.unknown.tolist() == unknown.tolist()


def test_selected_items_come_in_the_order_asked_for():
    assert made().select(["i3", "i1"]).scores.tolist() == made().scores[[3, 1]].tolist()


def test_a_file_of_another_make_is_refused(tmp_path):
    (tmp_path / "p.parquet").write_text("no")
    with pytest.raises(InputError, match="expected predictions written by Fieldmark"):
        read_predictions(tmp_path / "p.parquet")


def write_version_1(path, labels: list[str], **columns: pa.Array) -> None:
    header = json.dumps({"labels": labels, "scale": "score"})
    table = pa.table({"item_id": pa.array(["x", "y"]), **columns}).replace_schema_metadata({"fieldmark": header})
    pq.write_table(table, path)


def test_lists_of_version_1_lose_their_padding_and_are_ranked_by_their_scores(tmp_path):
    scores = pa.array([[0.5, 0.7, -np.inf], [0.1, 0.3, 0.2]], pa.list_(pa.float32(), 3))
    codes = pa.array([[3, 1, -1], [0, 2, 1]], pa.list_(pa.int32(), 3))
    write_version_1(tmp_path / "p.parquet", ["a", "b", "-1", "d"], scores=scores, codes=codes)
    back = read_predictions(tmp_path / "p.parquet")
    assert back.labels.names == ("a", "b", "d") and len(back.scores) == 5
    assert back.top(3).tolist() == [[1, 2, -2], [-1, 1, 0]]


def test_a_table_of_version_1_with_a_label_for_unknown_and_an_answer_is_read_as_it_was_meant(tmp_path):
    scores = pa.array([[0.1, 0.5, 0.4], [0.2, 0.3, 0.5]], pa.list_(pa.float32(), 3))
    answer = pa.array([0, 2], pa.int32())
    write_version_1(tmp_path / "p.parquet", ["a", "b", "-1"], scores=scores, answer=answer)
    back = read_predictions(tmp_path / "p.parquet")
    assert back.labels.names == ("a", "b") and back.scores.shape == (2, 2)
    assert back.unknown_label == pytest.approx([0.4, 0.5])
    assert back.decisions.codes.tolist() == [0, -1] and back.top(3).tolist() == [[0, 1, -1], [-1, 1, 0]]


def test_an_item_that_is_answered_twice_is_refused_by_its_name(tmp_path):
    scores = np.zeros((3, len(LABELS)))
    LabelScores(("first", "twice", "twice"), LABELS, scores, "score").write(tmp_path / "p.parquet")
    with pytest.raises(InputError, match="the id 'twice' more than once"):
        read_predictions(tmp_path / "p.parquet")
