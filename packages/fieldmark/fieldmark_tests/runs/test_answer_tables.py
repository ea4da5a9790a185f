"""Answers as a table: nothing of what a model said is lost."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.errors import MisuseError
from fieldmark.runs.answer_tables import answer_table, write_answer_table
from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.tables.labels import Labels

LABELS = Labels(("a", "b", "c"))
LOGITS = np.log(np.array([[0.2, 0.7, 0.1], [0.5, 0.25, 0.25]], dtype=np.float32))


def test_probabilities_of_all_labels_are_kept_best_first(tmp_path):
    predictions = LabelScores(("x", "y"), LABELS, LOGITS, "log_probability")
    for name in ("answers.csv", "answers.parquet"):
        write_answer_table(tmp_path / name, predictions)
    table = pl.read_csv(tmp_path / "answers.csv")
    assert table["label"].to_list()[:3] == ["b", "a", "c"] and table["rank"].to_list() == [1, 2, 3, 1, 2, 3]
    assert table["probability"].to_list()[:3] == pytest.approx([0.7, 0.2, 0.1])
    assert table.group_by("id").agg(pl.col("probability").sum())["probability"].to_list() == pytest.approx([1, 1])
    assert pl.read_parquet(tmp_path / "answers.parquet").equals(answer_table(predictions))
    assert len(answer_table(predictions, at_most=1)) == 2


def test_unknown_stands_where_a_rule_put_it_and_states_no_probability_it_does_not_have():
    decided = LabelScores(("x",), LABELS, LOGITS[:1], "log_probability").decided(np.array([-1]))
    assert answer_table(decided, at_most=2).rows() == [("x", 1, "-1", None), ("x", 2, "b", pytest.approx(0.7))]


def test_lists_keep_their_scores_under_their_name():
    lists = CodeSets(np.array([2, 0], dtype=np.int32), np.array([0, 2], dtype=np.int64))
    table = answer_table(LabelScores.listed(("x",), LABELS, lists, np.array([0.4, 0.9])))
    assert table.columns == ["id", "rank", "label", "score"] and table.rows() == [
        ("x", 1, "a", 0.9),
        ("x", 2, "c", 0.4),
    ]


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(MisuseError, match=r"expected \.csv or \.parquet"):
        write_answer_table(tmp_path / "answers.xls", LabelScores(("x",), LABELS, LOGITS[:1], "logit"))
