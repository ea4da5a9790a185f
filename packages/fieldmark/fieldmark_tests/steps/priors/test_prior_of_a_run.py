"""A prior from the command line to a saved model, on the world of fungi."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import fieldmark
from fieldmark.cli.main import app
from fieldmark.errors import MisuseError
from fieldmark.runs.predictions import read_predictions

STEPS = ("temperature", "prior:column=habitat+month+country,borrow=genus", "temperature")


def test_a_run_with_priors_states_what_it_used_and_its_model_answers_the_same(fungi_world, tmp_path):
    pytest.importorskip("torch", reason="features of photos need the extra vision")
    out = tmp_path / "run"
    command = ["fit", "fungitastic/closed", "--data", str(fungi_world), "--method", "linear", "--set", "size=32"]
    steps = [word for step in STEPS for word in ("--step", step)]
    done = CliRunner().invoke(app, [*command, *steps, "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads((out / "run.json").read_text())["steps"][1]
    assert [source["context"] for source in said["sources"]] == ["habitat", "month", "country"]
    assert all(source["observations"] > 0 and source["lent"] > 0 and source["tried"] for source in said["sources"])
    assert len(said["exponents"]) == 3 and said["log_loss"]["fitted"] <= said["log_loss"]["0"]
    assert any(said["exponents"])  # simulated fungi have habitats and seasons
    stored = read_predictions(out / "predictions" / "test.parquet")
    again = fieldmark.predict(out, fungi_world)
    assert again.scores == pytest.approx(stored.scores, abs=1e-4)


def test_a_column_that_the_task_does_not_tell_ends_in_a_sentence_and_leaves_nothing(tmp_path):
    with pytest.raises(MisuseError, match="no prior over observer"):
        fieldmark.fit("fungitastic/closed", tmp_path, "frequent", tmp_path / "run", steps=["prior:column=observer"])
    assert not (tmp_path / "run").exists()
