"""Predictions stored as Parquet score the same as the naive program, ties by the order of the labels included."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

import fieldmark
from fieldmark.masks.runlengths import MaskRow
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.masks import Masks
from fieldmark.tables.labels import Labels
from fieldmark_tests.oracles.comparing import (
    TABLE_BENCHMARKS,
    differences,
    differences_of_case,
    refusal,
    report,
    score_files,
    values_of,
)
from fieldmark_tests.oracles.stored import Stored, draw_stored
from fieldmark_tests.oracles.tables import UNKNOWN, write_texts

CASES = 6
BENCHMARKS = [name for name in TABLE_BENCHMARKS if name not in ("birdclef-2020", "fungitastic/temporal")]
TABLES = {"truth": "id,label\n1,b\n2,c\n", "classes": "label\na\nb\nc\n"}


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_stored_scores_give_what_the_definitions_give(benchmark: str, tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in range(CASES):
        stored, case = draw_stored(benchmark, Random(f"stored {benchmark} {seed}"))
        paths = case.write(tmp_path) | {"run": stored.write(tmp_path / "run.parquet")}
        wrong += report(benchmark, seed, differences_of_case(case, score_files(benchmark, paths)))
    assert not wrong, "\n".join(wrong)


def in_another_order(stored: Stored, rng: Random) -> Stored:
    """The same predictions with the columns in another order."""
    order = rng.sample(range(len(stored.labels)), len(stored.labels))
    return replace(
        stored,
        labels=[stored.labels[place] for place in order],
        scores=[[row[place] for place in order] for row in stored.scores],
        answers=None if stored.answers is None else [order.index(answer) for answer in stored.answers],
    )


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_order_of_the_labels_in_the_file_says_nothing(benchmark: str, tmp_path: Path) -> None:
    wrong: list[str] = []
    for seed in range(CASES):
        rng = Random(f"order {benchmark} {seed}")
        stored, case = draw_stored(benchmark, rng)
        paths = case.write(tmp_path)
        plain, mixed = (
            values_of(score_files(benchmark, paths | {"run": one.write(tmp_path / "run.parquet")}))
            for one in (stored, in_another_order(stored, rng))
        )
        wrong += report(benchmark, seed, differences(mixed, plain))
    assert not wrong, "\n".join(wrong)


def test_unknown_is_no_answer_in_a_closed_set(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, TABLES)
    run = Stored(["1", "2"], ["a", "b", "c", UNKNOWN], [[0.1, 0.7, 0.1, 0.1]] * 2).write(tmp_path / "run.parquet")
    assert "the label '-1'" in refusal("folder", paths | {"run": run})


def test_masks_are_no_scores_of_labels(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, TABLES) | {"run": tmp_path / "run.parquet"}
    Masks(("1",), ((MaskRow.of("cap", np.ones((2, 2), dtype=bool)),),)).write(paths["run"])
    assert "run.parquet" in refusal("folder", paths)


def test_predictions_in_memory_are_scored_by_their_own_labels(tmp_path: Path) -> None:
    paths = write_texts(tmp_path, TABLES)
    labels = Labels(("c", "a", "b"))
    predictions = LabelScores(("1", "2"), labels, np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]), "score")
    for classes in (None, paths["classes"]):
        card = fieldmark.score("folder", predictions, truth=paths["truth"], classes=classes)
        assert (card.classes, card.metrics["top_1"].value) == (3, 1.0)
