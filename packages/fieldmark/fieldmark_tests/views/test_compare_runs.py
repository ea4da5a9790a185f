"""Runs made elsewhere: scored, kept as the folder of a run, compared, reported, averaged and submitted."""

from __future__ import annotations

import json

import polars as pl
import pytest

import fieldmark
from fieldmark.cli.submit import declared_external
from fieldmark.errors import InputError, MisuseError
from fieldmark.runs.provenance import Run
from fieldmark.views.score_run import write_truth


@pytest.fixture
def fitted(make_release, tmp_path):
    """A release, a run of `frequent` on it, and a file of answers from elsewhere that are all right."""
    root = make_release()
    run = fieldmark.fit("folder", root, "frequent", tmp_path / "frequent")
    write_truth("folder", root, tmp_path / "truth")
    mine = tmp_path / "mine.csv"
    pl.read_csv(tmp_path / "truth" / "truth.csv").select("id", predicted="label").write_csv(mine)
    return root, run, mine


def test_a_file_from_elsewhere_becomes_the_folder_of_a_run(fitted, tmp_path, run_main):
    root, run, mine = fitted
    code, printed, _ = run_main("score", "folder", mine, "--data", root, "--out", tmp_path / "runs" / "mine")
    assert code == 0 and "external data: unknown" in printed
    folder = tmp_path / "runs" / "mine"
    assert (folder / "run.csv").read_bytes() == mine.read_bytes()
    record = Run.read(folder)
    assert (record.method, record.external_data, record.sees) == ("mine", None, "unknown")
    compared = fieldmark.compare([folder, run.folder])
    assert compared.names == ("mine", "frequent") and compared.scores[0].value == 1.0
    page = fieldmark.report([folder, run.folder], tmp_path / "report.html").read_text()
    assert "unknown" in page and "Made elsewhere" in page
    mean = fieldmark.ensemble([folder, run.folder], tmp_path / "mean")
    assert mean.run.external_data is None and mean.run.sees == "unknown" and set(mean.scorecards) == {"test"}
    with pytest.raises(MisuseError, match="--external none"):  # whoever hands it in has to say
        declared_external(folder / "run.csv", "")


def test_external_data_are_what_their_maker_declares(fitted, tmp_path):
    root, _, mine = fitted
    for said, recorded in ((["ImageNet-21k"], ["ImageNet-21k"]), (["none"], []), ((), None)):
        fieldmark.score("folder", mine, data=root, out=tmp_path / "out", external_data=said, overwrite=True)
        assert Run.read(tmp_path / "out").external_data == recorded


def test_scorecards_folders_files_and_tables_are_compared_in_one_call(fitted, tmp_path):
    root, run, mine = fitted
    card = fieldmark.score("folder", pl.read_csv(mine), data=root)
    compared = fieldmark.compare([card, run.folder, mine])
    assert set(compared.names) == {"run 1", "frequent", "mine"}
    by_name = fieldmark.compare({"table": pl.read_csv(mine), "fit": run})
    assert by_name.names == ("table", "fit")
    assert by_name.to_frame()["value"].to_list() == [1.0, run.scorecard.metrics["macro_f1_all"].value]


def test_a_file_alone_says_neither_benchmark_nor_truth(fitted, tmp_path, run_main):
    root, run, mine = fitted
    with pytest.raises(MisuseError, match=r"mine has not been scored: .*--data ROOT or --truth FILE"):
        fieldmark.compare([run.scorecard, mine])
    other = tmp_path / "other.csv"
    other.write_bytes(mine.read_bytes())
    code, printed, _ = run_main("compare", mine, other, "--benchmark", "folder", "--data", root, "--json")
    assert code == 0 and json.loads(printed)["metric"] == "macro_f1_all"


def test_scorecards_and_comparisons_print_as_tables(fitted):
    root, run, mine = fitted
    card = fieldmark.score("folder", mine, data=root)
    printed = str(card).splitlines()
    assert printed[0].startswith("folder@") and "independent units" in printed[0]
    assert any(line.startswith(card.title("top_1")) and "100.0" in line for line in printed)
    assert "not separable from the best" in str(fieldmark.compare({"mine": card, "frequent": run}))


def test_a_folder_needs_a_release_and_a_file(fitted, tmp_path):
    root, run, mine = fitted
    with pytest.raises(MisuseError, match="needs --data ROOT"):
        fieldmark.score("folder", mine, truth={"id": ["1"], "label": ["a"]}, out=tmp_path / "out")
    with pytest.raises(MisuseError, match="is the folder of a run already"):
        fieldmark.score("folder", run.folder, data=root, out=tmp_path / "out")
    with pytest.raises(MisuseError, match="add --out FOLDER"):
        fieldmark.score("folder", mine, data=root, external_data=["ImageNet"])
    mine.write_text("id,label\nnowhere,none\n")
    with pytest.raises(InputError):
        fieldmark.score("folder", mine, data=root, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
