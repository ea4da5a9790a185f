"""Runs that version 0.1.0 wrote are read, scored and compared as they were then."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import fieldmark
from fieldmark.cli.main import app
from fieldmark.fitting.unknown_table import UnknownTable
from fieldmark.runs.predictions import read_predictions
from fieldmark.runs.provenance import Run
from fieldmark.scoring import Scorecard
from fieldmark_tests.golden_files import (
    VERSION_1,
    card_differences,
    differences,
    differing_answers,
    pseudo_values,
    read_json,
    truth_files,
)

# The benchmark and the method of each stored run.
RUNS = {
    "folder-linear": ("folder", "linear"),
    "folder-centroid": ("folder", "centroid"),
    "open": ("fungitastic/open", "openset"),
    "open-all-scores": ("fungitastic/open", "openset"),
    "birds": ("birdclef-2020", "linear"),
    "cost-poison": ("fungitastic/cost-poison", "min-cost"),
}
CARDS = {"test": "scorecard.json", "val": "scorecard-val.json"}


def truth_of(name: str, part: str) -> dict[str, Path]:
    return truth_files(VERSION_1 / "truths" / RUNS[name][0].replace("/", "-") / part)


def without_provenance(card: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in card.items() if name != "provenance"}


@pytest.mark.parametrize("name", RUNS)
def test_a_stored_run_still_says_where_it_came_from(name):
    folder = VERSION_1 / "runs" / name
    run, said = Run.read(folder), read_json(folder / "run.json")
    assert (run.benchmark, run.method) == RUNS[name]
    assert (run.seed, run.data, run.code_version) == (3, "world", "0.1.0")
    assert run.simulated == said["simulated"] == (not name.startswith("folder"))
    for field in ("options", "features", "steps", "trained_on", "data_digest", "external_data", "remarks", "created"):
        assert getattr(run, field) == said[field], field


@pytest.mark.parametrize("name", RUNS)
def test_writing_a_stored_run_and_its_scorecard_anew_changes_nothing(name, tmp_path):
    folder = VERSION_1 / "runs" / name
    Run.read(folder).write(tmp_path)
    assert read_json(tmp_path / "run.json") == read_json(folder / "run.json")
    for card in CARDS.values():
        Scorecard.read(folder / card).write(tmp_path / card)
        assert read_json(tmp_path / card) == read_json(folder / card)
        units = Path(card).with_suffix(".units.parquet")
        assert pl.read_parquet(tmp_path / units).equals(pl.read_parquet(folder / units))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("part", CARDS)
def test_stored_predictions_hold_what_their_columns_say(name, part):
    path = VERSION_1 / "runs" / name / "predictions" / f"{part}.parquet"
    read, table = read_predictions(path), pl.read_parquet(path)
    assert list(read.items) == table["item_id"].to_list()
    assert not differing_answers(read, table)


def test_stored_runs_answer_in_each_of_the_ways_there_are():
    columns = {
        name: pl.read_parquet_schema(VERSION_1 / "runs" / name / "predictions" / "test.parquet") for name in RUNS
    }
    assert "unknown" in columns["open"] and "unknown" not in columns["folder-linear"]
    assert "answer" in columns["cost-poison"] and "answer" not in columns["birds"]


@pytest.mark.parametrize("name", RUNS)
def test_a_stored_run_file_scores_as_it_did(name):
    folder = VERSION_1 / "runs" / name
    card = fieldmark.score(f"{RUNS[name][0]}@1", folder / "run.csv", **truth_of(name, "test"))
    assert not card_differences(card.to_json(), read_json(folder / "scorecard.json"))
    stored = Scorecard.read(folder / "scorecard.json")
    assert list(card.unit_ids) == list(stored.unit_ids)
    assert not differences(pseudo_values(card), pseudo_values(stored))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("part", CARDS)
def test_stored_predictions_score_as_they_did(name, part):
    folder = VERSION_1 / "runs" / name
    path = folder / "predictions" / f"{part}.parquet"
    card = fieldmark.score(f"{RUNS[name][0]}@1", path, split=part, **truth_of(name, part))
    stored = read_json(folder / CARDS[part])
    assert not card_differences(without_provenance(card.to_json()), without_provenance(stored))


@pytest.mark.parametrize("name", ["open", "open-all-scores", "cost-poison"])
def test_a_stored_table_of_unknown_scores_is_read(name, tmp_path):
    folder = VERSION_1 / "runs" / name
    table = UnknownTable.read(folder)
    assert table is not None and set(table.values) == set(table.scores) == {"val", "test"}
    assert table.chosen in table.names and (len(table.names) > 1) == (name == "open-all-scores")
    for part, values in table.values.items():
        assert values.columns == ["item_id", *table.names]
        assert set(values["item_id"]) == set(pl.read_csv(truth_of(name, part)["truth"])["id"])
    table.write(tmp_path)
    assert read_json(tmp_path / "unknown-scores.json") == read_json(folder / "unknown-scores.json")


@pytest.mark.parametrize(
    ("comparison", "runs"),
    [("folder", ["folder-linear", "folder-centroid"]), ("fungitastic-open", ["open", "open-all-scores"])],
)
def test_stored_runs_compare_as_they_did(comparison, runs):
    compared = fieldmark.compare([VERSION_1 / "runs" / name for name in runs])
    found = compared.to_json()
    (caution,) = found.pop("remarks")
    assert "from before scorecards said which truth, classes and conventions they rest on" in caution
    assert not differences(found, read_json(VERSION_1 / "comparisons" / f"{comparison}.json"))


def test_the_command_line_scores_a_stored_folder(tmp_path):
    folder = shutil.copytree(VERSION_1 / "runs" / "birds", tmp_path / "birds")
    tables = [f"--{what}={path}" for what, path in truth_of("birds", "test").items()]
    done = CliRunner().invoke(app, ["score", "birdclef-2020@1", str(folder), *tables, "--json"])
    assert done.exit_code == 0, done.output
    (tmp_path / "printed.json").write_text(done.stdout)
    assert not card_differences(read_json(tmp_path / "printed.json"), read_json(folder / "scorecard.json"))
