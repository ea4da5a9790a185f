"""Reading a run with the labels that it may name."""

from __future__ import annotations

import numpy as np
import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.questions.clusters import Clusters
from fieldmark.questions.listed_labels import ListedLabels
from fieldmark.questions.masks import PartMasks
from fieldmark.runs.label_scores import LabelScores
from fieldmark.scoring.run_reader import read_run
from fieldmark.tables.labels import Labels
from fieldmark.web.run_problems import read_as_scored


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


TRUTH = {"id": ["1", "2"], "label": ["119", "27"]}
NO_SHARED = (
    r"found labels that are none of the truth's \('Amanita muscaria', 'Boletus edulis'\), "
    r"expected labels such as '119' and '27'\. Are they names where the truth has ids"
)


def test_a_run_without_any_label_of_the_truth_is_refused_and_not_scored_as_0(tmp_path):
    run = {"id": ["1", "2"], "predicted": ["Boletus_edulis", "Amanita_muscaria"]}
    sentence = NO_SHARED.replace(" muscaria", "_muscaria").replace(" edulis", "_edulis")
    with pytest.raises(InputError, match=sentence):
        fieldmark.score("folder", run, truth=TRUTH)
    path = tmp_path / "run.csv"
    path.write_text("id,predicted\n1,Boletus_edulis\n2,Amanita_muscaria\n")
    with pytest.raises(InputError, match=rf"run\.csv: {sentence}"):
        fieldmark.score("folder", path, truth=TRUTH)
    with pytest.raises(InputError, match=sentence):  # as the server checks what is submitted
        read_as_scored("folder", path, ["1", "2"], ["27", "119"], closed=False)


def test_predictions_without_any_label_of_the_truth_are_refused_as_well():
    labels = Labels(("Amanita muscaria", "Boletus edulis"))
    predictions = LabelScores(("1", "2"), labels, np.eye(2), "score")
    with pytest.raises(InputError, match=f"the predictions: {NO_SHARED}"):
        fieldmark.score("folder", predictions, truth=TRUTH)


@pytest.mark.parametrize(
    ("benchmark", "run", "truth", "classes"),
    [
        ("folder", ["27", "x"], ["119", "27"], None),  # wrong, and one of the truth's
        ("folder", ["27"], ["119"], {"label": ["119", "27"]}),  # wrong, and a class of the benchmark
        ("fungitastic/open", ["-1", "-1"], ["119", "27"], None),
        ("fungitastic/open", ["x", "-1"], ["-1", "-1"], None),  # of a truth without a label nothing can be named
    ],
)
def test_a_run_that_is_merely_wrong_is_scored(benchmark, run, truth, classes):
    ids = [str(number) for number in range(len(run))]
    more = {"unknown_score": [0.5] * len(run)} if BENCHMARKS[benchmark].task.run.unknown_score else {}
    answers = {"id": ids, "predicted": run, **more}
    card = fieldmark.score(benchmark, answers, truth={"id": ids, "label": truth}, classes=classes)
    assert card.items == len(run)


def test_silence_is_no_label_that_run_and_truth_could_share():
    answer = ListedLabels(silence="nocall")
    assert answer.comparable({"nocall", "merula"}) == {"merula"}
    assert Clusters().comparable({"individual 1"}) == set()
    assert PartMasks().comparable({"cap"}) == set()


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
