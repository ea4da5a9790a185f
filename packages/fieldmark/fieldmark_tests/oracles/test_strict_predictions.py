"""Predictions stored as Parquet mean the same whatever the order of their labels, and answer each item once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fieldmark.runs.label_scores import LabelScores
from fieldmark.tables.labels import Labels
from fieldmark_tests.oracles.comparing import refusal, same, score_files
from fieldmark_tests.oracles.stored import Stored
from fieldmark_tests.oracles.tables import UNKNOWN, write_texts

TRUTH = "id,label\n1,a\n2,-1\n"
CLASSES = "label,poisonous\na,true\nb,false\n"


def test_costs_do_not_depend_on_where_unknown_stands_among_the_labels(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, {"truth": TRUTH, "classes": CLASSES})
    values = []
    for labels in (("a", "b", UNKNOWN), (UNKNOWN, "a", "b"), ("a", UNKNOWN, "b")):
        answers = [[float(name == "a") for name in labels], [float(name == UNKNOWN) for name in labels]]
        run = Stored(["1", "2"], labels, answers, [0.0, 1.0]).write(tmp_path / "run.parquet")
        for benchmark in ("fungitastic/cost-poison", "fungitastic/cost-unknown"):
            card = score_files(benchmark, paths | {"run": run})
            values += [card.metrics[card_name].value for card_name in card.metrics if card_name.startswith("cost")]
    assert all(same(value, 0.0) for value in values), values


def test_equal_scores_go_to_the_class_that_the_benchmark_lists_first(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, {"truth": "id,label\n1,a\n", "classes": "label\na\nb\n"})
    run = Stored(["1"], ["b", "a"], [[0.5, 0.5]]).write(tmp_path / "run.parquet")
    assert score_files("fungitastic/closed", paths | {"run": run}).metrics["top_1"].value == 1.0


def test_an_item_that_is_answered_twice_is_refused(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, {"truth": "id,label\n1,a\n", "classes": "label\na\nb\n"})
    run = Stored(["1", "1"], ["a", "b"], [[0.9, 0.1], [0.1, 0.9]]).write(tmp_path / "run.parquet")
    sentence = refusal("fungitastic/closed", paths | {"run": run})
    assert "run.parquet" in sentence and "'1'" in sentence
    assert "'1'" in refusal("fungitastic/closed", paths | {"run": in_memory(["1", "1"])})


def in_memory(items: list[str]) -> LabelScores:
    """Predictions that were never written down."""
    return LabelScores(tuple(items), Labels(("a", "b")), np.array([[0.9, 0.1]] * len(items)), "score")


def test_a_score_that_is_no_number_is_refused(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, {"truth": "id,label\n1,a\n", "classes": "label\na\nb\n"})
    run = Stored(["1"], ["a", "b"], [[float("nan"), 0.1]]).write(tmp_path / "run.parquet")
    assert "run.parquet" in refusal("fungitastic/closed", paths | {"run": run})
