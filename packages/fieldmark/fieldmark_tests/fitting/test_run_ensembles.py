from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.runs.predictions import read_predictions
from fieldmark.runs.provenance import Run
from fieldmark_tests.fixtures import write_release

LITTLE = {"backbone": "resnet10t", "weights": "random", "size": 32}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs on one small release."""
    folder = tmp_path_factory.mktemp("runs")
    root = write_release(folder / "photos")
    fieldmark.fit("folder", root, "linear", folder / "linear", settings=LITTLE, external_data=["a list of names"])
    fieldmark.fit("folder", root, "knn", folder / "knn", settings=LITTLE)
    fieldmark.fit("folder", root, "frequent", folder / "frequent")
    return root, folder


def test_the_mean_of_runs_is_a_run_with_all_that_its_members_declare(runs, tmp_path):
    _, folder = runs
    members = [folder / name for name in ("linear", "knn", "frequent")]
    made = fieldmark.ensemble(members, tmp_path / "mean", steps=[])
    read = [read_predictions(one / "predictions" / "test.parquet") for one in members]
    stored = read_predictions(tmp_path / "mean" / "predictions" / "test.parquet")
    expected = np.mean([np.exp(one.scores.astype(float)) for one in read], axis=0)
    np.testing.assert_allclose(np.exp(stored.scores), expected, atol=1e-5)
    record = Run.read(tmp_path / "mean")
    assert (
        record.method == "ensemble" and record.external_data == ["a list of names"] and record.modalities == ["photo"]
    )
    assert [one["method"] for one in record.options["members"]] == ["linear", "knn", "frequent"]
    assert made.scorecard.split == "test"
    again = fieldmark.score("folder", tmp_path / "mean", data=runs[0])
    assert again.metrics == made.scorecard.metrics
    compared = fieldmark.compare([tmp_path / "mean", *members])
    assert len(compared.rows()) == 4


def test_steps_of_the_task_are_fitted_on_val_after_the_mean_and_weights_may_be(runs, tmp_path):
    _, folder = runs
    made = fieldmark.ensemble([folder / "linear", folder / "frequent"], tmp_path / "mean", weights="val", mean="logits")
    assert [one["step"] for one in made.run.steps] == ["temperature"]
    tuned = [(one["step"], one["tuned_on"]) for one in made.run.step_lessons]
    assert tuned == [("temperature", ["val"])] * 3  # of both members, and of the mean
    assert sum(made.run.options["weights"]) == pytest.approx(1) and "weights were chosen on val" in made.run.remarks[-1]
    given = fieldmark.ensemble(
        [folder / "linear", folder / "frequent"], tmp_path / "given", weights="3,1", mean="ranks"
    )
    assert given.run.options["weights"] == [0.75, 0.25]


def test_models_answer_a_release_that_their_runs_were_not_made_on(runs, tmp_path):
    _, folder = runs
    other = write_release(tmp_path / "other")
    (other / "test" / "Alba alba" / "0-4.jpg").rename(other / "test" / "Alba alba" / "new.jpg")
    made = fieldmark.ensemble([folder / "linear", folder / "knn"], tmp_path / "mean", data=other)
    answered = read_predictions(tmp_path / "mean" / "predictions" / "test.parquet")
    assert "new.jpg" in answered.items and made.scorecard.items == len(answered.items)
    lone = tmp_path / "lone"
    shutil.copytree(folder / "knn", lone)
    shutil.rmtree(lone / "model")
    with pytest.raises(InputError, match="without a model"):
        fieldmark.ensemble([folder / "linear", lone], tmp_path / "no", data=other)


def test_a_run_file_from_elsewhere_is_a_member_that_states_nothing(runs, tmp_path):
    _, folder = runs
    shutil.copy(folder / "knn" / "run.csv", tmp_path / "theirs.csv")
    made = fieldmark.ensemble([folder / "linear", tmp_path / "theirs.csv"], tmp_path / "mean", mean="ranks")
    record = json.loads((tmp_path / "mean" / "run.json").read_text())
    assert record["external_data"] is None and "how theirs.csv was made" in record["remarks"][-1]
    assert set(made.scorecards) == {"test"}
    with pytest.raises(MisuseError, match="not every run answers val"):
        fieldmark.ensemble([folder / "linear", tmp_path / "theirs.csv"], tmp_path / "no", weights="val", mean="ranks")


def test_runs_that_do_not_go_together_are_refused(runs, tmp_path):
    root, folder = runs
    with pytest.raises(MisuseError, match="at least two"):
        fieldmark.ensemble([folder / "linear"], tmp_path / "no")
    with pytest.raises(MisuseError, match="expected 2 numbers"):
        fieldmark.ensemble([folder / "linear", folder / "knn"], tmp_path / "no", weights="1,2,3")
    with pytest.raises(MisuseError, match="expected equal, val"):
        fieldmark.ensemble([folder / "linear", folder / "knn"], tmp_path / "no", weights="most")
    fieldmark.fit("folder", root, "frequent", tmp_path / "two", seed=0)
    kept = read_predictions(tmp_path / "two" / "predictions" / "test.parquet")
    kept.select(kept.items[1:]).write(tmp_path / "two" / "predictions" / "test.parquet")
    with pytest.raises(InputError, match="answers to other items of test"):
        fieldmark.ensemble([folder / "linear", tmp_path / "two"], tmp_path / "no")
    assert not (tmp_path / "no").exists()
