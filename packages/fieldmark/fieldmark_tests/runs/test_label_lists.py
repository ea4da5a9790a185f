"""Run files with lists of labels: what is written is read again, and what is wrong is named with its line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.label_lists import Lists
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.problems import RunError
from fieldmark.tables.labels import Labels

LABELS = Labels(("10", "20", "nocall"))
PLOTS = Lists(columns=("quadrat_id", "species_ids"), separator=", ", brackets=True, all_quoted=True)
BIRDS = Lists(columns=("row_id", "birds"), silence="nocall", segment_s=5)
SURVEYS = Lists(columns=("surveyId", "predictions"))


def sets(*lists: list[int], items: tuple[str, ...] = ("a", "b")) -> LabelScores:
    together = CodeSets.of_lists(lists)
    return LabelScores.listed(items, LABELS, together, np.ones(len(together.codes)))


def decided(*lists: list[int], items: tuple[str, ...]) -> LabelScores:
    """Scores of every label, and a rule that has decided."""
    scores = np.full((len(items), len(LABELS)), 0.5)
    return LabelScores(items, LABELS, scores, "score").decided(CodeSets.of_lists(lists))


def written(run: Lists, path: Path, predictions: LabelScores) -> list[str]:
    run.write(path, predictions)
    return path.read_text().splitlines()


def refusal(run: Lists, path: Path, text: str, items: tuple[str, ...] = ("a", "b")) -> str:
    path.write_text(text)
    with pytest.raises(RunError) as error:
        run.read(path, items, LABELS)
    return str(error.value)


def test_quadrats_are_written_in_quotes_and_brackets(tmp_path):
    lines = written(PLOTS, tmp_path / "run.csv", sets([0, 1], []))
    assert lines == ['"quadrat_id","species_ids"', '"a","[10, 20]"', '"b","[]"']


@pytest.mark.parametrize("run", [PLOTS, SURVEYS])
def test_what_is_written_is_read_again(run, tmp_path):
    predictions = sets([1, 0], [])
    run.write(tmp_path / "run.csv", predictions)
    again = run.read(tmp_path / "run.csv", ("b", "a"), LABELS)
    assert [set(again.lists.of(row).tolist()) for row in range(2)] == [set(), {0, 1}]


def test_segments_are_called_by_their_end_and_silence_by_its_name(tmp_path):
    items = ("7019_COR/0", "7019_COR/5")
    lines = written(BIRDS, tmp_path / "run.csv", decided([1], [], items=items))
    assert lines == ["row_id,birds", "7019_COR_5,20", "7019_COR_10,nocall"]
    again = BIRDS.read(tmp_path / "run.csv", items, LABELS)
    assert again.lists.of(1).tolist() == [2]


def test_silence_is_not_listed_beside_a_bird_unless_a_file_says_so(tmp_path):
    items = ("r/0", "r/5")
    held = BIRDS.held(decided([0, 2], [2], items=items))
    assert [held.lists.of(row).tolist() for row in range(2)] == [[0], [2]]
    (tmp_path / "run.csv").write_text("row_id,birds\nr_5,10 nocall\nr_10,\n")
    as_written = BIRDS.held(BIRDS.read(tmp_path / "run.csv", items, LABELS))
    assert as_written.lists.lengths.tolist() == [2, 0]
    assert written(BIRDS, tmp_path / "again.csv", as_written) == ["row_id,birds", "r_5,10 nocall", "r_10,"]
    completed = replace(BIRDS, written_lists="completed").held(as_written)
    assert [completed.lists.of(row).tolist() for row in range(2)] == [[0], [2]]


def test_without_a_decision_labels_more_likely_than_not_are_listed():
    dense = LabelScores(("a",), LABELS, np.array([[0.9, 0.5, 0.4]]), "score")
    assert SURVEYS.held(dense).lists.of(0).tolist() == [0, 1]
    assert SURVEYS.held(dense.decided(CodeSets.of_lists([[2]]))).lists.of(0).tolist() == [2]


def test_a_label_that_is_named_twice_counts_once(tmp_path):
    (tmp_path / "run.csv").write_text("surveyId,predictions\na,10 10 20\nb,\n")
    assert SURVEYS.read(tmp_path / "run.csv", ("a", "b"), LABELS).lists.lengths.tolist() == [2, 0]


def test_what_is_wrong_is_named_with_its_line(tmp_path):
    path = tmp_path / "run.csv"
    assert "line 2: found the label '7'" in refusal(SURVEYS, path, "surveyId,predictions\na,7\nb,10\n")
    assert "line 3: found the id 'a' again (first in line 2)" in refusal(
        SURVEYS, path, "surveyId,predictions\na,10\na,\n"
    )
    assert "no line for 1 of 2 ids (b)" in refusal(SURVEYS, path, "surveyId,predictions\na,10\n")
    assert "expected a list in square brackets" in refusal(PLOTS, path, "quadrat_id,species_ids\na,10\nb,[]\n")
