"""Models that version 0.1.0 wrote still open and answer as they did; pages are written about their runs."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import fieldmark
from fieldmark.cli.main import app
from fieldmark_tests.golden_files import VERSION_1, card_differences, differing_answers, read_json, truth_files

# The world of each stored run that comes with its model; the world of birds is written again.
WORLDS = {
    "folder-linear": "folder",
    "folder-centroid": "folder",
    "open": "fungitastic",
    "cost-poison": "fungitastic",
    "birds": None,
}
# Features may differ a little from one network library to the next: in half precision by one step in a few of a
# thousand. Logits of up to 30 then differ by a few ten-thousandths.
SAME_ANSWER = 5e-4


@pytest.fixture
def world(request: pytest.FixtureRequest, name: str) -> Path:
    """The release that a run was made on."""
    stored = WORLDS[name]
    found: Path = request.getfixturevalue("bird_world") if stored is None else VERSION_1 / "worlds" / stored
    return found


@pytest.mark.parametrize("name", WORLDS)
def test_a_stored_model_answers_as_it_did(name, world, tmp_path):
    folder = VERSION_1 / "runs" / name
    predictions = fieldmark.predict(fieldmark.load_model(folder), world, out=tmp_path / "run.csv")
    stored = pl.read_parquet(folder / "predictions" / "test.parquet")
    assert list(predictions.items) == stored["item_id"].to_list()
    assert not differing_answers(predictions, stored, SAME_ANSWER)
    # The run file that is written now says the same as the one written then.
    benchmark, card = read_json(folder / "run.json")["benchmark"], read_json(folder / "scorecard.json")
    truth = truth_files(VERSION_1 / "truths" / benchmark.replace("/", "-") / "test")
    again = fieldmark.score(f"{benchmark}@1", tmp_path / "run.csv", **truth).to_json()
    again |= {name: card[name] for name in ("split", "conventions", "provenance")}
    assert not card_differences(again, card, SAME_ANSWER)


@pytest.mark.parametrize("name", WORLDS)
def test_writing_a_stored_model_anew_changes_nothing(name, tmp_path):
    folder = VERSION_1 / "runs" / name / "model"
    fieldmark.load_model(folder).save(tmp_path)
    said, stored = (read_json(place / "model.json") for place in (tmp_path, folder))
    for data in (said, stored):
        del data["code_version"]
    assert said == stored
    assert (tmp_path / "weights.safetensors").read_bytes() == (folder / "weights.safetensors").read_bytes()


def test_a_stored_model_names_photos_on_the_command_line():
    photos = VERSION_1 / "worlds" / "folder" / "test" / "Alba alba"
    model = VERSION_1 / "runs" / "folder-linear"
    done = CliRunner().invoke(app, ["predict", str(model), str(photos), "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)["answers"]
    lines = (model / "run.csv").read_text().splitlines()[1:]
    ranked = {item: answers.split("|") for item, _, answers in (line.rpartition(",") for line in lines)}
    assert len(said) == 5
    for photo, answers in said.items():
        assert [answer["label"] for answer in answers] == ranked[Path(photo).name][:3]


@pytest.mark.parametrize("name", WORLDS)
def test_a_page_is_written_about_a_stored_run(name, world, tmp_path):
    pytest.importorskip("matplotlib", reason="reports need the extra report")
    done = CliRunner().invoke(
        app, ["report", str(VERSION_1 / "runs" / name), "--data", str(world), "--out", str(tmp_path / "page.html")]
    )
    assert done.exit_code == 0, done.output
    assert read_json(VERSION_1 / "runs" / name / "run.json")["benchmark"] in (tmp_path / "page.html").read_text()
