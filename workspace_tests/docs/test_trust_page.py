"""`docs/trust.md`: every command gives the digits that were published, and the page says what it gives here."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest
from sklearn.metrics import f1_score, log_loss
from typer.testing import CliRunner

import fieldmark
from fieldmark.cli.main import app
from fieldmark.cli.output import score_text
from fieldmark.scoring import scores_of
from fieldmark_tests.fixtures import write_release
from fieldmark_tests.places import DOCS

PAGE = (DOCS / "trust.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (.+) \| (.+) \| `(\w+)` \| ([\d.]+)( %)? \| (.+) \| `fieldmark (.+)` \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE)
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SMALL = [row for row in ROWS if "$" not in row[6] and row[6].split()[2].partition("/")[1]]
REAL = [row for row in ROWS if row not in SMALL]


def check(row: tuple[str, ...]) -> None:
    """Runs the command of a row, and compares what it gives with both numbers of the page."""
    _, _, metric, published, percent, here, command = row
    done = CliRunner().invoke(app, [*shlex.split(os.path.expandvars(command)), "--json"])
    assert done.exit_code == 0, f"{command}\n{done.output}"
    score = scores_of(json.loads(done.stdout)["metrics"])[metric]
    digits = len(published.partition(".")[2])
    assert f"{score.value * (100 if percent else 1):.{digits}f}" == published
    assert score_text(score, percent=bool(percent)) == here


@pytest.mark.parametrize("row", SMALL, ids=[row[0] for row in SMALL])
def test_small_files_score_what_was_published(row, monkeypatch):
    monkeypatch.chdir(DOCS)
    check(row)


@pytest.mark.parametrize("row", REAL, ids=[row[0] for row in REAL])
def test_real_files_score_what_was_published(row, real_data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if row[6].split()[1] == "folder":
        exec(BLOCKS[0], {})
    check(row)


def test_there_are_rows_of_both_kinds():
    assert len(SMALL) == 3 and len(REAL) == 4


def test_what_scikit_learn_publishes_is_what_the_page_says():
    published = {row[2]: row[3] for row in SMALL}
    assert f"\n    {published['macro_f1_union']}\n" in f1_score.__doc__
    assert f"\n    {published['log_loss']}" in log_loss.__doc__


def test_the_scores_of_a_participant_add_up_as_the_benchmark_says(real_data):
    told = json.loads((real_data / "fungiclef" / "etheredge_scores.json").read_text())["submission_result"]
    tracks = {name.partition(":")[0]: value for name, value in told.items()}
    assert tracks["Track 3"] == pytest.approx(tracks["Track 1"] + tracks["Track 2"])
    line = next(line for line in PAGE.splitlines() if "Etheredge" in line)
    assert all(f"{value:g}" in line for value in told.values())


def test_the_sample_of_semi_aves_is_as_good_as_chance(real_data):
    root = real_data / "semi_aves_2020"
    right = fieldmark.score("semi-aves-2020", root / "solution_sample.csv", data=root).metrics["top_1"]
    assert f"{100 * right.value:.3f} % of first answers are right" in PAGE and right.low < 1 / 200 < right.high


def test_a_pipeline_scores_what_scikit_learn_says_with_an_interval(tmp_path, monkeypatch, capsys):
    write_release(tmp_path / "my-photos", per_class=8)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(BLOCKS[1], names)
    truth, card = names["both"]["label"].to_list(), names["fitted"].scorecard
    assert card.metrics["top_1"].value == names["accuracy_score"](truth, names["predicted"])
    expected = f1_score(truth, names["predicted"], average="macro")
    assert card.metrics["macro_f1_union"].value == pytest.approx(expected, abs=1e-12)
    assert card.metrics["top_1"].low is not None and "95 % interval" in capsys.readouterr().out
    assert Path("runs/trust/scorecard.json").is_file()
