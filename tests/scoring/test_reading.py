"""Reading a run with the labels that it may name."""

from __future__ import annotations

import numpy as np
import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.labels import Labels
from fieldmark.runs.label_scores import LabelScores
from fieldmark.scoring.reading import read_run


def test_dense_scores_in_parquet_are_scored_like_the_run_file(make_release, tmp_path):
    root = make_release()
    result = fieldmark.fit("folder", root, "frequent", tmp_path / "run")
    stored = fieldmark.score("folder", tmp_path / "run" / "predictions" / "test.parquet", data=root)
    assert stored.metrics == result.scorecard.metrics
    with pytest.raises(InputError, match="no answer for 6 of 6 ids"):
        fieldmark.score("folder", tmp_path / "run" / "predictions" / "val.parquet", data=root)


LABELS = Labels(("a", "b"))
TASK = BENCHMARKS["folder"].task


def test_where_the_classes_are_listed_a_run_may_name_no_others(tmp_path):
    (tmp_path / "run.csv").write_text("id,predicted\n1,a\n2,c\n")
    with pytest.raises(InputError, match=r"line 3: found .*'c'"):
        read_run(TASK, tmp_path / "run.csv", ["1", "2"], LABELS, closed=True)
    predictions, labels = read_run(TASK, tmp_path / "run.csv", ["1", "2"], LABELS, closed=False)
    assert labels.names == ("a", "b", "c") and predictions.items == ("1", "2")


def test_stored_predictions_are_read_only_where_that_is_allowed(tmp_path):
    path = tmp_path / "test.parquet"
    LabelScores(("1", "2"), LABELS, np.array([[0.5, 0.1], [0.2, 0.3]]), "score").write(path)
    predictions, labels = read_run(TASK, path, ["2"], LABELS, closed=True, stored=True)
    assert labels == LABELS and predictions.select(["2"]).scores.tolist() == [[0.2, 0.3]]
    with pytest.raises(InputError):
        read_run(TASK, path, ["2"], LABELS, closed=True)


@pytest.mark.parametrize(
    ("names", "sentence"), [(("a", "b", "c"), "found the label 'c'"), (("a",), "found no label 'b'")]
)
def test_stored_predictions_have_the_labels_of_the_benchmark(names, sentence, tmp_path):
    path = tmp_path / "test.parquet"
    LabelScores(("1",), Labels(names), np.zeros((1, len(names))), "score").write(path)
    with pytest.raises(InputError, match=f"{sentence}, expected the 2 labels of the benchmark"):
        read_run(TASK, path, ["1"], LABELS, closed=True, stored=True)
