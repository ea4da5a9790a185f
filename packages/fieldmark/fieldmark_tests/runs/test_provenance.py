from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

import fieldmark
from fieldmark.features.settings import FeatureSettings
from fieldmark.fitting.adaptation import adapt
from fieldmark.runs.provenance import Run
from fieldmark.steps import make_step


def test_a_run_without_pre_trained_weights_uses_no_external_data(make_release, tmp_path):
    result = fieldmark.fit("folder", make_release(), "frequent", tmp_path / "run")
    assert Run.read(tmp_path / "run").external_data == []
    assert result.scorecard.provenance["external_data"] == []


def test_what_is_stated_is_kept(make_release, tmp_path):
    fieldmark.fit("folder", make_release(), "frequent", tmp_path / "run", external_data=["a list of synonyms"])
    assert Run.read(tmp_path / "run").external_data == ["a list of synonyms"]


def test_weights_from_a_file_count_as_external_data():
    assert FeatureSettings("resnet50", weights="/somewhere/mine.pth").external_data == (
        "whatever resnet50 was trained on for the weights in mine.pth",
    )
    assert FeatureSettings("resnet50").external_data == ("the pre-trained weights of resnet50",)


@pytest.mark.parametrize("stated", [True, False])
def test_a_run_from_before_the_question_loads_and_says_that_nobody_stated_it(make_release, tmp_path, stated):
    fieldmark.fit("folder", make_release(), "frequent", tmp_path / "run")
    data = json.loads((tmp_path / "run" / "run.json").read_text())
    if not stated:
        del data["external_data"]
    (tmp_path / "run" / "run.json").write_text(json.dumps(data))
    run = Run.read(tmp_path / "run")
    assert run.external_data_in_words == ("none" if stated else "unknown")


def test_what_there_is_nothing_to_say_about_is_not_in_the_file_and_the_rest_is(make_release, tmp_path):
    run = fieldmark.fit("folder", make_release(), "frequent", tmp_path / "run").run
    (tmp_path / "other").mkdir()
    replace(run, search={"folds": 5}, extra_annotations=[]).write(tmp_path / "other")
    stored = json.loads((tmp_path / "other" / "run.json").read_text())
    assert stored["search"] == {"folds": 5} and "extra_annotations" not in stored and "split" not in stored


def test_weights_and_tables_given_by_file_are_declared_by_name_and_digest(tmp_path):
    (tmp_path / "mine.pth").write_bytes(b"weights")
    (tmp_path / "prices.csv").write_text("true,predicted,cost\na,b,2\n")
    digest = hashlib.sha256(b"weights").hexdigest()[:16]
    assert FeatureSettings("resnet50", weights=str(tmp_path / "mine.pth")).external_data == (
        f"whatever resnet50 was trained on for the weights in mine.pth (SHA-256 {digest})",
    )
    (prices,) = make_step(f"min-cost:cost={tmp_path / 'prices.csv'}").external_data
    assert prices.startswith("The table of costs prices.csv (SHA-256 ") and make_step("min-cost").external_data == ()


def test_an_adapted_run_says_what_its_new_steps_learned_from_and_bring_along(make_release, tmp_path):
    (tmp_path / "prices.csv").write_text("true,predicted,cost\nAlba alba,Alba nigra,2\n")
    made = fieldmark.fit("folder", make_release(), "centroid", tmp_path / "run", settings={"size": 32})
    assert made.run.trained_on == ["train"]
    steps = ["bias-temperature", f"min-cost:cost={tmp_path / 'prices.csv'}"]
    run = adapt(tmp_path / "run", tmp_path / "adapted", steps=steps).run
    assert run.trained_on == ["train", "val"]
    assert {"step": "bias-temperature", "learned_from": ["val"], "tuned_on": []} in run.step_lessons
    assert run.external_data[:-1] == made.run.external_data and "prices.csv (SHA-256" in run.external_data[-1]
